"""The checks of an answer: each says passed or not, with a reason that a person understands."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from .._util.json_forms import FormError, Problem, cases_error
from ..skills.cases import Case, load_cases
from . import code, data, judged, text, whole
from .check import AnyCheck, Check, Combined, grade, spans, walk
from .judged import rubric_of
from .kind import CheckContext, Kind, Span
from .parse import RESERVED, parse_checks
from .python import CheckFunction, python_kind, registered_kinds

__all__ = [
    "KINDS",
    "TAKEN",
    "AnyCheck",
    "Check",
    "CheckContext",
    "CheckFunction",
    "CheckedCase",
    "Combined",
    "Kind",
    "Span",
    "checks_of",
    "grade",
    "load_checked_cases",
    "parse_checks",
    "python_kind",
    "registered_kinds",
    "rubric_of",
    "spans",
    "walk",
]

KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind for module in (text, data, code, whole, judged) for kind in module.KINDS
}
TAKEN: Final = (*KINDS, *RESERVED, "python")  # the names that no other check may have

CheckedCase = tuple[Case, tuple[AnyCheck, ...]]


def load_checked_cases(
    file: Path,
    registered: Mapping[str, Kind] | None = None,
    *,
    folder: Path | None = None,
    allow_code: bool = False,
) -> list[CheckedCase]:
    """The cases of a file, each with the checks that its answers are held to.

    ``registered`` are the checks of a hook; ``folder`` is where those of the skill itself are.
    """
    own = registered or {}
    kinds = {**KINDS, **own, "python": python_kind(folder or file.parent, allowed=allow_code)}
    cases, problems = list[CheckedCase](), list[Problem]()
    for case in load_cases(file, folder):
        try:
            cases.append((case, checks_of(case, kinds, own)))
        except FormError as error:
            problems += [(case.place_of(*loc), what) for loc, what in error.problems]
    if problems:
        # What is wrong with the defaults is wrong with every case, and told once.
        raise cases_error(file, list(dict.fromkeys(problems)))
    return cases


def checks_of(
    case: Case, kinds: Mapping[str, Kind], registered: Mapping[str, Kind]
) -> tuple[AnyCheck, ...]:
    """FormError, with paths inside of the case, if a check is unknown or has a wrong argument."""
    place = ("expected",)
    if case.validator is None:
        return parse_checks(case.expected, kinds, place)
    name, value = case.validator
    if name not in registered:
        known = ", ".join(registered) or "none; a conftest.py registers some"
        problem = f"unknown check {name!r}; known: {known}"
        raise FormError([(("validator",), problem)])
    written = () if case.expected is None else parse_checks(case.expected, kinds, place)
    if any(check.name == name for check in written):
        return written
    return (*written, Check(registered[name], value, written=value))
