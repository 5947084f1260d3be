"""What a run of the oracle shows: references that fail, and empty answers that pass."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from .._util.texts import first_few, one_line
from ..trials.arm import BASELINE, SKILL
from ..trials.records import Record

if TYPE_CHECKING:
    from .row import Row

_MAX_NAMES: Final = 5


def oracle_faults(records: Iterable[Record]) -> list[str]:
    """What is wrong with a case, by all records that the oracle has of it."""
    has_failed = False
    reasons: list[str] = []
    notes: list[str] = []
    passes = ""
    for record in records:
        if record.arm == SKILL and record.outcome == "failed":
            has_failed = True
            for grade in record.checks:
                if grade.fails:
                    reasons.append(f"{grade.check}: {grade.reason}")
            notes += record.activity.findings if record.activity else ()
        if record.arm == BASELINE and record.outcome == "passed" and not passes:
            passes = "an empty answer passes: its checks test nothing"
            if any(grade.share is not None for grade in record.checks):
                passes = (
                    "doing nothing gets the full reward: its verifier tests nothing"
                )

    faults = []
    if has_failed:
        each = "; ".join(dict.fromkeys([*reasons, *notes]))
        faults.append(f"the reference fails: {each}")
    if passes:
        faults.append(passes)
    return faults


def oracle_counts(row: "Row") -> str:
    """``references pass: 12 of 12; empty answers fail: 12 of 12``, of graded cases."""
    graded = len(row.by_case)
    good = graded - len(_failing(row))
    words = f"references pass: {good:,} of {graded:,}"
    if row.arm(BASELINE).asked:
        good = graded - len(_empty_passes(row))
        words += f"; empty answers fail: {good:,} of {graded:,}"
    return words


def is_sound(row: "Row") -> bool:
    """Whether all references pass, and all empty answers fail."""
    return len(row.by_case) == row.cases and not (_failing(row) or _empty_passes(row))


def _failing(row: "Row") -> list[str]:
    return [case.case for case in row.by_case if case.arm(SKILL).rate != 1]


def _empty_passes(row: "Row") -> list[str]:
    return [case.case for case in row.by_case if case.arm(BASELINE).rate]


def oracle_sentence(row: "Row") -> str:
    """The same counts, with the names of cases that are wrong."""
    sentence = oracle_counts(row)
    for problem, cases in (
        ("the reference fails", _failing(row)),
        ("an empty answer passes", _empty_passes(row)),
    ):
        if cases:
            names = [one_line(case, 60) for case in cases]
            sentence += f"; {problem}: {first_few(names, _MAX_NAMES)}"
    return sentence
