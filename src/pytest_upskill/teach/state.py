"""Where a lesson keeps what it has done: ``.upskill/teach/NAME/``, so that a kill loses nothing.

Answers themselves are stored by the engine. A lesson that is resumed asks the same questions in
the same order, and so gets all that was answered before without asking. ``session`` is part of
what a teacher is asked: a lesson that is begun anew gets new answers.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..engine.store import FOLDER, make_folder
from ..errors import SettingsError, shown
from ..results.run import RunResults
from ..results.to_json import results_bytes
from ..skills.skill import CASES_NAME
from .drafts import Draft

_STATE: Final = "state.json"
_FORM: Final = 1


@dataclass
class Workspace:
    """The folder of a lesson, and what stands in its state.json."""

    folder: Path
    state: dict[str, Any]

    @property
    def session(self) -> int:
        return int(self.state["session"])

    def save(self, **values: Any) -> None:
        self.state |= values
        text = json.dumps(self.state, indent=1, ensure_ascii=False) + "\n"
        write_whole(self.folder / _STATE, text.encode("utf-8", "backslashreplace"))

    def rename(self, name: str) -> None:
        """Give it the name of the skill, once that is known."""
        if self.state["name"] == name:
            return
        self.folder = self.folder.rename(_free(self.folder.with_name(name)))
        self.save(name=name)

    def keep_attempt(
        self, number: int, draft: Draft, results: RunResults | None, told: str
    ) -> None:
        """A version with all that came of it."""
        folder = self.folder / f"attempt-{number}"
        draft.write(folder)
        write_whole(folder / "report.txt", f"{told}\n".encode())
        if results:
            write_whole(folder / "results.json", results_bytes(results))

    def keep_unsaved(self, number: int, draft: Draft, cases: str) -> Path:
        """A version that could not be put where it belongs, with its cases."""
        folder = self.folder / f"attempt-{number}"
        if not folder.exists():
            draft.write(folder)
        write_whole(folder / CASES_NAME, cases.encode())
        return folder

    def keep_before(self, skill: Path) -> Path:
        """A copy of a skill that is about to be changed or replaced."""
        kept = _free(self.folder / "before")
        shutil.copytree(skill, kept, symlinks=True)
        return kept


def begin(root: Path, name: str, digest: str) -> Workspace:
    """A new workspace; one of the same name stays where it is, as people were told."""
    top = root / FOLDER / "teach"
    make_folder(root / FOLDER)
    same = [state["session"] for _, state in _all(top) if state["digest"] == digest]
    folder = _free(top / name)
    folder.mkdir(parents=True)
    state = {"form": _FORM, "name": name, "digest": digest, "session": 1 + max(same, default=0)}
    workspace = Workspace(folder, state)
    workspace.save()
    return workspace


def resume(root: Path, digest: str) -> Workspace:
    """The newest workspace of the same lesson."""
    top = root / FOLDER / "teach"
    same = [(state["session"], folder) for folder, state in _all(top) if state["digest"] == digest]
    if not same:
        known = ", ".join(sorted(folder.name for folder, _ in _all(top)))
        raise SettingsError(
            "--resume",
            "there is no lesson with these words and models here"
            + (f", only {known}" if known else ""),
            "Give the same task, models and files as before, or leave --resume out.",
        )
    folder = max(same)[1]
    for left in folder.glob("tmp-*"):  # by a run that was killed
        shutil.rmtree(left, ignore_errors=True)
    return Workspace(folder, json.loads((folder / _STATE).read_bytes()))


def _all(top: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for file in top.glob(f"*/{_STATE}"):
        try:
            state = json.loads(file.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(state, dict) and state.get("form") == _FORM:
            yield file.parent, state


def _free(folder: Path) -> Path:
    """The folder itself, or the next of its name that is not there yet."""
    base, number = folder, 1
    while base.exists():
        number += 1
        base = folder.with_name(f"{folder.name}.{number}")
    return base


def write_whole(file: Path, data: bytes) -> None:
    """A file is there with all of it or as it was: whoever is killed leaves no half."""
    new = file.with_name(f".{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(data)
        os.replace(new, file)  # noqa: PTH105 (says what it does)
    except OSError as error:
        told = (error.strerror or str(error)).lower()
        raise SettingsError(shown(file), f"this can't be written: {told}", "Make room.") from None
