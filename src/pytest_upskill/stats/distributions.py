"""Mean and spread, and the normal and Student's t distributions: importing SciPy
would take longer than most runs.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import atan, cos, fsum, pi, sin, sqrt
from statistics import NormalDist
from typing import Final

ROUNDING: Final = 1e-9  # means that differ by less are equal
_MANY_DEGREES: Final = 100


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and the standard deviation of a sample; that of one value is 0."""
    mean = fsum(values) / len(values)

    # 0.9 - 0.7 and 0.3 - 0.1 are the same lift.
    if max(values) - min(values) < ROUNDING:
        return mean, 0.0

    squares = fsum((value - mean) ** 2 for value in values)
    return mean, sqrt(squares / (len(values) - 1))


def normal_tail(z: float) -> float:
    """The chance that a standard normal value is above `z`."""
    return NormalDist().cdf(-z)


def normal_quantile(p: float) -> float:
    return NormalDist().inv_cdf(p)


def t_tail(t: float, df: int) -> float:
    """The chance that a Student t value is above `t`.

    The finite sum for whole degrees of freedom: Abramowitz and Stegun, 26.7.3 and 4.
    """
    angle = atan(t / sqrt(df))
    is_odd = df % 2
    term = cos(angle) ** is_odd
    total = 0.0
    for power in range(is_odd, df - 1, 2):
        total += term
        term *= cos(angle) ** 2 * (power + 1) / (power + 2)

    inside = sin(angle) * total
    if is_odd:
        inside = 2 / pi * (angle + inside)
    return (1 - inside) / 2


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: int) -> float:
    """The value that Student's t stays below with chance `p`, of at least a half."""
    z = normal_quantile(p)
    if df >= _MANY_DEGREES:
        # Abramowitz and Stegun, 26.7.5
        first = (z**3 + z) / (4 * df)
        return z + first + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)

    low = 0.0
    high = 1.0
    while t_tail(high, df) > 1 - p:
        high *= 2

    for _ in range(80):
        middle = (low + high) / 2
        if t_tail(middle, df) > 1 - p:
            low = middle
        else:
            high = middle
    return high
