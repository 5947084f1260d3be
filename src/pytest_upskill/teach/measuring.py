"""A version of a skill on the students, and what a teacher is told of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Final

from .._util.texts import counted
from ..checks import CheckedCase
from ..measure.evaluate import evaluate_cases
from ..results.run import RunResults
from ..results.summary import Summary
from ..trials.records import Record
from ..trials.trial import Arm
from .classroom import Classroom
from .drafting import Draft, loaded
from .prompts import failing_case
from .replies import no_answer
from .trying import GoodCase

_MOST_TOLD: Final = 10
_ALL_ARMS: Final[tuple[Arm, ...]] = ("baseline", "previous", "skill")


@dataclass(frozen=True)
class Attempt:
    """A version that was measured on the learning part; or why it could not be."""

    number: int
    draft: Draft
    results: RunResults | None
    problem: str | None = None
    written: bool = True  # if not, it is the skill as it was given
    most_tokens: int | None = None  # those that were allowed, and that it may still be over

    @property
    def too_long(self) -> bool:
        """Never the skill as it was given: that is how somebody wished it to be."""
        return self.written and self.draft.tokens > (self.most_tokens or self.draft.tokens)

    @property
    def label(self) -> str:
        return f"attempt {self.number}" if self.written else "as it is"

    @property
    def lift(self) -> float:
        """The mean over students."""
        return mean_lift(self.results) if self.results else float("-inf")

    @property
    def worst_rate(self) -> float:
        """The pass rate of the student that does worst with it."""
        rates = [row.skill_rate or 0.0 for row in self.results.summaries] if self.results else []
        return min(rates, default=0.0)

    @property
    def merit(self) -> tuple[bool, float, int, int]:
        """By which the best is chosen: lift, then fewer tokens, then who came first.

        Before all, it is one that helps and is not too long.
        """
        fits = self.lift > 0 and not self.too_long
        return fits, self.lift, -self.draft.tokens, -self.number


def mean_lift(results: RunResults) -> float:
    lifts = [row.lift for row in results.summaries if row.lift is not None]
    return fmean(lifts) if lifts else 0.0


def checked(cases: Sequence[GoodCase]) -> list[CheckedCase]:
    return [(one.case, one.checks) for one in cases]


def measure(
    room: Classroom,
    draft: Draft,
    cases: Sequence[GoodCase],
    models: Mapping[str, str],
    scratch: Path,
    *,
    arms: Sequence[Arm] = _ALL_ARMS,
    trace: str | None = None,
) -> RunResults:
    """Both arms of all cases on all models; TeachError if one could not be asked.

    A trace is an arm of its own, in the place of the skill's body.
    """
    skill = replace(loaded(draft, scratch), previous=trace)
    results = evaluate_cases(
        skill, checked(cases), models, room.settings, room.ask, room.price_of, arms
    )
    for record in results.records:
        if record.outcome == "errored":
            raise no_answer(room, record.error or "no answer")
    return results


def passed_by_all(results: RunResults) -> set[str]:
    """The cases that every model passes in every run without the skill."""
    failed = {
        record.case
        for record in results.records
        if record.arm == "baseline" and record.outcome != "passed"
    }
    return {test.case for test in results.tests} - failed


def told_to_teacher(results: RunResults) -> str:
    """How students did with a version: those that fail with question, answer and reasons."""
    skill = results.skills[0].name
    failing = _failing(results)
    shown = [
        failing_case(
            results.questions[skill, record.case],
            record.model,
            record.output or "",
            [grade.reason for grade in record.checks if not grade.passed],
            [grade.reason for grade in record.checks if grade.passed],
        )
        for record in failing[:_MOST_TOLD]
    ]
    rates = "; ".join(map(_rates, results.summaries))
    failed = {record.case for record in failing}
    fine = [case.case for case in results.summaries[0].by_case if case.case not in failed]
    parts = [f"The share that passes: {rates}."]
    parts += [f"These pass with every student: {', '.join(fine)}."] if fine else []
    if failing:
        parts += [f"{counted(len(failing), 'answer')} fail; these are some of them.", *shown]
    return "\n\n".join(parts)


def _rates(row: Summary) -> str:
    bare, skilled = row.baseline_rate or 0.0, row.skill_rate or 0.0
    return f"{row.model} {bare:.0%} without the skill, {skilled:.0%} with it"


def _failing(results: RunResults) -> list[Record]:
    """One answer for each case and student that failed, every case once before any twice."""
    first: dict[tuple[str, str], Record] = {}
    for record in results.records:
        if record.arm == "skill" and record.outcome == "failed":
            first.setdefault((record.case, record.model), record)
    seen = dict[str, int]()
    ranked = []
    for record in first.values():
        seen[record.case] = seen.get(record.case, 0) + 1
        ranked.append((seen[record.case], record))
    return [record for _, record in sorted(ranked, key=lambda pair: pair[0])]
