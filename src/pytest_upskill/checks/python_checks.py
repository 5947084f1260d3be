"""Checks in Python: registered by a hook, or a function in the skill's folder."""

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final

from pydantic import AfterValidator, TypeAdapter

from .._util.files import load_python_file, reason_of
from .._util.texts import one_line
from ..errors import CheckError
from ..trials.answer import Answer
from .check import CheckContext, CheckKind, Result, Text, quoted

Verdict = bool | tuple[bool, str]
CheckFunction = Callable[[CheckContext], Verdict] | Callable[[Answer, Any], Verdict]

_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)


def function_kind(name: str, function: CheckFunction) -> CheckKind:
    """A check that is a function of a plugin or a conftest.py."""
    takes_context = _takes_context(function) or _takes_one(function)

    def evaluate(context: CheckContext) -> Iterator[Result]:
        arguments = (context,) if takes_context else (context.answer, context.value)
        yield _result(name, function, *arguments)

    return CheckKind(name, _ANYTHING, evaluate, calls_code=True)


def _takes_context(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is named ``context`` or annotated as a CheckContext."""
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
    return [parameter for parameter in parameters if parameter.kind not in named_only]


def _result(name: str, function: Callable[..., Any], *arguments: Any) -> Result:
    """Call a user's function; whatever it raises besides AssertionError errors the trial."""
    try:
        returned = function(*arguments)
    except AssertionError as error:
        first_line = str(error).split("\n")[0]  # pytest's explanation below it is for tests
        return False, one_line(first_line, 500) or "an assertion failed"
    match returned:
        case bool():
            return returned, f"the check returned {returned}"
        case (bool() as passed, str() as reason):
            return passed, one_line(reason, 500)
    value = one_line(repr(returned), 100)
    raise CheckError(f"check {name} returned {value}. Return True, False, or (bool, reason)")


def python_kind(folder: Path, *, allowed: bool, allowed_by: str = "allow_code") -> CheckKind:
    """``"python": "checks.py:function"`` of a skill in ``folder``.

    ``allowed_by`` is what its users call the setting that allows it.
    """
    load = cache(load_python_file)  # once for all cases of the skill

    def function_of(written: str) -> tuple[str, Callable[[Any], Any]]:
        if not allowed:
            raise ValueError(f"runs code from the skill's folder; allow it with {allowed_by}")
        return written, _function(folder, written, load)

    def evaluate(context: CheckContext) -> Iterator[Result]:
        written, function = context.value
        arguments = replace(context, value=None) if _takes_context(function) else context.answer
        passed, reason = _result(written, function, arguments)
        yield passed, f"{written}: {reason}"

    argument: TypeAdapter[Any] = TypeAdapter(Annotated[Text, AfterValidator(function_of)])
    return CheckKind("python", argument, evaluate, calls_code=True)


def _function(
    folder: Path, written: str, load: Callable[[Path], ModuleType]
) -> Callable[[Any], Any]:
    """ValueError if there is no such function."""
    file, function_name = place_of_function(folder, written)
    try:
        module = load(file)
    except OSError as error:
        raise ValueError(f"{quoted(file.name)}: {reason_of(error)}") from None
    except ImportError as error:
        problem = one_line(str(error), 200)
        raise ValueError(f"{quoted(file.name)} can't be loaded: {problem}") from None
    function: object = getattr(module, function_name, None)
    if not callable(function):
        raise ValueError(f"{quoted(file.name)} has no function {function_name!r}")
    return function


def place_of_function(folder: Path, written: str) -> tuple[Path, str]:
    """The file and the name in "checks.py:function"; ValueError if there are none."""
    name, _, function_name = written.rpartition(":")
    if not name.endswith(".py") or not function_name.isidentifier():
        raise ValueError(f'{quoted(written)} must have the form "checks.py:function"')
    # Not Path.resolve, which raises on a link to itself.
    file = Path(os.path.realpath(folder / name))
    if not file.is_relative_to(os.path.realpath(folder)):
        raise ValueError(f"{quoted(name)} is outside the skill's folder")
    return file, function_name
