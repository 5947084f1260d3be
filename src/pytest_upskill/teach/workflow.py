"""Run generate, refine and cases end to end."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from .._util.texts import digest, slug
from ..errors import SettingsError, TeachError, shown
from ..models.prices import Price
from ..skills.skill import SKILL_NAMES, fields_of, load_skill
from . import saving
from .attempts import Attempt
from .case_file import CaseFile, read_case_file, require_growable
from .classroom import Classroom
from .drafts import Draft, draft_of
from .estimate import Estimate, Steps, estimate, too_few
from .outcome import Taught
from .progress_lines import Screen
from .secrets import masked
from .sources import Material, gather
from .state import Workspace, begin, resume
from .steps import Course, all_cases
from .teach_settings import FEWEST_CASES, TeachSettings, check


class Declined(Exception):
    """The user did not agree to the cost."""


class AlreadyFinished(Exception):
    """The run to resume has nothing left to do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder


@dataclass(frozen=True)
class TeachContext:
    """Where a run takes place, and who watches it."""

    root: Path = field(default_factory=Path.cwd)  # the project
    skills: Path | None = None  # the folder of skills; None is ./skills
    only_unfinished: bool = False  # raise AlreadyFinished rather than replay a finished run
    in_place: bool = False  # the skill to improve may be changed
    screen: Screen = field(default_factory=Screen)
    prices: Mapping[str, Price] = field(default_factory=dict)  # in place of the known ones
    agree: Callable[[Estimate], bool] = lambda _: True
    opened: Callable[[Classroom], None] = lambda _: None


def generate(settings: TeachSettings, context: TeachContext) -> Taught:
    """A skill from a task, a trace or a skill, with cases, measured and improved."""
    check(settings, fewest_cases=FEWEST_CASES)
    parent = context.skills or context.root / "skills"
    if settings.output:
        settings = replace(settings, name=saving.checked_name("-o", settings.output.resolve().name))
    elif settings.name:
        saving.checked_name("--name", settings.name)
    with classroom(settings, context) as room:
        material = gather(settings, room.provider)
        start = material.start
        known = read_case_file(start.base) if start and start.base else CaseFile()
        require_growable(known)
        _require_unfinished(settings, context, material)
        in_place = start is not None and settings.output is None and settings.name is None
        if in_place and not context.in_place:
            problem = "this skill would be changed in place"
            hint = "Add --force (the old one is kept), or name another folder with -o."
            raise SettingsError(f"--from {shown(settings.source or parent)}", problem, hint)
        target = settings.output or (parent / settings.name if settings.name else None)
        if target:
            flag = "-o" if settings.output else "--name"
            saving.require_free(flag, target, force=settings.force)
            place = target.resolve().parent if target.is_dir() else target
            saving.require_writable(f"{flag} {shown(target)}", place)
        else:
            place = start.base if in_place and start and start.base else parent
            saving.require_writable(shown(place), place)
        missing = max(0, settings.cases - len(known.cases))
        guess = estimate(settings, room, material, Steps(True, missing, len(known.cases)))
        _agreed(context, _with_warning(guess, known, missing, settings, room))
        first_name = settings.name or (start.name if start else slug(settings.task) or "my-skill")
        course = _course(settings, context, room, material, first_name)

        taken = list[Path]()

        def named(name: str) -> str:
            if target or in_place:
                return name
            found = _free(parent, name, course.workspace, force=settings.force)
            taken.extend([parent / name] if found != name else [])
            return found

        draft = course.draft(named)
        new, silent = course.write_cases(draft, known.cases, missing)
        new += course.attack(draft, [*known.cases, *new]) if room.students else []
        cases = all_cases(known, new)
        held = course.split(cases)
        if room.students:
            taught = course.teach(draft, cases, held, silent, start)
        else:
            taught = Taught((Attempt(1, draft, None),), tuple(cases), held, "")
        folder = start.base if in_place and start else target or parent / draft.name
        taught = _saved(course, taught, known, folder or parent / draft.name)
        for other in taken if taught.folder else ():
            context.screen.line(f"{shown(other)} is there already: saved as {draft.name}")
        return taught


def refine(path: Path, settings: TeachSettings, context: TeachContext) -> Taught:
    """The loop alone, on a skill that has cases; left as it is if no version does better."""
    check(settings)
    start, known = _skill_with_cases(path)
    if len(known.cases) < 2:
        raise SettingsError(
            shown(path), "this skill has too few cases to go by", "Run pytest-upskill cases first."
        )
    if settings.adversary:
        require_growable(known)
    _require_writable(start)
    with classroom(settings, context) as room:
        material = Material(start=start)
        _require_unfinished(settings, context, material)
        guess = estimate(settings, room, material, Steps(False, 0, len(known.cases)))
        _agreed(context, _with_warning(guess, known, 0, settings, room))
        course = _course(settings, context, room, material, start.name)
        new = course.attack(start, known.cases)
        cases = all_cases(known, new)
        taught = course.teach(start, cases, course.split(cases))
        if taught.best.number == 1 and not new:
            return replace(taught, cost=room.spent(), notes=_notes(taught, room))
        return _saved(course, taught, known, start.base or path)


