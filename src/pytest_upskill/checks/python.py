"""Checks in Python: registered under a name by a hook, or a function beside the skill."""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final

from pydantic import AfterValidator, TypeAdapter

from .._util.python_files import load_python_file
from .._util.texts import one_line
from ..errors import CheckError, SettingsError
from ..trials.answer import Answer
from .kind import CheckContext, Given, Kind, Said, Text, quoted

Verdict = bool | tuple[bool, str]
CheckFunction = Callable[[CheckContext], Verdict] | Callable[[Answer, Any], Verdict]

_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)
_HOOK: Final = "pytest_upskill_checks"


def registered_kinds(
    answers: Iterable[Mapping[str, CheckFunction]], taken: Iterable[str]
) -> dict[str, Kind]:
    """What the hook was answered, as kinds; SettingsError if a name is taken."""
    kinds = dict[str, Kind]()
    for functions in answers:
        if not isinstance(functions, Mapping):
            raise SettingsError(_HOOK, "it returned no dict", "Return names with functions.")
        for name, function in functions.items():
            if name in taken:
                problem, hint = "is a check of pytest-upskill's own", "Choose another name."
            elif name in kinds:
                problem, hint = "is registered twice", "Choose another name for one of them."
            elif not isinstance(name, str) or not callable(function):
                problem, hint = "does not name a function", "Return names with functions."
            else:
                kinds[name] = _kind(name, function)
                continue
            raise SettingsError(_HOOK, f"{name!r} {problem}", hint)
    return kinds


def _kind(name: str, function: CheckFunction) -> Kind:
    takes_context = _takes_context(function) or _takes_one(function)

    def hold(answer: Answer, value: Any, given: Given) -> Iterator[Said]:
        arguments = (CheckContext(answer, given.case, value),) if takes_context else (answer, value)
        yield _said(name, function, *arguments)

    return Kind(name, _ANYTHING, hold)


def _takes_context(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is called ``context`` or annotated as a CheckContext."""
    return any(
        first.name == "context"
        or first.annotation is CheckContext
        or str(first.annotation).endswith(CheckContext.__name__)  # not evaluated
        for first in _positional(function)[:1]
    )


def _takes_one(function: Callable[..., Any]) -> bool:
    kinds = [parameter.kind for parameter in _positional(function)]
    return len(kinds) == 1 and kinds[0] is not inspect.Parameter.VAR_POSITIONAL


def _positional(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return []
    named_only = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    return [one for one in parameters if one.kind not in named_only]


def _said(name: str, function: Callable[..., Any], *arguments: Any) -> Said:
    """What a function of a user says; whatever else it raises makes the trial errored."""
    try:
        answer = function(*arguments)
    except AssertionError as error:
        told = str(error).split("\n")[0]  # what pytest adds below is for tests, not for answers
        return False, one_line(told, 500) or "an assertion of the check does not hold"
    match answer:
        case bool():
            return answer, f"the check says {'yes' if answer else 'no'}"
        case (bool() as passed, str() as reason):
            return passed, one_line(reason, 500)
    got = one_line(repr(answer), 100)
    raise CheckError(f"check {name} returned {got}. Return True, False, or (bool, reason)")


def python_kind(folder: Path, *, allowed: bool) -> Kind:
    """``"python": "checks.py:function"`` of a skill in ``folder``."""
    load = cache(load_python_file)  # once for all cases of the skill

    def function_of(written: str) -> tuple[str, Callable[[Any], Any]]:
        if not allowed:
            raise ValueError("this runs code of the skill's folder; allow it: --skill-allow-code")
        return written, _function(folder, written, load)

    def hold(
        answer: Answer, argument: tuple[str, Callable[[Any], Any]], given: Given
    ) -> Iterator[Said]:
        written, function = argument
        takes_context = _takes_context(function)
        given_one = CheckContext(answer, given.case) if takes_context else answer
        passed, reason = _said(written, function, given_one)
        yield passed, f"{written}: {reason}"

    return Kind("python", TypeAdapter(Annotated[Text, AfterValidator(function_of)]), hold)


def _function(
    folder: Path, written: str, load: Callable[[Path], ModuleType]
) -> Callable[[Any], Any]:
    """ValueError if there is no such function."""
    file, function_name = place_of_function(folder, written)
    try:
        module = load(file)
    except OSError as error:
        raise ValueError(f"{quoted(file.name)} can't be read: {error.strerror or error}") from None
    except ImportError as error:
        problem = one_line(str(error), 200)
        raise ValueError(f"{quoted(file.name)} can't be loaded: {problem}") from None
    function: object = getattr(module, function_name, None)
    if not callable(function):
        raise ValueError(f"{quoted(file.name)} has no function {function_name!r}")
    return function


def place_of_function(folder: Path, written: str) -> tuple[Path, str]:
    """The file and the name in "checks.py:function"; ValueError if it has not this form."""
    name, _, function_name = written.rpartition(":")
    if not name.endswith(".py") or not function_name.isidentifier():
        raise ValueError(f'{quoted(written)} has not the form "checks.py:function"')
    # realpath, since resolve raises at a link that leads to itself
    file = Path(os.path.realpath(folder / name))
    if not file.is_relative_to(os.path.realpath(folder)):
        raise ValueError(f"{quoted(name)} leads out of the skill's folder")
    return file, function_name
