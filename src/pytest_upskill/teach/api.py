"""The Python API: each command as a function, and an async twin
that runs it in a thread.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, TypedDict, TypeVar, Unpack

from ..errors import SettingsError
from ..models.prices import parse_prices
from ..options import PATH, PATHS, options_of
from ..reports.terminal.progress_screen import ProgressScreen
from ..results.run import RunResults
from ..settings import Settings
from ..skills.context import load_for_run
from ..skills.folder import skill_file
from .case_file import read_case_file
from .improvement import with_checks
from .outcome import Taught
from .teach_models import TeachModels
from .teach_run import TeachContext, open_teaching
from .teach_settings import (
    DEFAULT_CASES,
    KINDS,
    TeachCommand,
    TeachSettings,
)
from .workflow import add_cases, refine_skill, write_skill

Params = ParamSpec("Params")
Result = TypeVar("Result")
Tell = Callable[[str], None]
AnyPath = str | os.PathLike[str]
Names = str | Sequence[str]  # one name, or several
_POLL_SECONDS: Final = 0.1


class TeachOptions(TypedDict, total=False):
    """The types of the options, for editors and type checkers;
    TeachSettings explains them.
    """

    folder: AnyPath | None  # the project; default: the current folder
    prices: Names  # lines as in the ini file
    tell: Tell | None  # gets a line for each step
    examples: Names
    source: AnyPath | None
    traces: AnyPath | Sequence[AnyPath]
    with_skills: AnyPath | Sequence[AnyPath]
    noise: int
    tool: str | None
    teacher: str
    teacher_url: str | None
    students: Names
    student_url: str | None
    agents: Names
    author: str | None
    adversary: str | None
    judge: str | None
    cases: int
    queries: int
    runs: int
    holdout: float
    attempts: int
    target: float
    max_skill_tokens: int | None
    margin: float
    max_output: int | None
    max_turns: int
    sandbox: str
    allow_code: bool
    max_cost: float | None
    output: AnyPath | None
    name: str | None
    force: bool
    anyway: bool
    fresh: bool


def generate_skill(task: str, **options: Unpack[TeachOptions]) -> Taught:
    """Write a skill and its cases, measure it on the students, improve it and save it.

    ``output`` is the folder of the skill (default: ``skills/NAME``). Without students
    nothing is measured. Without ``force`` no skill is replaced, or improved in place.
    """
    return write_skill(*read_options("generate", task, options))


def refine(
    skill: AnyPath, *, task: str | None = None, **options: Unpack[TeachOptions]
) -> Taught:
    """Improve a skill by its cases, in place; unchanged if no version does better.

    With ``max_skill_tokens`` it is made shorter instead, if little is lost.
    """
    return refine_skill(Path(skill), *read_options("refine", task, options))


def generate_cases(
    skill: AnyPath,
    number: int = DEFAULT_CASES,
    *,
    task: str | None = None,
    **options: Unpack[TeachOptions],
) -> Taught:
    """Write ``number`` more cases for a skill; the skill itself is unchanged."""
    return add_cases(
        Path(skill), *read_options("cases", task, {**options, "cases": number})
    )


def evaluate(
    skill: AnyPath, *, references: bool = False, **options: Unpack[TeachOptions]
) -> RunResults:
    """Measure a skill by its own cases on the students, without pytest.

    With ``references``, the files that SKILL.md refers to are put in context too.
    """
    read = load_for_run(skill_file(Path(skill)), Settings(references=references))
    settings, context = read_options("refine", None, options)
    if not settings.students:
        raise SettingsError(
            "students", "no model is named", "Name one, for example students=['haiku']."
        )
    # There is no teacher here, and a student takes its place
    # without being asked as one.
    url = settings.student_url or settings.teacher_url
    settings = replace(settings, teacher=settings.students[0], teacher_url=url)
    cases = read_case_file(read.file.parent, agents=settings.only_agents).cases
    with open_teaching(settings, context) as run:
        models = run.models
        checked = with_checks(cases)
        arms = models.arms(read, checked, models.students)
        return models.evaluate(read, checked, models.students, arms)


# Called with the models of a call, so that it can be stopped.
_OPENED: ContextVar[Callable[[TeachModels], None]] = ContextVar(
    "opened", default=lambda _models: None
)


def async_of(
    function: Callable[Params, Result],
) -> Callable[Params, Coroutine[Any, Any, Result]]:
    """The async twin of a function; cancelling it stops all questions."""

    @wraps(function)
    async def twin(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        opened: list[TeachModels] = []
        token = _OPENED.set(opened.append)
        # Its thread gets a copy of this context.
        task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
        _OPENED.reset(token)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # It may just be about to open them.
            while not task.done():
                for models in opened:
                    await asyncio.to_thread(models.close)
                await asyncio.wait([task], timeout=_POLL_SECONDS)
            if not task.cancelled():
                task.exception()  # mark it as seen, or asyncio complains
            raise

    return twin


generate_skill_async = async_of(generate_skill)
refine_async = async_of(refine)
generate_cases_async = async_of(generate_cases)
evaluate_async = async_of(evaluate)


def read_options(
    command: TeachCommand, task: str | None, options: TeachOptions
) -> tuple[TeachSettings, TeachContext]:
    """What is asked for, and where."""
    defaults = {
        n: option.default for n, option in options_of(command, TeachSettings).items()
    }
    values: dict[str, Any] = {**defaults, **options}
    folder, tell, prices = (
        values.pop(name, None) for name in ("folder", "tell", "prices")
    )
    for name, kind in KINDS.items():
        if name in values and kind.repeats:
            several = _several(values[name])
            values[name] = tuple(map(Path, several)) if kind == PATHS else several
        elif kind == PATH and values.get(name) is not None:
            values[name] = Path(values[name])
    settings = TeachSettings(task or "", **values)
    context = TeachContext(
        root=Path(folder) if folder else Path.cwd(),
        screen=ProgressScreen(lambda text: tell(text.rstrip("\n")) if tell else None),
        opened=_OPENED.get(),
        prices=parse_prices(_several(prices or ())),
        in_place=settings.force,
    )
    return settings, context


def _several(value: Any) -> tuple[Any, ...]:
    """A single name or path, or several."""
    return (value,) if isinstance(value, str | os.PathLike) else tuple(value)
