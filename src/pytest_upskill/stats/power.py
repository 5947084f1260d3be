"""Power: which lift a number of cases and runs can show, and how many a lift needs.

After Miller (2024), Adding Error Bars to Evals, equation 9, with Student's t instead of the
normal distribution because cases are few.
"""

from math import ceil, log, log1p, sqrt

from .descriptive import mean_and_spread
from .distributions import normal_quantile, t_quantile
from .intervals import LEVEL, Pairs, unseen

POWER = 0.8
RELEVANT_LIFT = 0.2  # an interval that holds both 0 and this lift, or loss, does not tell
_MAX_CASES = 10_000


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


def cases_to_rule_out(loss: float, level: float = LEVEL) -> int:
    """How many cases, none of which loses anything, rule out a mean loss of this size."""
    return max(2, int(log((1 - level) / 2) / log1p(-loss)) + 1) if loss < 1 else 2


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
