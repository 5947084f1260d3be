"""Power: which lift a number of cases and runs can show, and how many a lift needs.

After Miller (2024), Adding Error Bars to Evals, equation 9, with Student's t instead of the
normal distribution because cases are few.
"""

from collections.abc import Sequence
from math import ceil, log, sqrt

from .descriptive import mean_and_spread
from .distributions import normal_quantile, t_quantile
from .intervals import LEVEL, Pairs, half_width, low_with_rare_losses, unseen

POWER = 0.8
RELEVANT_LIFT = 0.2  # an interval that holds both 0 and this lift does not tell
_MAX_CASES = 10_000
_MAX_RUNS = 1_000


def fewest_cases(level: float = LEVEL) -> int:
    """How many cases must all differ in the same direction to show anything: 5 at 95 %."""
    return int(-log(1 - level) / log(2)) + 1


def detectable_lift(pairs: Pairs, level: float = LEVEL, power: float = POWER) -> float | None:
    """The smallest lift that as many cases with the same spread can show; None if they can't.

    It is above 0 even without any spread, since these cases may miss a smaller lift.
    """
    _, spread = mean_and_spread([skill - baseline for baseline, skill in pairs])
    smallest = _detectable(spread, len(pairs), level, power)
    return max(smallest, unseen(len(pairs), level)) if smallest <= 1 else None


def cases_needed(pairs: Pairs, level: float = LEVEL, power: float = POWER) -> int | None:
    """How many cases like these would show the observed lift; None if too many."""
    return cases_to_show([skill - baseline for baseline, skill in pairs], level, power)


def cases_to_show(
    differences: Sequence[float], level: float = LEVEL, power: float = POWER
) -> int | None:
    """How many cases with differences like these would show their mean; None if too many."""
    lift, spread = mean_and_spread(differences)
    lift = abs(lift)
    if lift < 1 / _MAX_CASES:
        return None
    errors = normal_quantile((1 + level) / 2) + normal_quantile(power)
    cases = max(ceil((errors * spread / lift) ** 2), fewest_cases(level))
    while cases <= _MAX_CASES and _detectable(spread, cases, level, power) > lift:
        cases += 1
    return cases if cases <= _MAX_CASES else None


def cases_to_tell(
    differences: Sequence[float], size: float, level: float = LEVEL, reach: float = 1.0
) -> int | None:
    """How many cases like these have an interval of ``size`` to both sides; None if too many."""
    _, spread = mean_and_spread(differences)

    def tells(cases: int) -> bool:
        return max(half_width(spread, cases, level), reach * unseen(cases, level)) <= size

    low, high = 2, _MAX_CASES
    if not tells(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if tells(middle) else (middle + 1, high)
    return low


def cases_within(pairs: Pairs, margin: float, level: float = LEVEL) -> int | None:
    """How many cases like these would show that the second value is less than ``margin`` below the
    first; None if it is not, or if it would take too many.
    """
    differences = [second - first for first, second in pairs]
    change, spread = mean_and_spread(differences)
    largest = -min(differences)

    def shows(cases: int) -> bool:
        share = unseen(cases, level)
        lows = [change - half_width(spread, cases, level), (1 - share) * change - share]
        return min(*lows, low_with_rare_losses(change, spread, largest, cases, level)) > -margin

    if not shows(_MAX_CASES):
        return None
    low, high = 1, _MAX_CASES
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle + 1, high)
    return low


def runs_needed(
    pairs: Pairs,
    runs: int,
    level: float = LEVEL,
    power: float = POWER,
    *,
    chance: float | None = None,
) -> int | None:
    """How many runs would show the observed lift; ``chance`` is as for `spreads`.

    None if no number would, because runs do not reduce the spread between cases, or if there was
    only one run, which can't separate that spread from chance.
    """
    lift, _ = mean_and_spread([skill - baseline for baseline, skill in pairs])
    if runs < 2 or abs(lift) < 1 / _MAX_RUNS:
        return None
    between, within = spreads(pairs, runs, chance)

    def shows(number: int) -> bool:
        spread = sqrt(between + within / number)
        return _detectable(spread, len(pairs), level, power) <= abs(lift)

    if not shows(_MAX_RUNS):
        return None
    low, high = 1, _MAX_RUNS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle + 1, high)
    return max(low, runs)


def spreads(pairs: Pairs, runs: int, chance: float | None = None) -> tuple[float, float]:
    """The variance between cases' true differences, and that of a single run around them.

    ``chance`` is the latter if it was observed, as for shares of checks; that of pass rates
    follows from the rates.
    """
    _, spread = mean_and_spread([skill - baseline for baseline, skill in pairs])
    if chance is None:
        mixed = sum(rate * (1 - rate) for pair in pairs for rate in pair) / len(pairs)
        chance = mixed * runs / (runs - 1)
    return max(0.0, spread**2 - chance / runs), chance


def _detectable(spread: float, cases: int, level: float, power: float) -> float:
    if cases < fewest_cases(level):
        return 2.0
    errors = t_quantile((1 + level) / 2, cases - 1) + t_quantile(power, cases - 1)
    return errors * spread / sqrt(cases)


def cases_for_lift(lift: float) -> tuple[int, int]:
    """How many cases show this lift with 80 % power: at best and at worst.

    Each case differs by -1, 0 or 1, and the lift is their mean. A two-sided test at 5 % needs
    n = (z_alpha/2 + z_power)² · variance / lift² cases (Miller 2024, without the term for runs).
    If a share q of cases differ, the variance is q - lift². At best, no case gets worse and q is
    the lift itself; at worst q is 1.
    """
    reach = (normal_quantile((1 + LEVEL) / 2) + normal_quantile(POWER)) ** 2 / lift**2
    needed = [ceil(reach * (share - lift**2)) for share in (lift, 1.0)]
    return max(needed[0], fewest_cases()), max(needed[1], fewest_cases())
