"""Significance tests: how likely are these results if nothing changed?

`sign_flip` tests a lift, where cases are the sample. `regressed` compares accepted results with
present ones; there the cases are the same, so runs are the sample. Given how often a case passed
in both together, and if nothing changed, its present passes are a draw without replacement. That
is Fisher's exact test for one case, and its exact stratified form (Mantel and Haenszel) for the
whole skill. A case that always passes or always fails carries no weight, a flaky one little.
"""

from collections.abc import Sequence
from math import comb, gcd
from operator import mul
from typing import NamedTuple

from .descriptive import mean_and_spread
from .distributions import t_tail

# The test is exact up to this many cases; beyond, Student's t is as good and much faster.
_EXACT = 50
# Differences of rates are whole multiples of 1/27720 for any mix of up to 12 runs; shares of other
# numbers of checks are rounded to it.
_GRID = 27720
# Of this many possible counts, those with a chance this small are left out: it saves most of the
# time, and no p value changes by more than a millionth of a millionth.
_MANY, _NEVER = 200, 1e-18


def sign_flip(differences: Sequence[float]) -> float:
    """Two-sided mid-p value of the sign-flip test that paired differences are centered on 0.

    If the arms were equal, each difference could as well have the other sign. If all differences
    are -1, 0 or 1, this is McNemar's mid-p test. Sums that only rounding to the grid sets apart
    are ties.
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
    # Counts the ways to reach each sum as digits of one large number, each `width` bits wide.
    width = len(sizes) + 2
    ways = 1
    for size in sizes:
        ways += ways << (size * width)
    apart = len(sizes) // (2 * unit)  # half a step for each difference

    def ways_from(start: int) -> int:
        # Modulo 2^width - 1, a number equals the sum of its digits.
        return int((ways >> (max(0, start) * width)) % ((1 << width) - 1))

    # Ties count half.
    tail = ways_from(extreme - apart) + ways_from(extreme + apart + 1)
    return min(1.0, tail / (1 << len(sizes)))


def holm(p_values: Sequence[float]) -> list[float]:
    """p values adjusted for multiple tests (Holm 1979), in the order given."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def hypergeometric(drawn: int, marked: int, total: int) -> list[float]:
    """The chances of drawing 0, 1, … marked items in `drawn` of `total`."""
    ways = comb(total, drawn)
    fewest, most = max(0, drawn + marked - total), min(drawn, marked)
    chances = [0.0] * (drawn + 1)
    hit = comb(marked, fewest) * comb(total - marked, drawn - fewest)
    for hits in range(fewest, most + 1):
        chances[hits] = hit / ways
        neither = total - marked - drawn + hits + 1  # not marked and not drawn, after the next hit
        hit = hit * (marked - hits) * (drawn - hits) // ((hits + 1) * neither)
    return chances


# Per case: runs passed, and runs.
Counts = Sequence[tuple[int, int]]


class Regression(NamedTuple):
    """Which cases regressed, by index, and whether the skill as a whole did."""

    cases: list[int]
    whole: bool
    p_cases: list[float]  # per case, adjusted for multiple tests
    p_whole: float

    @property
    def found(self) -> bool:
        return self.whole or bool(self.cases)


def regressed(accepted: Counts, present: Counts, level: float = 0.05) -> Regression:
    """Find regressions, with false alarms in at most `level` of all comparisons.

    Half of the level goes to the cases (Holm), half to the whole.
    """
    pairs = list(zip(accepted, present, strict=True))
    # Whether a case could be significant at all depends only on the sum of its passes, so leaving
    # the others out of Holm's correction makes no error more likely (Tarone 1990).
    testable = [index for index, pair in enumerate(pairs) if _lowest(*pair) <= level / 2]
    adjusted = holm([drop([accepted[index]], [present[index]]) for index in testable])
    p_cases = [1.0] * len(pairs)
    for index, p_value in zip(testable, adjusted, strict=True):
        p_cases[index] = p_value
    p_whole = drop(accepted, present)
    worse = [index for index, p_value in enumerate(p_cases) if p_value <= level / 2]
    return Regression(worse, p_whole <= level / 2, p_cases, p_whole)


def _lowest(before: tuple[int, int], now: tuple[int, int]) -> float:
    """The lowest p value that this sum of passes allows."""
    total = before[0] + now[0]
    most = min(total, before[1])
    return drop([(most, before[1])], [(total - most, now[1])])


def drop(accepted: Counts, present: Counts) -> float:
    """One-sided exact p value of so few present passes, over all cases."""
    parts: list[Chances] = []
    for (before, runs_before), (now, runs) in zip(accepted, present, strict=True):
        parts.append(_trimmed(0, hypergeometric(runs, before + now, runs_before + runs)))
    while len(parts) > 1:  # in pairs of similar length, which is faster than one by one
        odd_part = parts[len(parts) // 2 * 2 :]
        parts = [_sum_of(*pair) for pair in zip(parts[::2], parts[1::2], strict=False)] + odd_part
    fewest, chances = parts[0] if parts else (0, [1.0])
    passes = sum(now for now, _ in present)
    return min(1.0, sum(chances[: max(0, passes - fewest + 1)])) or _NEVER


Chances = tuple[int, list[float]]  # of a count: the least that is possible, and the chance of each


def _trimmed(fewest: int, chances: Sequence[float]) -> Chances:
    """Without impossible counts at both ends; of many, also without those that never happen."""
    never = _NEVER if len(chances) > _MANY else 0.0
    likely = [index for index, chance in enumerate(chances) if chance > never]
    return fewest + likely[0], list(chances[likely[0] : likely[-1] + 1])


def _sum_of(first: Chances, second: Chances) -> Chances:
    """The distribution of the sum of two counts."""
    short, long = sorted((first[1], second[1]), key=len)
    turned, zeros = short[::-1], [0.0] * (len(short) - 1)
    padded = [*zeros, *long, *zeros]
    total = [
        sum(map(mul, turned, padded[start : start + len(short)]))
        for start in range(len(short) + len(long) - 1)
    ]
    return _trimmed(first[0] + second[0], total)
