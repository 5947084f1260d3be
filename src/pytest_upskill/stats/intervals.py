"""Rates, lift and token change with confidence intervals. The sample is the case,
not the run.
"""

from collections.abc import Sequence
from math import exp, fsum, log, sqrt
from statistics import covariance, fmean
from typing import NamedTuple

from .descriptive import mean_and_spread
from .distributions import normal_quantile, t_quantile
from .significance import sign_flip

LEVEL = 0.95
ROUNDING = 1e-9  # means that differ by less are equal
_ENOUGH = 5  # samples of what a judge should pass, and of what it should fail

# Per case: the value of the baseline and of the skill.
Pairs = Sequence[tuple[float, float]]


class Interval(NamedTuple):
    low: float
    high: float


class Lift(NamedTuple):
    """A lift with its interval; verdicts use `shown`."""

    lift: float
    low: float
    high: float
    p_value: float

    @property
    def shown(self) -> bool:
        return self.low > 0 or self.high < 0


class Change(NamedTuple):
    """A relative change with its interval; one or two cases have no interval."""

    change: float
    low: float | None
    high: float | None


def wilson(rate: float, n: float, level: float = LEVEL) -> Interval:
    """Wilson's score interval of a rate over `n` cases.

    It is conservative for a mean of rates: no values in 0–1 vary
    more than zeros and ones.
    """
    z = normal_quantile((1 + level) / 2)
    shrink = 1 + z * z / n
    middle = (rate + z * z / (2 * n)) / shrink
    half = z / shrink * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # At 0 and 1 the rate is the limit; rounding must not move it outside.
    return Interval(
        min(rate, max(0.0, middle - half)), max(rate, min(1.0, middle + half))
    )


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
    if min(sensitivity.n, specificity.n) < _ENOUGH:
        return None
    if sensitivity.rate + specificity.rate <= 1:
        return None

    z = normal_quantile((1 + level) / 2)
    share, of_share = _adjusted(passed, z * z / 2)
    right, of_hits = _adjusted(sensitivity, 1)
    refused, of_misses = _adjusted(specificity, 1)
    skill = right + refused - 1
    if skill <= 0:
        return None

    middle = _clamped((share + refused - 1) / skill)
    center = middle + 2 * z * z * (middle * of_hits - (1 - middle) * of_misses)
    variance = of_share + middle**2 * of_hits + (1 - middle) ** 2 * of_misses
    half = z * sqrt(variance) / skill
    low = max(0.0, center - half)
    high = min(1.0, center + half)

    rate = _clamped(
        (passed.rate + specificity.rate - 1) / (sensitivity.rate + specificity.rate - 1)
    )
    return rate, Interval(min(rate, low), max(rate, high))


class _Adjusted(NamedTuple):
    rate: float
    variance: float


def _adjusted(ruled: Ruled, added: float) -> _Adjusted:
    """The rate with so many more successes and failures, and its variance."""
    size = ruled.n + 2 * added
    rate = (ruled.n * ruled.rate + added) / size
    return _Adjusted(rate, rate * (1 - rate) / size)


def _clamped(rate: float) -> float:
    return min(1.0, max(0.0, rate))


def newcombe(
    both: int, skill_only: int, baseline_only: int, neither: int, level: float = LEVEL
) -> Interval:
    """Newcombe's (1998) interval of a paired difference of rates, method 10.

    The Wilson limits of both arms, squared and added, minus their correlation (phi,
    with a continuity correction).
    """
    n = both + skill_only + baseline_only + neither
    skill, baseline = (both + skill_only) / n, (both + baseline_only) / n
    skill_low, skill_high = wilson(skill, n, level)
    baseline_low, baseline_high = wilson(baseline, n, level)
    common: float = both * neither - skill_only * baseline_only
    if common > 0:
        common = max(common - n / 2, 0)
    scale = n * n * sqrt(skill * (1 - skill) * baseline * (1 - baseline))
    phi = common / scale if scale else 0.0

    def reach(first: float, second: float) -> float:
        return sqrt(
            max(0.0, first * first - 2 * phi * first * second + second * second)
        )

    lift = skill - baseline
    return Interval(
        max(-1.0, lift - reach(skill - skill_low, baseline_high - baseline)),
        min(1.0, lift + reach(skill_high - skill, baseline - baseline_low)),
    )


