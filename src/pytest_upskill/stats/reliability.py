"""What single cases and pairs of rates tell besides the lift."""

from math import comb


def pass_hat_k(passes: int, runs: int, k: int) -> float:
    """pass^k: the chance that `k` runs of a case all pass, estimated without bias."""
    if not 1 <= k <= runs:
        raise ValueError(f"pass^{k} can't be told from {runs} runs")
    return comb(passes, k) / comb(runs, k)


def flakiness(passes: int, runs: int) -> float:
    """The chance that two runs of a case differ: 0 for a case that always does the same."""
    return passes * (runs - passes) / comb(runs, 2) if runs > 1 else 0.0


def normalised_gain(baseline: float, skill: float) -> float | None:
    """The share of what the baseline left to gain (Hake 1998); None if it left nothing."""
    return (skill - baseline) / (1 - baseline) if baseline < 1 else None
