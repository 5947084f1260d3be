"""The same as the commands do, for Python: sync, and async by a thread of its own."""

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, TypedDict, TypeVar, Unpack

from ..errors import SettingsError
from ..measure.evaluate import evaluate_cases
from ..models.prices import parse_prices
from ..results.run import RunResults
from ..skills.skill import SKILL_NAMES, load_skill
from . import workflow
from .attempts import checked
from .case_file import read_case_file
from .classroom import Classroom
from .outcome import Taught
from .progress_lines import Screen
from .teach_settings import DEFAULT_CASES, DEFAULT_STUDENT, DEFAULT_TEACHER, Lesson
from .workflow import How

Given = ParamSpec("Given")
Result = TypeVar("Result")
Tell = Callable[[str], None]


AnyPath = str | os.PathLike[str]
Names = str | Sequence[str]  # a text is one name, and not its letters

# Options of the commands that are called otherwise here; the others have their own name.
_PARAMETERS: Final = {
    "-o": "output",
    "--force": "force=True",
    "--from": "source",
    "--model": "teacher",
    "--base-url": "teacher_url",
    "--eval-model": "students",
    "--eval-base-url": "student_url",
    "--test-model": "author",
}
_OPTION: Final = re.compile(r"(?<![\w-])(?:-o|--[a-z][a-z-]*)(?![\w-])")