def paired_lift(pairs: Pairs, runs: int, level: float = LEVEL) -> Lift:
    """The mean difference of values in 0–1 (pass rates or scores) over the cases.

    The interval is Newcombe's if every case passed or failed in one run, else
    Student's t. It is never narrower than `unseen` cases allow, and it
    includes 0 unless the sign-flip test excludes 0 too, so that interval and
    test never contradict each other.
    """
    differences = [skill - baseline for baseline, skill in pairs]
    if runs == 1 and all(value in (0, 1) for pair in pairs for value in pair):
        count = pairs.count
        limits = newcombe(
            count((1, 1)), count((0, 1)), count((1, 0)), count((0, 0)), level
        )
        return _widened(differences, limits, level)
    return _widened(differences, _student(differences, level), level)


def paired_effect(
    differences: Sequence[float], level: float = LEVEL, reach: float = 1.0
) -> Lift:
    """The mean of differences of -``reach`` to ``reach``,
    such as those of two lifts (2).

    Student's interval, extended as in `paired_lift`. If it includes 0, the p value is
    not below the level either, so that 0 is excluded just if the p value is.
    """
    effect = _widened(differences, _student(differences, level), level, reach)
    return (
        effect
        if effect.shown
        else effect._replace(p_value=max(effect.p_value, 1 - level))
    )


def lift_per_use(
    lift: Lift, pairs: Pairs, shares: Sequence[float], level: float = LEVEL
) -> Lift | None:
    """The lift per share of runs that used the skill,
    which is its effect on those that did.

    That holds if it has no effect on the others, however the ones that used it were
    chosen. The limits are Fieller's: every t for which the mean over cases of
    difference - t × share could be 0, by Student's t. They are never narrower than
    `unseen` cases allow, and hold 0 just if the ``lift`` is not shown. None if they are
    unbounded or too wide (1 or more apart).
    """
    cases = len(pairs)
    if cases < 2:
        return None
    differences = [skill - baseline for baseline, skill in pairs]
    gained, used = fmean(differences), fmean(shares)
    # Of the means, times the square of Student's t: how far chance may
    # move squares and product.
    scale = t_quantile((1 + level) / 2, cases - 1) ** 2 / cases
    of_square = used**2 - scale * covariance(shares, shares)
    of_product = gained * used - scale * covariance(differences, shares)
    of_constant = gained**2 - scale * covariance(differences, differences)
    reach = sqrt(max(0.0, of_product**2 - of_square * of_constant))
    # Before the effect itself makes it narrower
    if of_square <= 0 or 2 * reach >= of_square:
        return None
    share = unseen(cases, level)
    seen, all_used = (1 - share) * gained, (1 - share) * used + share
    low = min(
        (of_product - reach) / of_square, (seen - share * (lift.low <= 0)) / all_used
    )
    high = max(
        (of_product + reach) / of_square, (seen + share * (lift.high >= 0)) / all_used
    )
    if not lift.shown:
        low, high = min(low, 0.0), max(high, 0.0)
    low = max(low, 0.0 if lift.low > 0 else -1.0)
    high = min(high, 0.0 if lift.high < 0 else 1.0)
    effect = max(-1.0, min(1.0, gained / used))
    return Lift(effect, low, high, lift.p_value)


def _student(differences: Sequence[float], level: float) -> Interval:
    mean, spread = mean_and_spread(differences)
    half = half_width(spread, len(differences), level)
    return Interval(mean - half, mean + half)


def _widened(
    differences: Sequence[float], limits: Interval, level: float, reach: float = 1.0
) -> Lift:
    lift, _ = mean_and_spread(differences)
    p_value = sign_flip(differences)
    low, high = limits
    share = unseen(len(differences), level)
    mean_seen = (1 - share) * lift
    # If a lift is shown, it stays shown: unseen cases then count as having no lift.
    low = min(low, mean_seen if low > 0 else mean_seen - share * reach)
    high = max(high, mean_seen if high < 0 else mean_seen + share * reach)
    if p_value >= 1 - level:
        low, high = min(low, 0.0), max(high, 0.0)
    return Lift(lift, max(-reach, low), min(reach, high), p_value)


