"""A skill as it is against the skill as it was at a git ref: the same cases, in pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from .._util.texts import one_line, points, times_as_much
from ..stats import LEVEL, Change, Lift, holm, paired_lift, paired_ratio
from .summary import Summary

_ABOUT_THE_SAME: Final = 0.02


@dataclass(frozen=True)
class Comparison:
    """What changed since the ref, on a model: a lift over the skill as it was there."""

    lift: Lift
    p_value: float  # adjusted for there being several models
    word: Literal["better", "worse", "no change shown"]
    sentence: str


def comparisons_of(rows: Sequence[Summary], level: float = LEVEL) -> list[Comparison | None]:
    """One for each model of a skill; None where there is nothing to compare with."""
    lifts = [
        paired_lift(row.rates_since, row.runs, level) if row.rates_since else None for row in rows
    ]
    adjusted = iter(holm([lift.p_value for lift in lifts if lift]))
    return [
        _comparison(row, lift, next(adjusted), level) if lift else None
        for row, lift in zip(rows, lifts, strict=True)
    ]


def adjusted_lift(lift: Lift | None, p_value: float | None, level: float) -> Lift | None:
    """The interval decides: where several models make a lift no evidence it holds 0."""
    if lift is None or p_value is None or p_value < 1 - level:
        return lift
    return lift._replace(low=min(lift.low, 0.0), high=max(lift.high, 0.0))


def _comparison(row: Summary, raw: Lift, p_value: float, level: float) -> Comparison:
    word: Literal["better", "worse", "no change shown"] = "no change shown"
    lift = adjusted_lift(raw, p_value, level) or raw
    if lift.shown:
        word = "better" if lift.lift > 0 else "worse"
    tokens = paired_ratio(row.tokens_since, level) if row.tokens_since else None
    parts = [word, points_words(lift), *([token_words(tokens)] if tokens else [])]
    return Comparison(
        lift, p_value, word, f"since {one_line(row.against or '', 60)}: {', '.join(parts)}"
    )


def points_words(lift: Lift) -> str:
    return f"{points(lift.lift)} points ({points(lift.low)} to {points(lift.high)})"


def token_words(change: Change) -> str:
    if abs(change.change) < _ABOUT_THE_SAME:
        return "as many tokens"
    if times := times_as_much(change.change):
        return f"{times} times the tokens"
    return f"{abs(change.change):.0%} {'more' if change.change > 0 else 'fewer'} tokens"
