"""A run of a command that teaches: its models, its consent, the versions it writes.

Nothing else is kept of a run. An interrupted command is run again: it asks the same
questions in the same order, and the engine has stored what was answered.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import monotonic

from .._util.files import save_file
from ..engine.database import make_folder
from ..engine.store import FOLDER
from ..errors import Spell, TeachError
from ..measure.estimate import Estimate
from ..models.prices import Price
from ..reports.terminal.progress_screen import ProgressScreen
from ..results.run_file import results_bytes
from ..skills.folder import CASES_NAME, TOOL_FOLDERS
from ..skills.skill import LONGEST_NAME
from .drafts import Draft
from .outcome import Attempt, attempt_text
from .sources import Material
from .teach_models import TeachModels
from .teach_settings import TeachSettings


class Declined(Exception):
    """The user did not agree to the cost."""


@dataclass(frozen=True)
class TeachContext:
    """Where a run takes place, how it is shown, and what it may do."""

    root: Path = field(default_factory=Path.cwd)  # the project
    skills: Path | None = None  # the folder of skills; None is ./skills
    in_place: bool = False  # the skill to improve may be changed
    screen: ProgressScreen = field(default_factory=ProgressScreen)
    # Override the built-in prices
    prices: Mapping[str, Price] = field(default_factory=dict)
    agree: Callable[[Estimate], bool] = lambda _: True
    opened: Callable[[TeachModels], None] = lambda _: None
    spell: Spell = str  # what the user calls a setting


@dataclass
class Versions:
    """The versions of a skill that a run wrote, in ``.upskill/teach/NAME``.

    Every run has a folder of its own, which is made when it is needed.
    """

    root: Path  # the project
    name: str  # of the skill

    @cached_property
    def folder(self) -> Path:
        parent = self.root / FOLDER / "teach"
        folder = parent / free_name(parent, self.name)
        folder.mkdir(parents=True)
        return folder

    def folder_of(self, attempt: Attempt) -> Path:
        return self.folder / f"attempt-{attempt.number}"

    def keep(self, attempt: Attempt, cases: str | None = None) -> Path:
        """Keep a version with its results, and with its cases if it could not be
        saved.
        """
        folder = self.folder_of(attempt)
        attempt.draft.write(folder)
        save_file(folder / "report.txt", f"{attempt_text(attempt)}\n")
        if results := attempt.all_cases:
            save_file(folder / "results.json", results_bytes(results))
        if cases is not None:
            save_file(folder / CASES_NAME, cases)
        return folder

    def keep_before(self, skill: Path) -> Path:
        """Keep a copy of a skill that is about to be changed or replaced."""
        copy = self.folder / "before"
        try:
            ignored = shutil.ignore_patterns(*TOOL_FOLDERS)
            shutil.copytree(skill, copy, symlinks=True, ignore=ignored)
        except OSError:
            shutil.rmtree(copy, ignore_errors=True)  # half a copy is none
            raise
        return copy


def free_name(parent: Path, name: str) -> str:
    """The name, with a number if it is taken."""
    number = 2
    free = name
    while os.path.lexists(parent / free):
        free = f"{name[: LONGEST_NAME - 4]}-{number}"
        number += 1
    return free


@dataclass
class TeachRun:
    """What all steps of a run need."""

    settings: TeachSettings
    context: TeachContext
    models: TeachModels
    versions: Versions
    material: Material = field(default_factory=Material)
    clock: float = 0.0  # when somebody agreed to the cost

    @property
    def screen(self) -> ProgressScreen:
        return self.context.screen

    @property
    def changed_skill(self) -> Draft | None:
        """The skill that the task asks to change: generate --from SKILL."""
        return self.material.start if self.settings.source else None

    def start(self, estimate: Estimate) -> None:
        """Say what is sent, and ask for consent; Declined if there is none."""
        for line in self.material.lines:
            self.screen.text(line)
        if not self.context.agree(estimate):
            raise Declined

        make_folder(self.context.root / FOLDER)
        self.clock = monotonic()

    def final_notes(self) -> tuple[str, ...]:
        """Problems of the engine, all of which are known only when it is closed."""
        self.models.close()
        return tuple(dict.fromkeys(self.models.notes))


@contextmanager
def open_teaching(
    settings: TeachSettings, context: TeachContext, name: str = ""
) -> Iterator[TeachRun]:
    """A run for the skill of this name; the engine of its models is closed at the
    end.
    """
    screen = context.screen
    models = TeachModels(
        settings, context.root, screen.text, context.prices, context.spell
    )
    context.opened(models)
    try:
        yield TeachRun(settings, context, models, Versions(context.root, name))
    except TeachError:
        screen.drop()
        raise
    finally:
        models.close()
