"""Arms of a study compared: records of cases in, judged contrasts out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Final, NamedTuple

from .._util import grouped
from ..settings import Score
from ..stats import LEVEL, ROUNDING, Lift, holm_lifts, worst_loss
from ..stats.distributions import mean_and_spread
from ..stats.intervals import half_width
from ..trials.records import Record, asked_apart
from .comparison import (
    CaseResult,
    Cases,
    Comparison,
    compare,
    lift_results,
    paired_samples,
)
from .contrasts import Contrast, StudyArm

_MIN_CASES_FOR_INTERVAL: Final = 3


@dataclass(frozen=True)
class ArmRecords:
    """What came of the cases of an arm."""

    name: str
    digest: str
    records: Sequence[Record]
    # By case: the same for cases that count as one
    samples: Mapping[str, str]
    score: Score = "pass"

    @cached_property
    def cases(self) -> Cases:
        """The results of cases; one with an error is left out."""
        by_case = grouped(self.records, lambda record: record.case)
        results = {}
        for case, sample in self.samples.items():
            runs = by_case.get(case, [])
            if not runs or any(record.outcome == "errored" for record in runs):
                continue

            scores = [float(record.outcome == "passed") for record in runs]
            if self.score == "checks":
                scores = [record.score or 0.0 for record in runs]
            tokens = [record.tokens for record in runs if record.tokens is not None]
            mean = fmean(tokens) if tokens else None
            results[case] = CaseResult(fmean(scores), {"tokens": mean}, sample)
        return results

    @property
    def tokens(self) -> dict[str, float]:
        """Of a trial, by case, where they are known."""
        tokens = {}
        for case, result in self.cases.items():
            number = result.amounts["tokens"]
            if number is not None:
                tokens[case] = number
        return tokens

    def describe(self) -> StudyArm:
        samples = paired_samples([self.cases], [self.cases])
        tokens = self.tokens.values()
        opened = Counter[str]()
        first = Counter[str]()
        trials = 0
        for record in self.records:
            if record.activity and record.outcome != "errored":
                trials += 1
                opened.update(dict.fromkeys(record.activity.opened, 1))
                first.update(record.activity.opened[:1])
        return StudyArm(
            self.name,
            rate=fmean(sample.after for sample in samples) if samples else None,
            tokens=fmean(tokens) if tokens else None,
            trials=trials,
            opened=opened,
            opened_first=first,
            digest=self.digest[:16],
        )


class JudgedContrasts(NamedTuple):
    """What came of contrasts, and whether arms were asked too far apart."""

    contrasts: tuple[Contrast, ...]
    apart: bool


def judge_arms(
    contrasts: Sequence[Contrast], arms: Mapping[str, ArmRecords], max_age: float
) -> JudgedContrasts:
    """What came of each contrast, together with all others.

    One that lacks an answer, or whose arms were asked too far apart, is incomplete.
    """
    comparisons = {}
    any_apart = False
    cases = {name: arm.cases for name, arm in arms.items()}
    for contrast in contrasts:
        records: list[Record] = []
        for name in (*contrast.plus, *contrast.minus):
            records += arms[name].records
        if asked_apart(records, max_age):
            any_apart = True
        elif all(record.outcome != "errored" for record in records):
            if comparison := compare_arms(contrast, cases):
                comparisons[contrast] = comparison

    lifts = judge_contrasts(comparisons)
    judged = []
    for contrast in contrasts:
        if comparison := comparisons.get(contrast):
            judged.append(
                replace(
                    _with_tokens(contrast, arms),
                    lift=lifts[contrast.name],
                    cases=len(comparison.samples),
                )
            )
        else:
            judged.append(contrast)
    return JudgedContrasts(tuple(judged), any_apart)


def _with_tokens(contrast: Contrast, arms: Mapping[str, ArmRecords]) -> Contrast:
    """Of two arms: a difference of lifts has tokens that say nothing."""
    if len(contrast.plus) > 1:
        return contrast
    before = arms[contrast.minus[0]].tokens
    after = arms[contrast.plus[0]].tokens
    changes = [after[case] - before[case] for case in after if case in before]
    if not changes:
        return contrast

    mean, spread = mean_and_spread(changes)
    if len(changes) < _MIN_CASES_FOR_INTERVAL:
        return replace(contrast, tokens=mean)
    half = half_width(spread, len(changes), LEVEL)
    return replace(contrast, tokens=mean, tokens_span=(mean - half, mean + half))


def compare_arms(contrast: Contrast, arms: Mapping[str, Cases]) -> Comparison | None:
    """One arm compared with another, or one lift with another."""
    before = arms[contrast.minus[0]]
    after = arms[contrast.plus[0]]
    if len(contrast.plus) > 1:
        after = lift_results(after, before)
        before = lift_results(arms[contrast.minus[1]], arms[contrast.plus[1]])
    return compare([before], [after], reach=float(len(contrast.plus)))


def judge_contrasts(comparisons: Mapping[Contrast, Comparison]) -> dict[str, Lift]:
    """Contrasts by name; together they err in 5 %.

    A contrast that could not be shown, whatever the signs of its differences, takes no
    share of that (Tarone 1990). It holds 0 by itself.
    """
    testable = [key for key, over in comparisons.items() if _could_be_shown(over)]
    lifts = {contrast: over.lift for contrast, over in comparisons.items()}
    adjusted = holm_lifts([lifts[contrast] for contrast in testable])
    lifts.update(zip(testable, adjusted, strict=True))

    # That a part could go is a claim, too, and all parts make it.
    claims = sum(contrast.margin is not None for contrast in comparisons)
    judged = {}
    for contrast, lift in lifts.items():
        judged[contrast.name] = lift
        if contrast.margin is not None and not lift.shown:
            differences = comparisons[contrast].differences
            low = -worst_loss(differences, share_error(claims))
            judged[contrast.name] = lift._replace(low=min(lift.low, low))
    return judged


def _could_be_shown(comparison: Comparison) -> bool:
    """Whether enough cases differ: all in one direction, they would show it."""
    changed = sum(abs(value) > ROUNDING for value in comparison.differences)
    return bool(0.5**changed < 1 - LEVEL)


def share_error(claims: int) -> float:
    """The level of each claim if all of them together err in 5 %."""
    return 1 - (1 - LEVEL) / max(1, claims)
