"""How often a word claims that there is no lift or loss of 20
points where there is one.
"""

from math import comb

import pytest

from pytest_upskill.results.verdict import verdicts_of
from support.made import Pair, made_summary


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("cases", [17, 20, 30, 40, 60])
@pytest.mark.parametrize("changed", [(0, 1), (1, 0)])
def test_a_skill_that_decides_a_fifth_of_the_cases_is_hardly_ever_excluded(
    changed: Pair, cases: int, runs: int
) -> None:
    """The chance is exact. All other cases pass in both arms."""
    missed = 0.0
    for number in range(cases + 1):
        chance = comb(cases, number) * 0.2**number * 0.8 ** (cases - number)
        drawn = [changed] * number + [(1, 1)] * (cases - number)
        if chance < 1e-6:
            continue
        (verdict,) = verdicts_of([made_summary(rates=drawn, runs=runs)])
        if verdict.word in ("not needed", "no effect shown"):
            missed += chance
    assert missed <= 0.035
