"""How likely are such differences between cases if nothing differs?"""

from collections.abc import Sequence
from math import gcd
from typing import Final

from .distributions import mean_and_spread, t_tail

# Beyond so many cases, Student's t is as good as the exact test and much faster.
_MAX_EXACT_CASES: Final = 50
# Differences of rates are whole multiples of 1/27720 for any mix of up to 12 runs;
# shares of other numbers of checks are rounded to it.
_GRID: Final = 27720


def sign_flip(differences: Sequence[float]) -> float:
    """Two-sided mid-p value of the test that paired differences are centered on 0.

    If the arms were equal, each difference could as well have the other sign. If all
    differences are -1, 0 or 1, this is McNemar's mid-p test. Sums that only rounding to
    the grid sets apart are ties.
    """
    steps = [round(difference * _GRID) for difference in differences]
    steps = [step for step in steps if step]
    if len(steps) > _MAX_EXACT_CASES:
        return _t_test(differences)

    unit = gcd(*steps) or 1
    sizes = [abs(step) // unit for step in steps]
    above = sum(step for step in steps if step > 0) // unit
    extreme = max(above, sum(sizes) - above)

    # The ways to reach each sum are digits of one large number, `width` bits wide.
    width = len(sizes) + 2
    ways = 1
    for size in sizes:
        ways += ways << (size * width)

    def count_ways_from(start: int) -> int:
        # Modulo 2^width - 1, a number equals the sum of its digits.
        return int((ways >> (max(0, start) * width)) % ((1 << width) - 1))

    # Half a step for each difference is rounding. Ties count half.
    rounding = len(sizes) // (2 * unit)
    tail = count_ways_from(extreme - rounding) + count_ways_from(extreme + rounding + 1)
    return min(1.0, tail / (1 << len(sizes)))


def _t_test(differences: Sequence[float]) -> float:
    mean, spread = mean_and_spread(differences)
    if not spread:
        return 0.0

    error = spread / len(differences) ** 0.5
    return 2 * t_tail(abs(mean) / error, len(differences) - 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """p values adjusted for several tests (Holm 1979), in the order given."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted
