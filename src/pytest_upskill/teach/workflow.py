"""Run generate, refine and cases end to end."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

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
from .teach_settings import FEWEST_CASES, Lesson

# They say how far to go, not what is asked: a lesson that is resumed may go further.
_LIMITS: Final = ("attempts", "target", "max_cost", "name")
_NOT_SHAPING: Final = (*_LIMITS, "source")


class NotAgreed(Exception):
    """Whoever was asked whether to go on said no."""


class Finished(Exception):
    """A lesson that is to be resumed has nothing left to do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder


@dataclass(frozen=True)
class How:
    """How a lesson is run: where, over what, and who watches."""

    root: Path = field(default_factory=Path.cwd)
    skills: Path | None = None  # where skills are kept; ./skills
    output: Path | None = None  # the folder of the skill itself
    resume: bool = False
    only_unfinished: bool = False  # Finished, in place of its result from the stored answers
    force: bool = False  # replace a skill that is there
    in_place: bool = False  # change the skill that is to be improved
    screen: Screen = field(default_factory=Screen)
    prices: Mapping[str, Price] = field(default_factory=dict)  # where the known ones are not ours
    agree: Callable[[Estimate], bool] = lambda _: True
    opened: Callable[[Classroom], None] = lambda _: None


def check(lesson: Lesson, *, writes: bool) -> None:
    """SettingsError for what no lesson can be made of."""
    limits = {
        "--cases": (lesson.cases, FEWEST_CASES if writes else 0, 200),
        "--runs": (lesson.runs, 1, 100),
        "--attempts": (lesson.attempts, 1, 50),
        "--max-skill-tokens": (lesson.max_skill_tokens, 50, 100_000),
        "--max-output": (lesson.max_output, 1, 1_000_000),
        "--holdout": (lesson.holdout, 0, 0.8),
        "--target": (lesson.target, 0, 1),
        "--max-cost": (1 if lesson.max_cost is None else lesson.max_cost, 0, 1_000_000),
    }
    for flag, (value, least, most) in limits.items():
        if not least <= value <= most:
            problem = f"this is not within {least:,} and {most:,}"
            raise SettingsError(f"{flag} {value:g}", problem, "Choose a number between them.")
    if not lesson.task.strip():
        raise SettingsError("TASK", "nothing is given", "Say in words what the skill is for.")


def generate(lesson: Lesson, how: How) -> Taught:
    """A skill from a task, a trace or a skill, with cases, measured and improved."""
    check(lesson, writes=True)
    parent = how.skills or how.root / "skills"
    if how.output:
        lesson = replace(lesson, name=saving.checked_name("-o", how.output.resolve().name))
    elif lesson.name:
        saving.checked_name("--name", lesson.name)
    with classroom(lesson, how) as room:
        material = gather(lesson, room.provider)
        start = material.start
        known = read_case_file(start.base) if start and start.base else CaseFile()
        require_growable(known)
        _require_unfinished(lesson, how, material)
        in_place = start is not None and how.output is None and lesson.name is None
        if in_place and not how.in_place:
            problem = "this skill would be changed in place"
            hint = "Add --force (the old one is kept), or name another folder with -o."
            raise SettingsError(f"--from {shown(lesson.source or parent)}", problem, hint)
        target = how.output or (parent / lesson.name if lesson.name else None)
        if target:
            flag = "-o" if how.output else "--name"
            saving.require_free(flag, target, force=how.force)
            place = target.resolve().parent if target.is_dir() else target
            saving.require_writable(f"{flag} {shown(target)}", place)
        else:
            place = start.base if in_place and start and start.base else parent
            saving.require_writable(shown(place), place)
        missing = max(0, lesson.cases - len(known.cases))
        guess = estimate(lesson, room, material, Steps(True, missing, len(known.cases)))
        _agreed(how, _with_remark(guess, known, missing, lesson, room))
        first_name = lesson.name or (start.name if start else slug(lesson.task) or "my-skill")
        course = _course(lesson, how, room, material, first_name)

        taken = list[Path]()

        def named(name: str) -> str:
            if target or in_place:
                return name
            found = _free(parent, name, course.workspace, force=how.force)
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
            how.screen.line(f"{shown(other)} is there already: saved as {draft.name}")
        return taught


def refine(path: Path, lesson: Lesson, how: How) -> Taught:
    """The loop alone, on a skill that has cases; left as it is if no version does better."""
    check(lesson, writes=False)
    start, known = _skill_with_cases(path)
    if len(known.cases) < 2:
        raise SettingsError(
            shown(path), "this skill has too few cases to go by", "Run pytest-upskill cases first."
        )
    if lesson.adversary:
        require_growable(known)
    _require_writable(start)
    with classroom(lesson, how) as room:
        material = Material(start=start)
        _require_unfinished(lesson, how, material)
        guess = estimate(lesson, room, material, Steps(False, 0, len(known.cases)))
        _agreed(how, _with_remark(guess, known, 0, lesson, room))
        course = _course(lesson, how, room, material, start.name)
        new = course.attack(start, known.cases)
        cases = all_cases(known, new)
        taught = course.teach(start, cases, course.split(cases))
        if taught.best.number == 1 and not new:
            return replace(taught, cost=room.spent(), notes=_notes(taught, room))
        return _saved(course, taught, known, start.base or path)


def add_cases(path: Path, lesson: Lesson, how: How) -> Taught:
    """Cases for a skill that has none, or more of them; the skill itself is left alone."""
    check(lesson, writes=False)
    start, known = _skill_with_cases(path)
    require_growable(known)
    if lesson.cases < 1 or lesson.cases + len(known.cases) < FEWEST_CASES:
        problem = f"a skill needs {FEWEST_CASES} cases or more"
        raise SettingsError(f"{lesson.cases} cases for {shown(path)}", problem, "Write more.")
    _require_writable(start)
    with classroom(lesson, how) as room:
        material = gather(lesson, room.provider)
        _require_unfinished(lesson, how, material)
        steps = Steps(False, lesson.cases, len(known.cases))
        _agreed(how, estimate(replace(lesson, attempts=1), room, material, steps))
        course = _course(lesson, how, room, material, start.name)
        new, silent = course.write_cases(start, known.cases, lesson.cases, fewest=1)
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
    metadata = saving.metadata_of(taught, course.lesson.task, room.teacher) if wrote else {}
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
            limits=_limits(course.lesson),
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
def classroom(lesson: Lesson, how: How) -> Iterator[Classroom]:
    """All who are asked; their engine ends with it."""
    room = Classroom(lesson, how.root, how.screen.line, how.prices)
    how.opened(room)
    try:
        yield room
    except TeachError:
        how.screen.drop()
        raise
    finally:
        room.close()


def _agreed(how: How, guess: Estimate) -> None:
    if not how.agree(guess):
        raise NotAgreed


def _with_remark(
    guess: Estimate, known: CaseFile, new: int, lesson: Lesson, room: Classroom
) -> Estimate:
    if not room.students:  # nothing is measured
        return guess
    return replace(guess, remark=too_few(known.cases, new, lesson.holdout, len(room.students)))


def _course(lesson: Lesson, how: How, room: Classroom, material: Material, name: str) -> Course:
    mark = _mark(lesson, material)
    workspace = resume(how.root, mark) if how.resume else begin(how.root, name, mark)
    workspace.save(task=masked(lesson.task))
    return Course(lesson, room, material, workspace, how.screen)


def _mark(lesson: Lesson, material: Material) -> str:
    """What tells a lesson from others."""
    wish = {key: value for key, value in asdict(lesson).items() if key not in _NOT_SHAPING}
    return digest(json.dumps(wish, sort_keys=True, default=str), material.digest)


def _limits(lesson: Lesson) -> dict[str, Any]:
    return {key: getattr(lesson, key) for key in _LIMITS}


def _require_unfinished(lesson: Lesson, how: How, material: Material) -> None:
    """Finished if all was done and saved, and no more is wished for now than then."""
    if not (how.resume and how.only_unfinished):
        return
    state = resume(how.root, _mark(lesson, material)).state
    folder = Path(state.get("saved", ""))
    elsewhere = how.output is not None and how.output.absolute() != folder
    further = state.get("limits") != _limits(lesson) or state.get("out_of_budget")
    if "saved" in state and saving.is_skill(folder) and not elsewhere and not further:
        raise Finished(folder)


def _free(parent: Path, name: str, workspace: Workspace, *, force: bool) -> str:
    """A name that is not taken, unless by what this very lesson saved or a skill to replace."""
    saved = Path(workspace.state.get("saved", ""))
    if saved.parent == parent.absolute() and saved.exists():
        return saved.name
    if force and saving.is_skill(parent / name):
        return name
    return saving.free_name(parent, name)
