"""Tests: how likely is what was seen if nothing is there?"""

from collections.abc import Sequence
from math import comb, gcd

from .distributions import t_tail
from .moments import mean_and_spread

# Up to so many cases the test is exact; Student's t is as good beyond and much quicker.
_EXACT = 50
# Differences of rates are whole multiples of this for any mix of up to 12 runs.
_GRID = 27720


def sign_flip(differences: Sequence[float]) -> float:
    """The two-sided mid-p value of the sign-flip test that paired differences are around 0.

    If the arms were the same, each difference could as well have had the other sign. Where all
    differences are -1, 0 or 1 this is McNemar's mid-p test.
    """
    steps = [round(difference * _GRID) for difference in differences]
    steps = [step for step in steps if step]
    if len(steps) > _EXACT:
        mean, spread = mean_and_spread(differences)
        error = spread / len(differences) ** 0.5
        return 2 * t_tail(abs(mean) / error, len(differences) - 1) if error else 0.0
    unit = gcd(*steps) or 1
    sizes = [abs(step) // unit for step in steps]
    above = sum(step for step in steps if step > 0) // unit
    extreme = max(above, sum(sizes) - above)
    # The ways to reach each sum, as digits of one large number: of `width` bits, so none spills.
    width = len(sizes) + 2
    ways = 1
    for size in sizes:
        ways += ways << (size * width)
    tail = ways >> (extreme * width)
    # Modulo 2^width - 1 a number is the sum of its digits.
    at_least, exactly = tail % ((1 << width) - 1), tail & ((1 << width) - 1)
    return float((2 * at_least - exactly) / (1 << len(sizes)))


def holm(p_values: Sequence[float]) -> list[float]:
    """p values adjusted for there being several (Holm 1979), in the order given."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def hypergeometric(drawn: int, marked: int, total: int) -> list[float]:
    """The chances of 0, 1, … marked among `drawn` out of `total`."""
    ways = comb(total, drawn)
    return [
        comb(marked, hits) * comb(total - marked, drawn - hits) / ways for hits in range(drawn + 1)
    ]
