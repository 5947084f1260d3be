"""How many cases a lift takes: equation 9 of Miller (2024), Adding Error Bars to Evals,
with Student's t, and with as many cases that differ as the sign-flip test needs.
"""

from collections.abc import Sequence
from math import log, log1p
from typing import Final, NamedTuple

from .distributions import ROUNDING, mean_and_spread, t_quantile
from .intervals import LEVEL

POWER: Final = 0.8
# An interval that holds both 0 and this lift, or loss, does not tell.
RELEVANT_LIFT: Final = 0.2
# With fewer cases, no exact test at 5 % can show anything.
FEWEST_CASES: Final = 6
# The share of answers that pass without a skill, if nothing is known
_BASELINE: Final = 0.5
_MAX_CASES: Final = 10_000


def cases_to_show(differences: Sequence[float]) -> int | None:
    """How many cases of this kind a new run needs to show such a lift in 80 % of runs.

    A lift of less than 20 points is settled where one of 20 points would be shown. None
    if it takes more than 10,000.
    """
    mean, _ = mean_and_spread(differences)
    return _find_cases(_plan(max(abs(mean), RELEVANT_LIFT), differences))


def cases_to_find(lift: float, runs: int = 1) -> int | None:
    """How many cases show a lift in 80 % of runs, if nothing is known about them.

    Half of the answers pass without the skill; it solves some cases and does not change
    the others.
    """
    baseline = min(_BASELINE, 1 - lift)
    solved = lift / (1 - baseline)
    # Half of the variance of single answers is between cases.
    between = baseline * (1 - baseline) / 2
    of_answers = between / runs
    squares = solved * ((1 - baseline) ** 2 + between + of_answers)
    squares += (1 - solved) * 2 * of_answers
    variance = squares - lift**2
    return _find_cases(_Planned(lift, variance, lift))


def detectable_lift(differences: Sequence[float]) -> float | None:
    """The smallest lift, in whole points, that as many such cases show in 80 % of runs;
    None if there is none.
    """
    for points in range(1, 101):
        planned = _plan(points / 100, differences)
        if _is_enough(len(differences), planned):
            return planned.lift
    return None


def cases_to_rule_out(loss: float, level: float = LEVEL) -> int:
    """How many cases, none of which loses anything, rule out a mean loss of this
    size.
    """
    if loss >= 1:
        return 2
    return max(2, int(log((1 - level) / 2) / log1p(-loss)) + 1)


class _Planned(NamedTuple):
    lift: float
    variance: float  # of the differences of cases
    differing: float  # share of the cases


def _plan(lift: float, differences: Sequence[float]) -> _Planned:
    """Such cases, if they had this lift."""
    mean, spread = mean_and_spread(differences)
    variance = spread**2
    if lift > abs(mean) + ROUNDING:
        # A larger lift means that more cases are solved, which spreads them.
        variance = max(variance, lift * (1 - lift))

    differing = sum(abs(difference) > ROUNDING for difference in differences)
    return _Planned(lift, variance, max(lift, differing / len(differences)))


def _find_cases(planned: _Planned) -> int | None:
    for cases in range(FEWEST_CASES, _MAX_CASES + 1):
        if _is_enough(cases, planned):
            return cases
    return None


def _is_enough(cases: int, planned: _Planned) -> bool:
    if cases * planned.differing < FEWEST_CASES - ROUNDING:
        return False

    errors = t_quantile((1 + LEVEL) / 2, cases - 1) + t_quantile(POWER, cases - 1)
    return errors**2 * planned.variance <= cases * planned.lift**2
