"""One arm compared with another on each model of a skill, in numbers and in words."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from .._util.json_forms import Share
from .._util.texts import first_few, one_line, times_as_much
from ..settings import Score
from ..stats import (
    LEVEL,
    CasePasses,
    Change,
    Lift,
    guarded_twice,
    holm,
    paired_lift,
    paired_ratio,
    worsened,
)
from ..trials.arm import EARLIER
from ..trials.plan import Count
from .contrasts import points_words, span_words
from .summary import AMOUNTS, AmountName, Summary

_ABOUT_THE_SAME: Final = 0.02
SCORE_WORDS: Final[Mapping[Score, str]] = {
    "pass": "pass rate of cases",
    "checks": "share of checks passed",
}
_UNITS: Final[Mapping[Score, str]] = {"pass": " of pass rate", "checks": " of checks"}
_SCORES: Final[tuple[Score, ...]] = ("pass", "checks")
_MOST_NAMES: Final = 5


@dataclass(frozen=True)
class CaseChange:
    """A case that does better or worse than before,
    by its score or pass rate with the skill.
    """

    case: str
    before: Share
    after: Share


@dataclass(frozen=True)
class VersionChange:
    """What the passes of the same cases show of two versions: here runs are the
    sample.
    """

    better_cases: tuple[str, ...]  # by evidence of their own
    worse_cases: tuple[str, ...]
    worse: str  # what got worse, in words; empty if nothing is shown to
    together: bool = False  # whether the other cases got worse together


@dataclass(frozen=True)
class Comparison:
    """Two arms compared on a model, by each score; one of them carries the verdict."""

    score: Score  # what the verdict is on
    # p-values are adjusted for several models; intervals include 0
    # unless they are evidence.
    measured: Mapping[Score, Lift]
    changes: Mapping[AmountName, Change]  # where both arms have some
    versions: VersionChange | None = None  # if the arms are two versions of the skill

    @property
    def lifts(self) -> dict[Score, Lift]:
        lifts = dict(self.measured)
        if self.versions and not self.worse:  # a loss is no evidence, so it includes 0
            return {
                score: lift._replace(high=max(lift.high, 0.0))
                for score, lift in lifts.items()
            }
        return lifts

    @property
    def lift(self) -> Lift:
        return self.lifts[self.score]

    @property
    def tokens(self) -> Change | None:
        return self.changes.get("tokens")

    @property
    def word(self) -> Literal["better", "worse", "no change shown"]:
        """Versions are worse by what their runs show; anything else is shown by a
        lift.
        """
        is_worse = bool(self.worse) if self.versions else self.lift.high < 0
        return (
            "worse"
            if is_worse
            else "better"
            if self.lift.low > 0
            else "no change shown"
        )

    @property
    def worse(self) -> str:
        """What got worse in this version, in words; empty if nothing is shown to."""
        return self.versions.worse if self.versions else ""

    @property
    def words(self) -> str:
        """The same in words: verdict, points and tokens; then what got worse."""
        tokens = [token_words(self.tokens)] if self.tokens else []
        words = ", ".join([self.word, points_words(self.lift, self.unit), *tokens])
        return f"{words}; {self.worse}" if self.worse else words

    @property
    def unit(self) -> str:
        """What the points are of, unless that goes without saying."""
        return _UNITS[self.score] if self.other or self.score != "pass" else ""

    @property
    def other(self) -> Score | None:
        """What the verdict is not on, if its lift reads differently."""
        words = span_words(self.lift)
        return next(
            (s for s, lift in self.lifts.items() if span_words(lift) != words), None
        )

    @property
    def lift_words(self) -> str:
        """The lift, and the other one if it differs."""
        words = points_words(self.lift, self.unit)
        return f"{words}, {other}" if (other := self.other_words) else words

    @property
    def other_words(self) -> str:
        """``+20 of pass rate (-12 to +52)``, if that is not what the
        verdict is on and differs.
        """
        if self.other is None:
            return ""
        return span_words(self.lifts[self.other], _UNITS[self.other])


def unit_of(score: Score) -> str:
    """What points of a lift are of; those of pass rates are just points."""
    return "" if score == "pass" else _UNITS[score]


def compare_arms(
    rows: Sequence[Summary], over: str, of: str = "skill"
) -> list[Comparison | None]:
    """One for each model of a skill, adjusted for several models; None without
    pairs.
    """
    by_score = {score: _lifts(rows, score, over, of) for score in _SCORES}
    comparisons: list[Comparison | None] = []
    for number, row in enumerate(rows):
        lifts = {score: lift for score in _SCORES if (lift := by_score[score][number])}
        changes = {
            amount: change
            for amount in AMOUNTS
            if (change := paired_ratio(row.pairs(amount, over, of)))
        }
        paired = row.score in lifts
        comparisons.append(Comparison(row.score, lifts, changes) if paired else None)
    return comparisons


def with_earlier(
    now: Summary, earlier: Summary, left_out: Collection[str] = ()
) -> Summary:
    """A summary over the cases in both; the skill's arm of the
    other is the arm ``earlier``.
    """
    before = {case.case: case for case in earlier.by_case if case.case not in left_out}
    cases = [
        replace(case, arms={EARLIER: before[case.case].arm("skill"), **case.arms})
        for case in now.by_case
        if case.case in before
    ]
    return replace(now, by_case=tuple(cases), runs=max(earlier.runs, now.runs))


def compare_versions(rows: Sequence[Summary], over: str) -> list[VersionChange]:
    """The skill compared with its version in another arm,
    over all skills and models of a run.
    """
    cases = [[case for case in row.by_case if over in case.arms] for row in rows]
    groups = [
        [
            CasePasses(case.arm(over).count, case.arm("skill").count, case.question)
            for case in group
        ]
        for group in cases
    ]
    swapped = [
        [CasePasses(now, before, sample) for before, now, sample in g] for g in groups
    ]
    changes = []
    for group, passes, worse, better in zip(
        cases, groups, worsened(groups), worsened(swapped), strict=True
    ):
        better_cases, worse_cases = (
            tuple(group[index].case for index in change.cases)
            for change in (better, worse)
        )
        fell = [_drop(group[index].case, *passes[index][:2]) for index in worse.cases]
        words = [first_few(fell, _MOST_NAMES, "; ")] if fell else []
        if worse.together:
            which = "the others together" if fell else "all together"
            words.append(
                _drop(which, worse.before, worse.now, f", p = {worse.p_value:.2g}")
            )
        changes.append(
            VersionChange(better_cases, worse_cases, "; ".join(words), worse.together)
        )
    return changes


def _drop(
    name: str, before: tuple[int, int], now: tuple[int, int], p_value: str = ""
) -> str:
    return (
        f"{one_line(name, 60)}: {Count(*now)} runs passed (before:"
        f" {Count(*before)}{p_value})"
    )


def _lifts(
    rows: Sequence[Summary], score: Score, over: str, of: str
) -> list[Lift | None]:
    """Of each model, adjusted for several of them; None without pairs."""
    pairs = [row.scores(over, of, score) for row in rows]
    lifts = [
        paired_lift(scores, row.runs) if scores else None
        for row, scores in zip(rows, pairs, strict=True)
    ]
    p_values = iter(holm([lift.p_value for lift in lifts if lift]))
    adjusted = [lift and adjusted_lift(lift, next(p_values)) for lift in lifts]
    return [
        # Without an effect, the ends are a claim: there is none of 20 points or more.
        (
            lift
            if lift is None or lift.shown
            else guarded_twice(lift, [after - before for before, after in scores])
        )
        for lift, scores in zip(adjusted, pairs, strict=True)
    ]


def adjusted_lift(lift: Lift, p_value: float) -> Lift:
    """With the p-value among several; the interval includes 0 unless that is
    evidence.
    """
    if p_value >= 1 - LEVEL:  # no evidence, as one of several models
        lift = lift._replace(low=min(lift.low, 0.0), high=max(lift.high, 0.0))
    return lift._replace(p_value=p_value)


def token_words(change: Change) -> str:
    if abs(change.change) < _ABOUT_THE_SAME:
        return "the same number of tokens"
    if times := times_as_much(change.change):
        return f"{times} times the tokens"
    return f"{abs(change.change):.0%} {'more' if change.change > 0 else 'fewer'} tokens"
