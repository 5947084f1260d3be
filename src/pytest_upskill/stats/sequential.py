"""Frugal runs: start with a few, and add more only while the verdict is open.

This is a group-sequential design. The interval is checked after doubling numbers of runs, each
time at one level above 95 %, chosen so that all looks together err in 5 % (Pocock 1977). Such
repeated intervals hold for any stopping rule (Jennison and Turnbull 1989), so the run may also
stop when more runs would hardly bring a verdict, which is often early: runs do not reduce the
spread between cases. Looks at a mean over the same cases follow a Brownian motion if all cases
have the same lift; otherwise they are more correlated, which only makes errors rarer.
"""

from functools import lru_cache
from itertools import pairwise
from math import exp, pi, sqrt
from typing import NamedTuple

from .distributions import normal_tail
from .intervals import LEVEL, Lift, Pairs, half_width, paired_lift
from .power import fewest_cases, spreads

# Stop below this chance of a verdict. A lower value saves less if there is no lift, a higher one
# misses more small lifts; benchmarks/sequential.py shows both.
FUTILE = 0.15
_GRID = 64


class Look(NamedTuple):
    """The lift so far, and whether more runs are worthwhile."""

    lift: Lift
    open: bool
    level: float
    chance: float  # that the remaining runs will show a lift


def look(pairs: Pairs, runs: int, plan: tuple[int, ...], chance: float | None = None) -> Look:
    """The lift of a skill on a model after `runs` runs, one of the steps of the plan.

    ``chance`` is as for `spreads`.
    """
    level = plan_level(plan)
    lift = paired_lift(pairs, runs, level)
    likely = float(lift.shown)
    if runs < plan[-1] and not lift.shown:
        likely = _likely(pairs, runs, plan[-1], level, chance)
    return Look(lift, runs < plan[-1] and not lift.shown and likely >= FUTILE, level, likely)


def look_plan(least: int, most: int) -> tuple[int, ...]:
    """The numbers of runs to look after: 3..12 → 3, 6, 12."""
    plan = [least]
    while plan[-1] < most:
        plan.append(min(2 * plan[-1], most))
    return tuple(plan)


@lru_cache(maxsize=1024)
def plan_level(plan: tuple[int, ...], level: float = LEVEL) -> float:
    """The level of each look that gives `level` over all looks (Pocock's constant)."""
    low, high = 1.0, 5.0
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if _stays_within(middle, plan) < level else (low, middle)
    return 1 - 2 * normal_tail(high)


def _stays_within(bound: float, plan: tuple[int, ...]) -> float:
    """The chance that a Brownian motion stays within ± `bound` deviations at every look.

    Its density is integrated from look to look by Simpson's rule (Armitage, McPherson and Rowe
    1969).
    """
    points, weights = _simpson(bound * sqrt(plan[0]))
    masses = [_bell(x, plan[0]) * weight for x, weight in zip(points, weights, strict=True)]
    for before, now in pairwise(plan):
        known = list(zip(points, masses, strict=True))
        points, weights = _simpson(bound * sqrt(now))
        masses = [
            weight * sum(mass * _bell(x - y, now - before) for y, mass in known)
            for x, weight in zip(points, weights, strict=True)
        ]
    return sum(masses)


def _simpson(reach: float) -> tuple[list[float], list[float]]:
    step = 2 * reach / _GRID
    points = [-reach + step * index for index in range(_GRID + 1)]
    inner = [step / 3 * (4 if index % 2 else 2) for index in range(1, _GRID)]
    return points, [step / 3, *inner, step / 3]


def _bell(x: float, variance: float) -> float:
    return exp(-x * x / (2 * variance)) / sqrt(2 * pi * variance)


def _likely(pairs: Pairs, runs: int, most: int, level: float, chance: float | None) -> float:
    """The chance that the interval after the last run excludes 0, given the lift so far."""
    if runs < 2:
        return 1.0  # one run can't separate chance from the spread between cases
    if len(pairs) < fewest_cases(level):
        return 0.0
    between, within = spreads(pairs, runs, chance)
    lift = sum(skill - baseline for baseline, skill in pairs) / len(pairs)
    needed = half_width(sqrt(between + within / most), len(pairs), level)
    # How far the lift may still move if the cases' rates are about as observed.
    moves = sqrt(within * (1 / runs - 1 / most) / len(pairs))
    if moves == 0:
        return float(abs(lift) > needed)
    return normal_tail((needed - lift) / moves) + normal_tail((needed + lift) / moves)
