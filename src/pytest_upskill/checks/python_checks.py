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

_Returned = bool | tuple[bool, str]
CheckFunction = (
    Callable[[CheckContext], _Returned]
    | Callable[[Answer], _Returned]
    | Callable[[Answer, Any], _Returned]
)

_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)


def function_kind(name: str, function: CheckFunction) -> CheckKind:
    """A check that is a function of a plugin or a conftest.py."""

    def evaluate(context: CheckContext) -> Iterator[Result]:
        yield _result(name, function, context, context.value)

    return CheckKind(name, _ANYTHING, evaluate, calls_code=True)


def _result(
    name: str, function: Callable[..., object], context: CheckContext, *values: object
) -> Result:
    """Call a user's function; whatever it raises besides
    AssertionError errors the trial.
    """
    arguments = _arguments(function, context, *values)
    try:
        returned = function(*arguments)
    except AssertionError as error:
        # pytest's explanation below it is for tests
        first_line = str(error).split("\n")[0]
        return False, one_line(first_line, 500) or "an assertion failed"
    match returned:
        case bool():
            return returned, f"the check returned {returned}"
        case (bool() as passed, str() as reason):
            return passed, one_line(reason, 500)
    value = one_line(repr(returned), 100)
    raise CheckError(
        f"check {name} returned {value}. Return True, False, or (bool, reason)"
    )


def _arguments(
    function: Callable[..., object], context: CheckContext, *values: object
) -> tuple[object, ...]:
    """The context if the first parameter has that name or type; else the answer,
    and values.
    """
    signature = inspect.signature(function)
    first = next(iter(signature.parameters.values()), None)
    if first and (
        first.name == "context" or CheckContext.__name__ in str(first.annotation)
    ):
        return (context,)
    try:
        signature.bind(context.answer, *values)
    except TypeError:
        return (context.answer,)
    return context.answer, *values


def python_kind(
    folder: Path, *, allowed: bool, allowed_by: str = "allow_code"
) -> CheckKind:
    """``"python": "checks.py:function"`` of a skill in ``folder``.

    ``allowed_by`` is what its users call the setting that allows it.
    """
    load = cache(load_python_file)  # once for all cases of the skill

    def function_of(written: str) -> tuple[str, CheckFunction]:
        if not allowed:
            raise ValueError(
                f"runs code from the skill's folder; allow it with {allowed_by}"
            )
        return written, _function(folder, written, load)

    def evaluate(context: CheckContext) -> Iterator[Result]:
        written, function = context.value
        passed, reason = _result(written, function, replace(context, value=None))
        yield passed, f"{written}: {reason}"

    argument: TypeAdapter[Any] = TypeAdapter(
        Annotated[Text, AfterValidator(function_of)]
    )
    return CheckKind("python", argument, evaluate, calls_code=True)


def _function(
    folder: Path, written: str, load: Callable[[Path], ModuleType]
) -> CheckFunction:
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
