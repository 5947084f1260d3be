"""Rates, lifts and ratios with their intervals. The sample is the case, not the run."""

from collections.abc import Sequence
from math import exp, sqrt
from typing import Final, NamedTuple

from .distributions import mean_and_spread, normal_quantile, t_quantile
from .significance import holm, sign_flip

LEVEL: Final = 0.95


class Interval(NamedTuple):
    low: float
    high: float


class Lift(NamedTuple):
    """A mean difference with its interval; the p value is below 5 % just if it is
    shown.
    """

    lift: float
    low: float
    high: float
    p_value: float

    @property
    def shown(self) -> bool:
        return self.low > 0 or self.high < 0


class Change(NamedTuple):
    """A relative change with its interval; that of a single case has none."""

    change: float
    low: float | None
    high: float | None


def wilson(rate: float, n: float, level: float = LEVEL) -> Interval:
    """Wilson's score interval of a rate over `n` cases.

    It is conservative for a mean of rates: no values in 0–1 vary more than zeros and
    ones.
    """
    z = normal_quantile((1 + level) / 2)
    shrink = 1 + z * z / n
    middle = (rate + z * z / (2 * n)) / shrink
    half = z / shrink * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))

    # At 0 and 1 the rate is the limit; rounding must not move it outside.
    low = min(rate, max(0.0, middle - half))
    high = max(rate, min(1.0, middle + half))
    return Interval(low, high)


def paired_lift(
    differences: Sequence[float], level: float = LEVEL, reach: float = 1.0
) -> Lift:
    """The mean of differences of -``reach`` to ``reach``, one of each case.

    The interval is Student's, but never narrower than `_unseen` cases allow. It
    excludes 0 just if the sign-flip test does, too.
    """
    lift, spread = mean_and_spread(differences)
    half = half_width(spread, len(differences), level)
    low = lift - half
    high = lift + half

    # Equal differences have no spread, and yet other ones may be missing from them. If
    # a lift is shown, it stays shown: unseen cases then count as having none.
    share = _unseen(len(differences), level)
    seen = (1 - share) * lift
    low = min(low, seen if low > 0 else seen - share * reach)
    high = max(high, seen if high < 0 else seen + share * reach)

    effect = Lift(lift, max(-reach, low), min(reach, high), sign_flip(differences))
    return _agree(effect, level)


def _agree(effect: Lift, level: float) -> Lift:
    """With the interval and the p value saying the same about 0."""
    if effect.p_value >= 1 - level:
        return effect._replace(low=min(effect.low, 0.0), high=max(effect.high, 0.0))
    if not effect.shown:
        return effect._replace(p_value=1 - level)
    return effect


def holm_lifts(lifts: Sequence[Lift], level: float = LEVEL) -> list[Lift]:
    """Lifts that are judged together: at most 5 % of such runs show a false one."""
    p_values = holm([effect.p_value for effect in lifts])
    adjusted = []
    for effect, p_value in zip(lifts, p_values, strict=True):
        adjusted.append(_agree(effect._replace(p_value=p_value), level))
    return adjusted


def paired_ratio(logs: Sequence[float], level: float = LEVEL) -> Change | None:
    """The mean relative change, from the logarithm of each case's ratio."""
    if not logs:
        return None

    mean, spread = mean_and_spread(logs)
    if len(logs) < 2:
        return Change(exp(mean) - 1, None, None)

    half = half_width(spread, len(logs), level)
    return Change(exp(mean) - 1, exp(mean - half) - 1, exp(mean + half) - 1)


def worst_loss(differences: Sequence[float], level: float = LEVEL) -> float:
    """The largest mean loss that is not ruled out, for a claim that less is lost.

    If losses are rare and large, few of them are in a sample, and Student's interval is
    too short. This is Wilson's way: at its end, the spread is that of the cases
    together with as many more of the largest loss as it takes to get there. For cases
    that lose all or nothing it is Wilson's score interval.
    """
    loss = -paired_lift(differences, level).low
    mean, spread = mean_and_spread(differences)
    largest = -min(differences)
    if not spread or largest <= 0:
        return max(0.0, loss)

    cases = len(differences)
    variance = spread**2 * (cases - 1) / cases
    size = cases / normal_quantile((1 + level) / 2) ** 2 + 1
    slope = (largest**2 - variance - mean**2) / (largest + mean) + 2 * mean
    end = (slope + sqrt(slope**2 + 4 * size * variance)) / (2 * size) - mean
    return max(0.0, loss, min(1.0, end))


def half_width(spread: float, cases: int, level: float) -> float:
    """Half of Student's interval."""
    if cases < 2:
        return float("inf")
    return t_quantile((1 + level) / 2, cases - 1) * spread / sqrt(cases)


def _unseen(cases: int, level: float) -> float:
    """The share of other cases that so many may miss by chance, about 3/n."""
    return 1 - float(((1 - level) / 2) ** (1 / cases))