def add_cases(path: Path, settings: TeachSettings, context: TeachContext) -> Taught:
    """Cases for a skill that has none, or more of them; the skill itself is left alone."""
    check(settings)
    start, known = _skill_with_cases(path)
    require_growable(known)
    if settings.cases < 1 or settings.cases + len(known.cases) < FEWEST_CASES:
        problem = f"a skill needs {FEWEST_CASES} cases or more"
        raise SettingsError(f"{settings.cases} cases for {shown(path)}", problem, "Write more.")
    _require_writable(start)
    with classroom(settings, context) as room:
        material = gather(settings, room.provider)
        _require_unfinished(settings, context, material)
        steps = Steps(False, settings.cases, len(known.cases))
        _agreed(context, estimate(replace(settings, attempts=1), room, material, steps))
        course = _course(settings, context, room, material, start.name)
        new, silent = course.write_cases(start, known.cases, settings.cases, fewest=1)
        cases = all_cases(known, new)
        held = course.split(cases)
        first = Attempt(1, start, None)
        taught = Taught((first,), tuple(cases), held, "", no_signal=silent)
        saved = _saved(course, taught, known, start.base or path, wrote=False)
        return replace(saved, kept=None)  # of the skill nothing was changed


def _require_writable(skill: Draft) -> None:
    if skill.base:
        saving.require_writable(shown(skill.base), skill.base)


def _saved(
    course: Course, taught: Taught, known: CaseFile, folder: Path, *, wrote: bool = True
) -> Taught:
    """``wrote``: the teacher wrote the skill itself, and not only cases of it."""
    room, workspace = course.room, course.workspace
    metadata = saving.metadata_of(taught, course.settings.task, room.teacher) if wrote else {}
    text = saving.saved_cases(known, taught, metadata)
    spent = room.spent()
    taught = replace(taught, cost=spent, notes=_notes(taught, room))
    try:
        kept = saving.save(taught.best.draft, text, folder, workspace)
    except SettingsError as error:
        return replace(taught, unsaved=_unsaved(error, taught.best, text, workspace))
    with suppress(SettingsError):  # what counts is saved
        workspace.save(
            saved=str(folder.absolute()),
            cost=spent,
            limits=course.settings.on_resume("limit"),
            out_of_budget=room.out_of_budget,
        )
    return replace(taught, folder=folder, kept=kept)


def _unsaved(error: SettingsError, best: Attempt, cases: str, workspace: Workspace) -> str:
    """What a person must know who paid for something that could not be saved."""
    told = f"Not saved: {error.where}: {error.problem}."
    with suppress(SettingsError, OSError):
        kept = workspace.keep_unsaved(best.number, best.draft, cases)
        told += f"\nThe best version is kept in {shown(kept)}"
    return f"{told}\n--resume saves it without asking anything again, once that is fixed."


def _notes(taught: Taught, room: Classroom) -> tuple[str, ...]:
    return (*taught.notes, *dict.fromkeys(room.notes))


def _skill_with_cases(path: Path) -> tuple[Draft, CaseFile]:
    file = (
        path
        if path.is_file()
        else next(
            (path / name for name in SKILL_NAMES if (path / name).is_file()), path / SKILL_NAMES[0]
        )
    )
    return draft_of(load_skill(file), fields_of(file)), read_case_file(file.parent)


@contextmanager
def classroom(settings: TeachSettings, context: TeachContext) -> Iterator[Classroom]:
    """All who are asked; their engine ends with it."""
    room = Classroom(settings, context.root, context.screen.line, context.prices)
    context.opened(room)
    try:
        yield room
    except TeachError:
        context.screen.drop()
        raise
    finally:
        room.close()


def _agreed(context: TeachContext, guess: Estimate) -> None:
    if not context.agree(guess):
        raise Declined


def _with_warning(
    guess: Estimate, known: CaseFile, new: int, settings: TeachSettings, room: Classroom
) -> Estimate:
    if not room.students:  # nothing is measured
        return guess
    return replace(guess, warning=too_few(known.cases, new, settings.holdout, len(room.students)))


def _course(
    settings: TeachSettings, context: TeachContext, room: Classroom, material: Material, name: str
) -> Course:
    same = _digest(settings, material)
    workspace = resume(context.root, same) if settings.resume else begin(context.root, name, same)
    workspace.save(task=masked(settings.task))
    return Course(settings, room, material, workspace, context.screen)


def _digest(settings: TeachSettings, material: Material) -> str:
    """A run is resumed by one with the same digest."""
    same = json.dumps(settings.on_resume("same"), sort_keys=True, default=str)
    return digest(same, material.digest)


def _require_unfinished(settings: TeachSettings, context: TeachContext, material: Material) -> None:
    """AlreadyFinished if all was done and saved, and no more is wished for now than then."""
    if not (settings.resume and context.only_unfinished):
        return
    state = resume(context.root, _digest(settings, material)).state
    folder = Path(state.get("saved", ""))
    elsewhere = settings.output is not None and settings.output.absolute() != folder
    further = state.get("limits") != settings.on_resume("limit") or state.get("out_of_budget")
    if "saved" in state and saving.is_skill(folder) and not elsewhere and not further:
        raise AlreadyFinished(folder)


def _free(parent: Path, name: str, workspace: Workspace, *, force: bool) -> str:
    """A name that is not taken, unless by what this very settings saved or a skill to replace."""
    saved = Path(workspace.state.get("saved", ""))
    if saved.parent == parent.absolute() and saved.exists():
        return saved.name
    if force and saving.is_skill(parent / name):
        return name
    return saving.free_name(parent, name)
