"""Mean and spread."""

from collections.abc import Sequence
from math import fsum, sqrt


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation; the latter 0 for a single value.

    Values that differ by rounding alone are the same: (0.9 - 0.7) and (0.3 - 0.1) are one lift.
    """
    mean = fsum(values) / len(values)
    if max(values) - min(values) < 1e-12 or len(values) < 2:
        return mean, 0.0
    return mean, sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
