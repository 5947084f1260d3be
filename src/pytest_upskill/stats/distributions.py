"""The normal and Student's t distributions in plain Python, to avoid a dependency."""

from functools import lru_cache
from math import exp, inf, lgamma, log, log1p
from statistics import NormalDist

_NORMAL = NormalDist()
_TINY = 1e-300


def normal_tail(z: float) -> float:
    """The chance that a standard normal value is above `z`."""
    return _NORMAL.cdf(-z)


def normal_quantile(p: float) -> float:
    return _NORMAL.inv_cdf(p)


def t_tail(t: float, df: float) -> float:
    """The chance that a Student t value is above `t`."""
    if t < 0:
        return 1 - t_tail(-t, df)
    if t == inf:
        return 0.0
    return 0.5 * incomplete_beta(df / 2, 0.5, df / (df + t * t))


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """The value that Student's t stays below with chance `p`, by bisection."""
    if p < 0.5:
        return -t_quantile(1 - p, df)
    low, high = 0.0, 1.0
    while t_tail(high, df) > 1 - p:
        low, high = high, high * 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, df) > 1 - p else (low, middle)
    return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast only on the other side
        return 1 - incomplete_beta(b, a, 1 - x)
    front = a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)
    return exp(front) * _beta_fraction(a, b, x) / a


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Its continued fraction, by Lentz's method."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
