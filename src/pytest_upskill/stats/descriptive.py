"""Descriptive statistics: mean and spread, pass^k, flakiness, gain, agreement."""

from collections.abc import Sequence
from math import comb, fsum, sqrt


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation; the deviation of a single value is 0.

    Values that differ only by rounding are equal: (0.9 - 0.7) and (0.3
    - 0.1) are the same lift.
    """
    mean = fsum(values) / len(values)
    if max(values) - min(values) < 1e-12 or len(values) < 2:
        return mean, 0.0
    return mean, sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def pass_hat_k(passes: int, runs: int, k: int) -> float:
    """pass^k: unbiased estimate of the chance that `k` runs of a case all pass."""
    if not 1 <= k <= runs:
        raise ValueError(f"pass^{k} is undefined for {runs} runs")
    return comb(passes, k) / comb(runs, k)


def flakiness(passes: int, runs: int) -> float:
    """The chance that two runs of a case differ; 0 if all runs agree."""
    return passes * (runs - passes) / comb(runs, 2) if runs > 1 else 0.0


def normalised_gain(baseline: float, skill: float) -> float | None:
    """The share of the possible gain that was reached (Hake 1998);
    None if none was possible.
    """
    return (skill - baseline) / (1 - baseline) if baseline < 1 else None


def kappa_of(
    agreed: float | None, ours: Sequence[bool], theirs: Sequence[bool]
) -> float | None:
    """Cohen's kappa of an agreement of two raters, beyond what they agree on by chance.

    1 is full agreement, 0 is chance; None if both raters only ever
    give the same one answer.
    """
    if agreed is None or not ours:
        return None
    yes, their_yes = sum(ours) / len(ours), sum(theirs) / len(theirs)
    by_chance = yes * their_yes + (1 - yes) * (1 - their_yes)
    return None if by_chance == 1 else (agreed - by_chance) / (1 - by_chance)
