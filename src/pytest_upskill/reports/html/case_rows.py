"""A case on a model as a row of the page: its records, its states and what changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from ...results.case_changes import ChangedCase, Changes, Place
from ...results.regressions import Standing, could_flip, reaches
from ...results.run import RunResults, triggers_as_cases
from ...results.summary import CaseSummary
from ...settings import Score
from ...stats import ROUNDING
from ...trials.plan import Count, PlannedCase
from ...trials.records import Record
from ...trials.subject import SkillOnSubject

_PAIR: Final[tuple[str, ...]] = ("baseline", "skill")
# Answers of cases in these states matter most, so they are cut last.
_TELLING: Final = frozenset({"failed", "regressed", "worse", "errored"})
_TELLING_CHANGES: Final = frozenset({"broke", "fixed"})
_MOST_EARLIER: Final = 300  # cases whose earlier trials are shown too


@dataclass(frozen=True)
class PageCase:
    """A case on a model, with its records."""

    test: PlannedCase
    records: Sequence[Record]
    summary: CaseSummary | None  # over complete runs
    standing: Standing | None  # compared with accepted results
    score: Score = "pass"  # of the skill
    counts: bool = False  # as one of the tests that failed or had errors
    change: ChangedCase | None = None  # since the run before
    earlier: tuple[Record, ...] | None = None  # its trials then, if there is room for them

    @property
    def place(self) -> Place:
        return self.test.pair, self.test.case

    @property
    def outcome(self) -> str:
        """As the outcome of the run counts it."""
        if not self.records:
            return "not run"
        if self.counts:
            return "failed"
        return "failed as expected" if "failed" in self.states else "passed"

    @property
    def changes(self) -> list[str]:
        """Compared with what was accepted, and with the skill at a git ref."""
        kind = self.standing.kind if self.standing else None
        now, before = [
            self.summary.arm(arm).scored(self.score) if self.summary else None
            for arm in ("skill", "previous")
        ]
        change = 0.0 if now is None or before is None else now - before
        words = {
            "regressed": kind == "regressed",
            "improved": kind == "better",
            "new": self.test.new,
            "worse": change < -ROUNDING,
            "better": change > ROUNDING,
        }
        return [word for word, holds in words.items() if holds]

    def states_of(self, arm: str) -> list[str]:
        """The states that each arm has by itself."""
        records = [record for record in self.records if record.arm == arm]
        count = _count(records)
        states = {
            "failed": count is not None and not reaches(count, self.test.threshold),
            "errored": any(record.outcome == "errored" for record in records),
            "flaky": count is not None and could_flip(count, self.test.threshold),
        }
        return [state for state, holds in states.items() if holds]

    @cached_property
    def states(self) -> list[str]:
        if not self.records:
            return ["not run"]
        arms = [self.summary.arm(arm) for arm in _PAIR] if self.summary else []
        without, with_it = [arm.scored(self.score) for arm in arms] or [None, None]
        by_state = {
            "failed": self.count is not None and not reaches(self.count, self.test.threshold),
            "regressed": self.standing is not None and self.standing.kind == "regressed",
            "worse": self.lift is not None and self.lift < -ROUNDING,
            "errored": any(record.outcome == "errored" for record in self.records),
            "flaky": self.count is not None and could_flip(self.count, self.test.threshold),
            "no signal": without == with_it and without in (0, 1),
        }
        return [state for state, holds in by_state.items() if holds]

    @property
    def lift(self) -> float | None:
        """Of what the verdict is on."""
        pair = [self.summary.arm(arm).scored(self.score) for arm in _PAIR] if self.summary else []
        return None if None in pair or not pair else (pair[1] or 0.0) - (pair[0] or 0.0)

    @property
    def count(self) -> Count | None:
        """Of the answered runs with the skill."""
        return _count([record for record in self.records if record.arm == "skill"])

    @property
    def is_telling(self) -> bool:
        changed = self.change is not None and self.change.kind in _TELLING_CHANGES
        return changed or not _TELLING.isdisjoint(self.states)


def _count(records: Sequence[Record]) -> Count | None:
    graded = [record for record in records if record.outcome != "errored"]
    passed = sum(record.outcome == "passed" for record in graded)
    return Count(passed, len(graded)) if graded else None


def rows_of(results: RunResults, changes: Changes | None = None) -> list[PageCase]:
    """All tests, in the order of the run; ``changes`` are those since another one."""
    rows = _rows(results, changes)
    changed = [row for row in rows if row.change and row.change.records]
    changed = sorted(changed, key=lambda row: not row.is_telling)[:_MOST_EARLIER]
    trials = {
        row.place: tuple(replace(record, files=(), transcript=()) for record in records)
        for row in changed
        if row.change and (records := row.change.records)
    }
    return [replace(row, earlier=trials.get(row.place)) for row in rows] if trials else rows


def _rows(results: RunResults, changes: Changes | None) -> list[PageCase]:
    summaries: dict[tuple[SkillOnSubject, str], CaseSummary] = {
        (row.pair, case.case): case
        for run in (results, triggers_as_cases(results))
        for row in run.summaries
        for case in row.by_case
    }
    scores = {skill.name: skill.score for skill in results.skills}
    failed = {id(test) for test in results.failed}
    return [
        PageCase(
            test,
            results.records_of(test),
            summaries.get((test.pair, test.case)),
            results.standing(test),
            scores.get(test.skill, "pass"),
            id(test) in failed,
            changes.of(test) if changes else None,
        )
        for test in results.tests
    ]