def _told_in_python(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The same, with errors that name parameters and not options."""

    def name(option: re.Match[str]) -> str:
        return _PARAMETERS.get(option[0], option[0].lstrip("-").replace("-", "_"))

    @wraps(function)
    def told(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except SettingsError as error:
            parts = (error.where, error.problem, error.hint)
            raise SettingsError(*(_OPTION.sub(name, part) for part in parts)) from None

    return told


class Wishes(TypedDict, total=False):
    """What a lesson may be told, as the options of the commands; see Lesson for the defaults."""

    examples: Names
    source: AnyPath | None
    tool: str | None
    teacher_url: str | None
    student_url: str | None
    author: str | None
    adversary: str | None
    judge: str | None
    runs: int
    holdout: float
    attempts: int
    target: float
    max_skill_tokens: int
    max_output: int
    max_cost: float | None
    name: str | None


@_told_in_python
def generate_skill(
    task: str,
    *,
    teacher: str = DEFAULT_TEACHER,
    students: Names = (DEFAULT_STUDENT,),
    cases: int = DEFAULT_CASES,
    output: AnyPath | None = None,
    folder: AnyPath | None = None,
    prices: Names = (),
    resume: bool = False,
    force: bool = False,
    tell: Tell | None = None,
    **wishes: Unpack[Wishes],
) -> Taught:
    """A skill for a task, with cases, measured on the students and improved, saved on disk.

    ``folder`` is the project (the current one), ``output`` the skill's own folder in place of
    ``skills/NAME``; ``tell`` gets a line for each step; ``prices`` are lines as in the ini file.
    With no students nothing is measured.
    Without ``force`` nothing that is there is replaced, or improved in place.
    """
    lesson = _lesson(task, teacher, students, cases, wishes)
    how = _how(
        folder, tell, prices, output=_path(output), resume=resume, force=force, in_place=force
    )
    return workflow.generate(lesson, how)


@_told_in_python
def refine(
    skill: AnyPath,
    *,
    teacher: str = DEFAULT_TEACHER,
    students: Names = (DEFAULT_STUDENT,),
    task: str | None = None,
    folder: AnyPath | None = None,
    prices: Names = (),
    resume: bool = False,
    tell: Tell | None = None,
    **wishes: Unpack[Wishes],
) -> Taught:
    """The best version of a skill by its cases, in its place; as it is if none does better."""
    lesson = _lesson(task or _described(skill), teacher, students, DEFAULT_CASES, wishes)
    return workflow.refine(Path(skill), lesson, _how(folder, tell, prices, resume=resume))


@_told_in_python
def generate_cases(
    skill: AnyPath,
    number: int = DEFAULT_CASES,
    *,
    teacher: str = DEFAULT_TEACHER,
    students: Names = (),
    task: str | None = None,
    folder: AnyPath | None = None,
    prices: Names = (),
    resume: bool = False,
    tell: Tell | None = None,
    **wishes: Unpack[Wishes],
) -> Taught:
    """So many cases more for a skill, tried before they count; the skill itself is left alone."""
    lesson = _lesson(task or _described(skill), teacher, students, number, wishes)
    return workflow.add_cases(Path(skill), lesson, _how(folder, tell, prices, resume=resume))


@_told_in_python
def evaluate(
    skill: AnyPath,
    *,
    students: Names = (DEFAULT_STUDENT,),
    folder: AnyPath | None = None,
    prices: Names = (),
    **wishes: Unpack[Wishes],
) -> RunResults:
    """A skill measured by its own cases on some models, without pytest."""
    return _evaluate(Path(skill), _names(students), _how(folder, None, prices), wishes)


def _nobody(_: Classroom) -> None:
    pass


# Who wants to know of the engine of a call, so that it can be stopped.
_OPENED: ContextVar[Callable[[Classroom], None]] = ContextVar("opened", default=_nobody)


async def _in_thread(work: Callable[[], Result]) -> Result:
    rooms, stopped = list[Classroom](), asyncio.Event()

    def opened(room: Classroom) -> None:
        rooms.append(room)
        if stopped.is_set():
            room.close()

    token = _OPENED.set(opened)
    try:
        task = asyncio.ensure_future(asyncio.to_thread(work))  # which copies the context
    finally:
        _OPENED.reset(token)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stopped.set()
        for room in rooms:
            await asyncio.to_thread(room.close)
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # that it was stopped, which is no news
        raise


def _async_of(function: Callable[Given, Result]) -> Callable[Given, Coroutine[Any, Any, Result]]:
    """The same, awaited. Cancelling it ends all that is being asked."""

    @wraps(function)
    async def twin(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        return await _in_thread(partial(function, *args, **kwargs))

    return twin


generate_skill_async = _async_of(generate_skill)
refine_async = _async_of(refine)
generate_cases_async = _async_of(generate_cases)
evaluate_async = _async_of(evaluate)


def _evaluate(skill: Path, students: tuple[str, ...], how: How, wishes: Wishes) -> RunResults:
    read = load_skill(_skill_file(skill))
    if not students:
        raise SettingsError("students", "no model is named", "Name one, say students=['haiku'].")
    # Nobody teaches here: a student stands in for the teacher, and is not asked as one.
    lesson = _lesson(read.description, students[0], students, 0, wishes)
    lesson = replace(lesson, teacher_url=lesson.student_url or lesson.teacher_url)
    cases = read_case_file(read.file.parent).cases
    with workflow.classroom(lesson, how) as room:
        return evaluate_cases(
            read, checked(cases), room.students, room.settings, room.ask, room.price_of
        )


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _path(given: AnyPath | None) -> Path | None:
    return None if given is None else Path(given)


def _lesson(task: str, teacher: str, students: Names, cases: int, wishes: Wishes) -> Lesson:
    given: dict[str, Any] = {
        **wishes,
        "examples": _names(wishes.get("examples", ())),
        "source": _path(wishes.get("source")),
    }
    return Lesson(task, teacher=teacher, students=_names(students), cases=cases, **given)


def _how(folder: AnyPath | None, tell: Tell | None, prices: Names, **more: Any) -> How:
    def write(text: str) -> None:
        if tell:
            tell(text.rstrip("\n"))

    return How(
        root=_path(folder) or Path.cwd(),
        screen=Screen(write),
        opened=_OPENED.get(),
        prices=parse_prices(_names(prices)),
        **more,
    )


def _skill_file(skill: Path) -> Path:
    names = (skill / name for name in SKILL_NAMES)
    return skill if skill.is_file() else next(filter(Path.is_file, names), skill / SKILL_NAMES[0])


def _described(skill: AnyPath) -> str:
    return load_skill(_skill_file(Path(skill))).description
