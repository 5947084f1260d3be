"""A run of a command that teaches: its models, its consent, its state.

The state is in ``.upskill/teach/NAME/``, so that a killed run can be resumed. The
engine stores the answers: a resumed run asks the same questions in the same order, and
so gets all that was answered before from the store. ``session`` is part of each
question to a teacher, so that a new run of the same settings gets new answers.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from .._util.files import read_file, save_file
from .._util.json_forms import form_of, json_values
from .._util.secrets import masked
from .._util.texts import digest
from ..engine.database import make_folder
from ..engine.store import FOLDER
from ..errors import InputError, Setting, SettingsError, Spell, TeachError
from ..measure.estimate import Estimate
from ..models.prices import Price
from ..reports.terminal.progress_screen import ProgressScreen
from ..results.run_file import results_bytes
from ..skills.folder import CASES_NAME, TOOL_FOLDERS, is_skill
from .drafts import Draft, valid_name
from .outcome import Attempt, attempt_text
from .sources import Material
from .teach_models import TeachModels
from .teach_settings import TeachSettings

_STATE: Final = "state.json"


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
    # Raise AlreadyFinished rather than replay a finished run
    only_unfinished: bool = False
    in_place: bool = False  # the skill to improve may be changed
    screen: ProgressScreen = field(default_factory=ProgressScreen)
    # Override the built-in prices
    prices: Mapping[str, Price] = field(default_factory=dict)
    agree: Callable[[Estimate], bool] = lambda _: True
    opened: Callable[[TeachModels], None] = lambda _: None
    spell: Spell = str  # what the user calls a setting


@dataclass(frozen=True)
class RunState:
    """The content of state.json."""

    name: str
    digest: str  # of everything that a resumed run must have in common
    session: Annotated[int, Field(ge=1, strict=True)]
    form: Literal[1] = 1
    task: str = ""
    saved: str = ""  # the folder of the skill, once it is saved
    cost: float | None = None
    # Settings that may go further
    limits: Mapping[str, Any] = field(default_factory=dict)
    out_of_budget: bool = False


@dataclass
class StateFolder:
    """The folder of a run, with its versions and its state.json."""

    folder: Path
    state: RunState

    @property
    def session(self) -> int:
        return self.state.session

    def save(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)
        # As text: a name may hold bytes that are not UTF-8,
        # and a key is masked in text only.
        text = json.dumps(json_values(self.state), indent=1, ensure_ascii=False)
        save_file(self.folder / _STATE, text + "\n")

    def rename(self, name: str) -> None:
        """Name the folder after the skill, once its name is known."""
        if self.state.name != name:
            self.folder = self.folder.rename(_free(self.folder.with_name(name)))
            self.save(name=name)

    def attempt_folder(self, attempt: Attempt) -> Path:
        return self.folder / f"attempt-{attempt.number}"

    def keep_attempt(self, attempt: Attempt, cases: str | None = None) -> Path:
        """Keep a version with its results, and with its cases if it could not be
        saved.
        """
        folder = self.attempt_folder(attempt)
        attempt.draft.write(folder)
        save_file(folder / "report.txt", f"{attempt_text(attempt)}\n")
        if results := attempt.all_cases:
            save_file(folder / "results.json", results_bytes(results))
        if cases is not None:
            save_file(folder / CASES_NAME, cases)
        return folder

    def keep_before(self, skill: Path) -> Path:
        """Keep a copy of a skill that is about to be changed or replaced."""
        copy = _free(self.folder / "before")
        try:
            ignored = shutil.ignore_patterns(*TOOL_FOLDERS)
            shutil.copytree(skill, copy, symlinks=True, ignore=ignored)
        except OSError:
            shutil.rmtree(copy, ignore_errors=True)  # half a copy is none
            raise
        return copy


@dataclass(frozen=True)
class TeachRun:
    """What all steps of a run need."""

    settings: TeachSettings
    models: TeachModels
    material: Material
    state: StateFolder
    screen: ProgressScreen
    clock: float = field(default_factory=monotonic)  # when somebody agreed to the cost

    @property
    def changed_skill(self) -> Draft | None:
        """The skill that the task asks to change: generate --from SKILL."""
        return self.material.start if self.settings.source else None

    def mark_saved(self, folder: Path | None, cost: float | None) -> None:
        """Remember what was saved; the skill itself is what counts, so this may
        fail.
        """
        with suppress(InputError):
            self.state.save(
                saved=str(folder.absolute()) if folder else "",
                cost=cost,
                limits=self.settings.on_resume("limit"),
                out_of_budget=self.models.out_of_budget,
            )

    def final_notes(self) -> tuple[str, ...]:
        """Problems of the engine, all of which are known only when it is closed."""
        self.models.close()
        return tuple(dict.fromkeys(self.models.notes))


@contextmanager
def open_models(
    settings: TeachSettings, context: TeachContext
) -> Iterator[TeachModels]:
    """All models of a run; their engine is closed at the end."""
    models = TeachModels(
        settings, context.root, context.screen.text, context.prices, context.spell
    )
    context.opened(models)
    try:
        yield models
    except TeachError:
        context.screen.drop()
        raise
    finally:
        models.close()


def require_unfinished(
    settings: TeachSettings, context: TeachContext, material: Material
) -> None:
    """Raise AlreadyFinished if everything was saved and the limits are the same."""
    if not (settings.resume and context.only_unfinished):
        return
    state = resume_state(context.root, _digest_of_run(settings, material)).state
    folder = Path(state.saved)
    elsewhere = settings.output is not None and settings.output.absolute() != folder
    further = state.limits != settings.on_resume("limit") or state.out_of_budget
    if state.saved and is_skill(folder) and not elsewhere and not further:
        raise AlreadyFinished(folder)


def start_run(
    settings: TeachSettings,
    context: TeachContext,
    models: TeachModels,
    material: Material,
    *,
    estimate: Estimate,
    name: str,
) -> TeachRun:
    """A new run, or the one to resume, once the user agreed to its cost."""
    for line in material.lines:
        context.screen.text(line)
    if not context.agree(estimate):
        raise Declined
    key = _digest_of_run(settings, material)
    if settings.resume:
        state = resume_state(context.root, key)
    else:
        state = start_state(context.root, name, key)
    state.save(task=masked(settings.task))
    return TeachRun(settings, models, material, state, context.screen)


def start_state(root: Path, name: str, digest: str) -> StateFolder:
    """The state of a new run; an earlier one of the same name stays where it is."""
    make_folder(root / FOLDER)
    sessions = [run.session for run in _runs(root) if run.state.digest == digest]
    folder = _free(root / FOLDER / "teach" / valid_name(name))
    folder.mkdir(parents=True)
    run = StateFolder(folder, RunState(name, digest, 1 + max(sessions, default=0)))
    run.save()
    return run


def resume_state(root: Path, digest: str) -> StateFolder:
    """The state of the newest run with the same settings."""
    runs = list(_runs(root))
    newest = max(
        (run for run in runs if run.state.digest == digest),
        key=lambda run: run.session,
        default=None,
    )
    if newest is None:
        names = ", ".join(sorted(run.folder.name for run in runs))
        raise SettingsError(
            "resume",
            "no run with this task and these models was started here"
            + (f" (there is {names})" if names else ""),
            (
                "Use the same task, models and files as before, or drop ",
                Setting("resume"),
                ".",
            ),
        )
    for folder in newest.folder.glob("tmp-*"):  # of a killed run
        shutil.rmtree(folder, ignore_errors=True)
    return newest


def _runs(root: Path) -> Iterator[StateFolder]:
    for file in (root / FOLDER / "teach").glob(f"*/{_STATE}"):
        with suppress(OSError, ValueError, RecursionError):
            state = form_of(RunState).validate_python(json.loads(read_file(file)))
            yield StateFolder(file.parent, state)


def _free(folder: Path) -> Path:
    """The folder, with a number if its name is taken."""
    path, number = folder, 1
    while path.exists():
        number += 1
        path = folder.with_name(f"{folder.name}.{number}")
    return path


def _digest_of_run(settings: TeachSettings, material: Material) -> str:
    """--resume continues the run with the same digest."""
    same = json.dumps(settings.on_resume("same"), sort_keys=True, default=str)
    return digest(same, material.digest)
