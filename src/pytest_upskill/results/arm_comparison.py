"""One arm compared with another on each model of a skill, in numbers and in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from .._util.texts import times_as_much
from ..settings import Score
from ..stats import LEVEL, Change, Lift, holm, paired_lift, paired_ratio
from .contrasts import Contrast, State, points_words, span_words
from .summary import Summary

_ABOUT_THE_SAME: Final = 0.02
SCORE_WORDS: Final[Mapping[Score, str]] = {
    "pass": "pass rate of cases",
    "checks": "share of checks passed",
}
_UNITS: Final[Mapping[Score, str]] = {"pass": " of pass rate", "checks": " of checks"}
_SCORES: Final[tuple[Score, ...]] = ("pass", "checks")


@dataclass(frozen=True)
class Comparison:
    """The contrast of two arms on a model, by each score; one of them carries the verdict."""

    score: Score  # what the verdict is on
    # p-values are adjusted for several models; intervals include 0 unless they are evidence.
    contrasts: Mapping[Score, Contrast]
    tokens: Change | None

    @property
    def lifts(self) -> dict[Score, Lift]:
        return {score: one.lift for score, one in self.contrasts.items() if one.lift}

    @property
    def lift(self) -> Lift:
        return self.lifts[self.score]

    @property
    def word(self) -> Literal["better", "worse", "no change shown"]:
        word = self.contrasts[self.score].word
        return "better" if word == "helps" else "worse" if word == "hurts" else "no change shown"

    @property
    def words(self) -> str:
        """The same in words: verdict, points and tokens."""
        tokens = [token_words(self.tokens)] if self.tokens else []
        return ", ".join([self.word, points_words(self.lift, self.unit), *tokens])

    @property
    def unit(self) -> str:
        """What the points are of, unless that goes without saying."""
        return _UNITS[self.score] if self.other or self.score != "pass" else ""

    @property
    def other(self) -> Score | None:
        """What the verdict is not on, if its lift reads differently."""
        words = span_words(self.lift)
        return next((s for s, lift in self.lifts.items() if span_words(lift) != words), None)

    @property
    def lift_words(self) -> str:
        """The lift, and the other one if it differs."""
        words = points_words(self.lift, self.unit)
        return f"{words}, {other}" if (other := self.other_words) else words

    @property
    def other_words(self) -> str:
        """``+20 of pass rate (-12 to +52)``, if that is not what the verdict is on and differs."""
        if self.other is None:
            return ""
        return span_words(self.lifts[self.other], _UNITS[self.other])


def unit_of(score: Score) -> str:
    """What points of a lift are of; those of pass rates are just points."""
    return "" if score == "pass" else _UNITS[score]


def compare_arms(
    rows: Sequence[Summary], over: str, of: str = "skill", level: float = LEVEL
) -> list[Comparison | None]:
    """One for each model of a skill, adjusted for several models; None without pairs."""
    by_score = {score: _contrasts(rows, score, over, of, level) for score in _SCORES}
    comparisons: list[Comparison | None] = []
    for number, row in enumerate(rows):
        contrasts = {score: one for score in _SCORES if (one := by_score[score][number])}
        tokens = row.pairs("tokens", over, of)
        change = paired_ratio(tokens, level) if tokens else None
        paired = row.score in contrasts
        comparisons.append(Comparison(row.score, contrasts, change) if paired else None)
    return comparisons


def _contrasts(
    rows: Sequence[Summary], score: Score, over: str, of: str, level: float
) -> list[Contrast | None]:
    """Of each model, adjusted for several of them; None without pairs."""
    pairs = [row.scores(over, of, score) for row in rows]
    lifts = [
        paired_lift(scores, row.runs, level) if scores else None
        for row, scores in zip(rows, pairs, strict=True)
    ]
    adjusted = iter(holm([lift.p_value for lift in lifts if lift]))
    contrasts: list[Contrast | None] = []
    for row, scores, lift in zip(rows, pairs, lifts, strict=True):
        if lift is None:
            contrasts.append(None)
            continue
        lift = adjusted_lift(lift, next(adjusted), level)
        state: State = "shown" if lift.shown else "none shown"
        name, cases = f"{of} - {over}", len(scores)
        contrasts.append(Contrast(name, (of,), (over,), None, lift, cases, row.runs, state))
    return contrasts


def adjusted_lift(lift: Lift, p_value: float, level: float = LEVEL) -> Lift:
    """With the p-value among several; the interval includes 0 unless that is evidence."""
    if p_value >= 1 - level:  # no evidence, as one of several models
        lift = lift._replace(low=min(lift.low, 0.0), high=max(lift.high, 0.0))
    return lift._replace(p_value=p_value)


def token_words(change: Change) -> str:
    if abs(change.change) < _ABOUT_THE_SAME:
        return "the same number of tokens"
    if times := times_as_much(change.change):
        return f"{times} times the tokens"
    return f"{abs(change.change):.0%} {'more' if change.change > 0 else 'fewer'} tokens"
