"""The checks of a case as they are written, each with its place: parsed ones have none."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from .._util.forms import Location
from ..checks.parse import RESERVED

_DEEPEST: Final = 10  # parsing refuses what is nested deeper


@dataclass(frozen=True)
class Written:
    """``wanted`` is False inside of a ``not``."""

    place: Location
    name: str
    argument: Any
    case_sensitive: bool = False
    required: bool = True
    wanted: bool = True


def written_checks(expected: Any, around: Written | None = None) -> Iterator[Written]:
    """Every check of ``expected``, also inside of those that combine others.

    What is not a group is passed over: parsing tells that.
    """
    around = around or Written(("expected",), "", None)
    if len(around.place) > 2 * _DEEPEST:
        return
    if isinstance(expected, list):
        for number, group in enumerate(expected):
            yield from written_checks(group, _inside(around, number))
    elif isinstance(expected, dict):
        around = _with_settings(expected, around)
        for name, argument in expected.items():
            if name in ("all_of", "any_of", "not"):
                yield from written_checks(argument, _inside(around, name))
            elif name not in RESERVED and argument is not None:
                yield _inside(around, name, argument)


def _inside(around: Written, step: str | int, argument: Any = None) -> Written:
    return Written(
        (*around.place, step),
        str(step),
        argument,
        around.case_sensitive,
        around.required,
        around.wanted and step != "not",
    )


def _with_settings(group: dict[str, Any], around: Written) -> Written:
    case_sensitive = group.get("case_sensitive")
    return Written(
        around.place,
        around.name,
        None,
        around.case_sensitive if case_sensitive is None else case_sensitive is True,
        around.required and group.get("required") is not False,
        around.wanted,
    )
