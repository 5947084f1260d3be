"""Accepted passes beside present ones: what got worse, and not by chance?

Unlike for a lift, the cases are the same ones here, so the run is the sample. Given how often a
case passed in both together, and if nothing changed, its present passes are a draw without
replacement: Fisher's exact test for a case, the same over all cases (exact and stratified, after
Mantel and Haenszel) for the skill. A case that always passes or always fails says nothing, a
flaky one little.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .hypotheses import holm, hypergeometric

# Per case: how many runs passed, and how many there were.
Counts = Sequence[tuple[int, int]]


class Regression(NamedTuple):
    """Which cases got worse, by index, and whether the skill as a whole did."""

    cases: list[int]
    whole: bool
    p_cases: list[float]  # of each case, adjusted for there being several
    p_whole: float

    @property
    def found(self) -> bool:
        return self.whole or bool(self.cases)


def regressed(accepted: Counts, present: Counts, level: float = 0.05) -> Regression:
    """What got worse. An unchanged skill is found worse in at most `level` of all runs: half of it
    is for the cases (Holm), half for the whole.
    """
    pairs = list(zip(accepted, present, strict=True))
    # Which cases could be found worse at all depends on the sum of their passes only, so leaving
    # the others out of Holm's reckoning makes no error likelier (Tarone 1990).
    telling = [index for index, pair in enumerate(pairs) if _lowest(*pair) <= level / 2]
    adjusted = holm([drop([accepted[index]], [present[index]]) for index in telling])
    p_cases = [1.0] * len(pairs)
    for index, p_value in zip(telling, adjusted, strict=True):
        p_cases[index] = p_value
    p_whole = drop(accepted, present)
    worse = [index for index, p_value in enumerate(p_cases) if p_value <= level / 2]
    return Regression(worse, p_whole <= level / 2, p_cases, p_whole)


def _lowest(before: tuple[int, int], now: tuple[int, int]) -> float:
    """The p value if as many of the passes as can be were accepted ones."""
    total = before[0] + now[0]
    most = min(total, before[1])
    return drop([(most, before[1])], [(total - most, now[1])])


def drop(accepted: Counts, present: Counts) -> float:
    """The one-sided exact p value of as few present passes, over all of these cases."""
    chances = [1.0]
    for (before, runs_before), (now, runs) in zip(accepted, present, strict=True):
        of_case = hypergeometric(runs, before + now, runs_before + runs)
        chances = _sum_of(chances, of_case)
    seen = sum(now for now, _ in present)
    return min(1.0, sum(chances[: seen + 1]))


def _sum_of(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """The chances of the sum of two counts."""
    total = [0.0] * (len(one) + len(other) - 1)
    for i, chance in enumerate(one):
        for j, another in enumerate(other):
            total[i + j] += chance * another
    return total
