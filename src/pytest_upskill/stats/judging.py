"""What a judge that errs says about the true share, and how far two judges agree."""

from collections.abc import Sequence
from math import sqrt
from typing import Final, NamedTuple

from .distributions import normal_quantile
from .intervals import LEVEL, Interval

# Samples of what a judge should pass, and of what it should fail
_MIN_SAMPLES: Final = 5


class Ruled(NamedTuple):
    """How often a judge is right about what is so: ``rate`` of ``n`` samples."""

    rate: float
    n: int


def corrected_rate(
    passed: Ruled, sensitivity: Ruled, specificity: Ruled, level: float = LEVEL
) -> tuple[float, Interval] | None:
    """The true share of what a judge passed, which errs (Rogan and Gladen 1978).

    The interval is that of Lang and Reiczigel (2014): it allows for the samples of the
    share, of what should pass (sensitivity) and of what should fail (specificity). None
    of few samples, or if the judge is no better than chance.
    """
    if min(sensitivity.n, specificity.n) < _MIN_SAMPLES:
        return None
    if sensitivity.rate + specificity.rate <= 1:
        return None

    z = normal_quantile((1 + level) / 2)
    share = _adjust(passed, z * z / 2)
    hits = _adjust(sensitivity, 1)
    misses = _adjust(specificity, 1)
    skill = hits.rate + misses.rate - 1
    if skill <= 0:
        return None

    middle = _clamp((share.rate + misses.rate - 1) / skill)
    shift = middle * hits.variance - (1 - middle) * misses.variance
    center = middle + 2 * z * z * shift
    variance = (
        share.variance + middle**2 * hits.variance + (1 - middle) ** 2 * misses.variance
    )
    half = z * sqrt(variance) / skill

    rate = _clamp(
        (passed.rate + specificity.rate - 1) / (sensitivity.rate + specificity.rate - 1)
    )
    low = min(rate, max(0.0, center - half))
    high = max(rate, min(1.0, center + half))
    return rate, Interval(low, high)


class _Adjusted(NamedTuple):
    rate: float
    variance: float


def _adjust(ruled: Ruled, added: float) -> _Adjusted:
    """The rate with so many more successes and failures, and its variance."""
    size = ruled.n + 2 * added
    rate = (ruled.n * ruled.rate + added) / size
    return _Adjusted(rate, rate * (1 - rate) / size)


def _clamp(rate: float) -> float:
    return min(1.0, max(0.0, rate))


def kappa_of(
    agreed: float | None, ours: Sequence[bool], theirs: Sequence[bool]
) -> float | None:
    """Cohen's kappa of an agreement of two raters, beyond what they agree on by chance.

    1 is full agreement, 0 is chance; None if both raters only ever give the same one
    answer.
    """
    if agreed is None or not ours:
        return None

    yes = sum(ours) / len(ours)
    their_yes = sum(theirs) / len(theirs)
    by_chance = yes * their_yes + (1 - yes) * (1 - their_yes)
    if by_chance == 1:
        return None
    return (agreed - by_chance) / (1 - by_chance)
