"""The checks of an answer: each says passed or not, with a reason that a person understands."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ..cases import Case, load_cases
from ..forms import FormError, Problem, cases_error
from ..records import Answer, Grade
from . import text
from .kind import Kind, Said
from .parse import Check, parse_checks

__all__ = ["KINDS", "Check", "Kind", "grade", "load_checked_cases", "parse_checks"]

KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in text.KINDS}

CheckedCase = tuple[Case, tuple[Check, ...]]


def load_checked_cases(
    file: Path, kinds: Mapping[str, Kind] = KINDS, folder: Path | None = None
) -> list[CheckedCase]:
    """The cases of a file, each with the checks that its answers are held to."""
    cases, problems = list[CheckedCase](), list[Problem]()
    for case in load_cases(file, folder):
        try:
            cases.append((case, parse_checks(case.expected, kinds, ("expected",))))
        except FormError as error:
            problems += [(case.place_of(*loc), what) for loc, what in error.problems]
    if problems:
        # What is wrong with the defaults is wrong with every case, and told once.
        raise cases_error(file, list(dict.fromkeys(problems)))
    return cases


def grade(
    checks: Sequence[Check], answer: Answer, rulings: Mapping[str, Said] | None = None
) -> tuple[Grade, ...]:
    """Hold an answer to every check of its case; ``rulings`` are the judge's."""
    return tuple(one for check in checks for one in check.grades(answer, rulings or {}))
