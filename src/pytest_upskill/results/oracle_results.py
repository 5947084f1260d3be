"""What a run of the oracle shows: references that fail, and empty answers that pass."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from .._util.texts import first_few, one_line
from ..trials.arm import BASELINE, SKILL
from ..trials.records import Record

if TYPE_CHECKING:
    from .summary import Summary

_EMPTY_PASSES: Final = "an empty answer passes: its checks test nothing"
_NOTHING_PASSES: Final = (
    "doing nothing gets the full reward: its verifier tests nothing"
)
_MOST_NAMES: Final = 5


def oracle_faults(records: Iterable[Record]) -> list[str]:
    """What is wrong with a case, by all records that the oracle has of it."""
    records = list(records)
    failed = [
        record
        for record in records
        if record.arm == SKILL and record.outcome == "failed"
    ]
    faults = list[str]()
    if failed:
        reasons = [
            f"{grade.check}: {grade.reason}"
            for record in failed
            for grade in record.checks
            if grade.required and not grade.passed
        ]
        notes = (
            note
            for record in failed
            if record.activity
            for note in record.activity.findings
        )
        faults.append(
            f"the reference fails: {'; '.join(dict.fromkeys([*reasons, *notes]))}"
        )
    if empty := [r for r in records if r.arm == BASELINE and r.outcome == "passed"]:
        is_rewarded = any(grade.share is not None for grade in empty[0].checks)
        faults.append(_NOTHING_PASSES if is_rewarded else _EMPTY_PASSES)
    return faults


def oracle_counts(row: "Summary") -> str:
    """``references pass: 12 of 12; empty answers fail: 12 of 12``,
    counting graded cases.
    """
    graded = len(row.by_case)
    parts = [f"references pass: {graded - len(_failing(row)):,} of {graded:,}"]
    if row.arm(BASELINE).asked:
        parts.append(
            f"empty answers fail: {graded - len(_empty_passes(row)):,} of {graded:,}"
        )
    return "; ".join(parts)


def is_sound(row: "Summary") -> bool:
    """Whether all references pass, and all empty answers fail."""
    return len(row.by_case) == row.cases and not (_failing(row) or _empty_passes(row))


def _failing(row: "Summary") -> list[str]:
    return [case.case for case in row.by_case if case.arm(SKILL).rate != 1]


def _empty_passes(row: "Summary") -> list[str]:
    return [case.case for case in row.by_case if case.arm(BASELINE).rate]


def oracle_sentence(row: "Summary") -> str:
    """The same counts, with the names of cases that are wrong."""
    failing, empty = _failing(row), _empty_passes(row)
    parts = [oracle_counts(row)]
    parts += [f"the reference fails: {_names(failing)}"] if failing else []
    parts += [f"an empty answer passes: {_names(empty)}"] if empty else []
    return "; ".join(parts)


def _names(cases: Sequence[str]) -> str:
    return first_few([one_line(case, 60) for case in cases], _MOST_NAMES)
