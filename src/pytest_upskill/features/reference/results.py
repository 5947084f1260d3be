"""What references show of each skill: those that fail, and empty answers that pass."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from ..._util.texts import first_few, one_line
from ...results.row import Row, missing_words
from ...results.run import RunResults
from ...results.sections import KindSection
from ...trials.arm import BASELINE, SKILL
from ...trials.subject import SkillOnSubject
from . import REFERENCE

_MAX_NAMES: Final = 5


@dataclass(frozen=True)
class References(KindSection):
    """What references show about the cases; nothing about a skill."""

    feature = "reference"

    @cached_property
    def rows(self) -> list[Row]:
        run: RunResults = self.results
        tests = [test for test in run.tests if test.kind == REFERENCE]
        records = []
        for test in tests:
            records += run.records_of(test)
        return [_judge(row) for row in run.summarize(tests, records)]

    def add_to(self, rows: dict[SkillOnSubject, Row]) -> None:
        rows.update({row.pair: row for row in self.rows})


def _judge(row: Row) -> Row:
    sentence = _describe(row)
    if not row.incomplete:
        return replace(row, sentence=sentence, signals={})
    sentence = f"{missing_words(row)}; {sentence}"
    return replace(row, verdict="incomplete", sentence=sentence, signals={})


def count_sound(row: Row) -> str:
    """``references pass: 12 of 12; empty answers fail: 12 of 12``, of graded cases."""
    graded = len(row.by_case)
    good = graded - len(_failing(row))
    words = f"references pass: {good:,} of {graded:,}"
    if row.arm(BASELINE).asked:
        good = graded - len(_empty_passes(row))
        words += f"; empty answers fail: {good:,} of {graded:,}"
    return words


def is_sound(row: Row) -> bool:
    """Whether all references pass, and all empty answers fail."""
    return len(row.by_case) == row.cases and not (_failing(row) or _empty_passes(row))


def _failing(row: Row) -> list[str]:
    return [case.case for case in row.by_case if case.arm(SKILL).rate != 1]


def _empty_passes(row: Row) -> list[str]:
    return [case.case for case in row.by_case if case.arm(BASELINE).rate]


def _describe(row: Row) -> str:
    """The same counts, with the names of cases that are wrong."""
    sentence = count_sound(row)
    for problem, cases in (
        ("the reference fails", _failing(row)),
        ("an empty answer passes", _empty_passes(row)),
    ):
        if cases:
            names = [one_line(case, 60) for case in cases]
            sentence += f"; {problem}: {first_few(names, _MAX_NAMES)}"
    return sentence
