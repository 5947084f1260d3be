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
    parts = [count_sound(row)]
    if row.incomplete:
        parts.insert(0, missing_words(row))
        row = replace(row, verdict="incomplete")
    for problem, cases in _find_unsound(row).items():
        if cases:
            names = [one_line(case, 60) for case in cases]
            parts.append(f"{problem}: {first_few(names, _MAX_NAMES)}")
    return replace(row, sentence="; ".join(parts), signals={})


def is_sound(row: Row) -> bool:
    """Whether all references pass, and all empty answers fail."""
    return len(row.by_case) == row.cases and not any(_find_unsound(row).values())


def count_sound(row: Row) -> str:
    """``references pass: 12 of 12; empty answers fail: 12 of 12``, of graded cases."""
    graded = len(row.by_case)
    failing, passing = map(len, _find_unsound(row).values())
    words = f"references pass: {graded - failing:,} of {graded:,}"
    if row.arm(BASELINE).asked:
        words += f"; empty answers fail: {graded - passing:,} of {graded:,}"
    return words


def _find_unsound(row: Row) -> dict[str, list[str]]:
    """The names of cases that show nothing, by what is wrong."""
    return {
        "the reference fails": [
            case.case for case in row.by_case if case.arm(SKILL).rate != 1
        ],
        "an empty answer passes": [
            case.case for case in row.by_case if case.arm(BASELINE).rate
        ],
    }
