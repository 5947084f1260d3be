"""A run of a command that teaches: what it may do, what it costs, how it is resumed.

Its state is in ``.upskill/teach/NAME/``, so that a killed run can be resumed. The engine stores the
answers: a resumed run asks the same questions in the same order, and so gets all that was answered
before from the store. ``session`` is part of each question to a teacher, so that a new run of the
same settings gets new answers.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from .._util.files import read_file, save_file
from .._util.texts import digest
from ..engine.database import make_folder
from ..engine.store import FOLDER
from ..errors import Setting, SettingsError, Spell, TeachError
from ..measure.estimate import Estimate
from ..models.prices import Price
from ..results.run import RunResults
from ..results.to_json import results_bytes
from ..skills.folder import CASES_NAME, TOOL_FOLDERS, is_skill
from ..trials.number_types import whole_number
from .drafts import Draft
from .progress_lines import ProgressScreen
from .secrets import masked
from .sources import Material
from .teach_models import TeachModels
from .teach_settings import TeachSettings

_STATE: Final = "state.json"
_FORM: Final = 1


@dataclass
class TeachState:
    """The folder of a run, and the content of its state.json."""

    folder: Path
    data: dict[str, Any]

    @property
    def session(self) -> int:
        return int(self.data["session"])

    def save(self, **values: Any) -> None:
        self.data |= values
        text = json.dumps(self.data, indent=1, ensure_ascii=False) + "\n"
        save_file(self.folder / _STATE, text)

    def rename(self, name: str) -> None:
        """Name the folder after the skill, once its name is known."""
        if self.data["name"] == name:
            return
        self.folder = self.folder.rename(_free(self.folder.with_name(name)))
        self.save(name=name)

    def keep_attempt(
        self, number: int, draft: Draft, results: RunResults | None, report: str
    ) -> None:
        """Keep a version with its results."""
        folder = self.folder / f"attempt-{number}"
        draft.write(folder)
        save_file(folder / "report.txt", f"{report}\n")
        if results:
            save_file(folder / "results.json", results_bytes(results))

    def keep_unsaved(self, number: int, draft: Draft, cases: str) -> Path:
        """Keep a version that could not be saved to its folder, with its cases."""
        folder = self.folder / f"attempt-{number}"
        if not folder.exists():
            draft.write(folder)
        save_file(folder / CASES_NAME, cases)
        return folder

    def keep_before(self, skill: Path) -> Path:
        """Keep a copy of a skill that is about to be changed or replaced."""
        kept = _free(self.folder / "before")
        others = shutil.ignore_patterns(*TOOL_FOLDERS)
        try:
            shutil.copytree(skill, kept, symlinks=True, ignore=others)
        except OSError:
            shutil.rmtree(kept, ignore_errors=True)  # half a copy is none
            raise
        return kept


def start_state(root: Path, name: str, digest: str) -> TeachState:
    """The state of a new run; an earlier one of the same name stays where it is."""
    top = root / FOLDER / "teach"
    make_folder(root / FOLDER)
    same = [state["session"] for _, state in _all(top) if state["digest"] == digest]
    folder = _free(top / name)
    folder.mkdir(parents=True)
    state = {"form": _FORM, "name": name, "digest": digest, "session": 1 + max(same, default=0)}
    new = TeachState(folder, state)
    new.save()
    return new


def resume_state(root: Path, digest: str) -> TeachState:
    """The state of the newest run with the same settings."""
    top = root / FOLDER / "teach"
    all_states = [(state["session"], folder, state) for folder, state in _all(top)]
    same = [one for one in all_states if one[2]["digest"] == digest]
    if not same:
        known = ", ".join(sorted(folder.name for _, folder, _ in all_states))
        raise SettingsError(
            "resume",
            "no run with this task and these models was started here"
            + (f" (there is {known})" if known else ""),
            ("Use the same task, models and files as before, or drop ", Setting("resume"), "."),
        )
    _, folder, data = max(same, key=lambda one: one[0])
    for left in folder.glob("tmp-*"):  # left by a killed run
        shutil.rmtree(left, ignore_errors=True)
    return TeachState(folder, data)


def _all(top: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for file in top.glob(f"*/{_STATE}"):
        try:
            state = json.loads(read_file(file))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(state, dict) and _is_state(state):
            yield file.parent, state


def _is_state(state: dict[str, Any]) -> bool:
    session, texts = state.get("session"), ("name", "digest", "saved")
    return (
        state.get("form") == _FORM
        and whole_number(session) == session is not None
        and all(isinstance(state.get(key, ""), str) for key in texts)
        and {"name", "digest"} <= state.keys()
    )


def _free(folder: Path) -> Path:
    """The folder, with a number if its name is taken."""
    base, number = folder, 1
    while base.exists():
        number += 1
        base = folder.with_name(f"{folder.name}.{number}")
    return base


class Declined(Exception):
    """The user did not agree to the cost."""


class AlreadyFinished(Exception):
    """The run to resume has nothing left to do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder


@dataclass(frozen=True)
class TeachContext:
    """Where a run takes place, how it is shown, and what it may do."""

    root: Path = field(default_factory=Path.cwd)  # the project
    skills: Path | None = None  # the folder of skills; None is ./skills
    only_unfinished: bool = False  # raise AlreadyFinished rather than replay a finished run
    in_place: bool = False  # the skill to improve may be changed
    screen: ProgressScreen = field(default_factory=ProgressScreen)
    prices: Mapping[str, Price] = field(default_factory=dict)  # instead of the known ones
    agree: Callable[[Estimate], bool] = lambda _: True
    opened: Callable[[TeachModels], None] = lambda _: None
    spell: Spell = str  # what the user calls a setting


@contextmanager
def open_models(settings: TeachSettings, context: TeachContext) -> Iterator[TeachModels]:
    """All models of a run; their engine is closed at the end."""
    models = TeachModels(settings, context.root, context.screen.line, context.prices, context.spell)
    context.opened(models)
    try:
        yield models
    except TeachError:
        context.screen.drop()
        raise
    finally:
        models.close()


def require_consent(
    context: TeachContext, material: Material, models: TeachModels, guess: Estimate
) -> None:
    for line in (*material.lines, *models.lines):
        context.screen.line(line)
    if not context.agree(guess):
        raise Declined


def require_unfinished(settings: TeachSettings, context: TeachContext, material: Material) -> None:
    """Raise AlreadyFinished if all was done and saved, and the limits are the same."""
    if not (settings.resume and context.only_unfinished):
        return
    state = resume_state(context.root, digest_of_run(settings, material)).data
    folder = Path(state.get("saved", ""))
    elsewhere = settings.output is not None and settings.output.absolute() != folder
    further = state.get("limits") != settings.on_resume("limit") or state.get("out_of_budget")
    if "saved" in state and is_skill(folder) and not elsewhere and not further:
        raise AlreadyFinished(folder)


def state_of_run(
    settings: TeachSettings, context: TeachContext, material: Material, name: str
) -> TeachState:
    """The state of the run to resume, or of a new one."""
    same, root = digest_of_run(settings, material), context.root
    state = resume_state(root, same) if settings.resume else start_state(root, name, same)
    state.save(task=masked(settings.task))
    return state


def digest_of_run(settings: TeachSettings, material: Material) -> str:
    """--resume continues the run with the same digest."""
    same = json.dumps(settings.on_resume("same"), sort_keys=True, default=str)
    return digest(same, material.digest)