def shared_level(effects: int, level: float = LEVEL) -> float:
    """The level of each interval if so many share the error;
    this is the first step of Holm.
    """
    return 1 - (1 - level) / max(1, effects)


def half_width(spread: float, cases: int, level: float = LEVEL) -> float:
    """Half of Student's interval; 4 (everything) for a single case."""
    return (
        t_quantile((1 + level) / 2, cases - 1) * spread / sqrt(cases)
        if cases > 1
        else 4.0
    )


def unseen(cases: int, level: float = LEVEL) -> float:
    """The share of cases of another kind that a sample of `cases` may miss by chance,
    about 3/n.

    Equal differences have no spread, yet this share of other ones
    may be missing from them.
    """
    return 1 - float(((1 - level) / 2) ** (1 / cases))


def low_with_rare_losses(
    change: float, spread: float, largest: float, cases: int, level: float = LEVEL
) -> float:
    """The lower end of a mean of which a few cases lose much;
    ``largest`` is the largest loss.

    If losses are rare and large, few of them are in a sample, and Student's interval is
    too short. This is Wilson's way: at its end, the spread is that of the cases
    together with as many more of the largest loss as it takes to get there. For cases
    that lose all or nothing it is Wilson's score interval. Losses that were not seen at
    all are left to `unseen`.
    """
    if spread == 0 or cases < 2 or largest <= -change:
        return change
    variance = spread**2 * (cases - 1) / cases
    size = cases / normal_quantile((1 + level) / 2) ** 2 + 1
    slope = (largest**2 - variance - change**2) / (largest + change) + 2 * change
    return max(
        -1.0, change - (slope + sqrt(slope**2 + 4 * size * variance)) / (2 * size)
    )


def guarded(effect: Lift, differences: Sequence[float], level: float = LEVEL) -> Lift:
    """For a claim that less than a margin is lost: the lower end allows for rare,
    large losses.
    """
    change, spread = mean_and_spread(differences)
    low = low_with_rare_losses(
        change, spread, -min(differences), len(differences), level
    )
    return effect._replace(low=min(effect.low, low))


def guarded_twice(
    effect: Lift, differences: Sequence[float], level: float = LEVEL
) -> Lift:
    """For a claim that less than a margin is lost or gained:
    both ends allow for rare cases.
    """
    swapped = effect._replace(low=-effect.high)
    high = -guarded(swapped, [-difference for difference in differences], level).low
    return guarded(effect, differences, level)._replace(high=high)


def paired_ratio(pairs: Pairs, level: float = LEVEL) -> Change | None:
    """The relative change of a mean (tokens, say) from baseline to skill;
    None if either is 0.

    The interval is Student's t on the log ratio, with a jackknife error over cases. It
    costs two degrees of freedom, one for each mean.
    """
    baseline, skill = (
        (fsum(values) for values in zip(*pairs, strict=True)) if pairs else (0, 0)
    )
    if baseline <= 0 or skill <= 0:
        return None
    ratio = skill / baseline
    without_each = [
        (baseline - baseline_part, skill - skill_part)
        for baseline_part, skill_part in pairs
    ]
    if any(
        baseline_part <= 0 or skill_part <= 0
        for baseline_part, skill_part in without_each
    ):
        return Change(ratio - 1, None, None)
    _, spread = mean_and_spread(
        [log(skill_part / baseline_part) for baseline_part, skill_part in without_each]
    )
    freedom = len(pairs) - 2
    if freedom < 1:
        return Change(ratio - 1, None, None)
    error = spread / sqrt(len(pairs)) * (len(pairs) - 1)
    half = t_quantile((1 + level) / 2, freedom) * error
    return Change(ratio - 1, ratio * exp(-half) - 1, ratio * exp(half) - 1)
