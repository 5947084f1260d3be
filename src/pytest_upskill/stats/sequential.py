"""Frugal runs: start with a few, and add more only while the verdict is open, case by case.

This is a group-sequential design. The interval is checked after doubling numbers of runs, each
time at one level above 95 %, chosen so that all looks together err in 5 % (Pocock 1977). Such
repeated intervals hold for any stopping rule (Jennison and Turnbull 1989), so the run may also
stop when more runs would hardly bring a verdict, which is often early: runs do not reduce the
spread between cases. Looks at a mean over the same cases follow a Brownian motion if all cases
have the same lift; otherwise they are more correlated, which only makes errors rarer.

Between looks the run may only stop for want of a chance, which is asked after every run. And a
case rests once its runs have all gone the same way. That choice would bias its rate: one that
passes in 80 % of its runs rests as a sure one now and then. So the runs of a case that went on are
weighted (Rao and Blackwell): its rate is what its first runs would show on average over all orders
of its runs in which it goes on. The mean of the first runs is unbiased, and so is this.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import comb, exp, pi, sqrt
from typing import NamedTuple

from .distributions import normal_tail
from .intervals import LEVEL, Lift, Pairs, half_width, paired_lift
from .power import fewest_cases, spreads

# Stop below this chance of a verdict. A lower value saves less if there is no lift, a higher one
# misses more small lifts; benchmarks/sequential.py shows both.
FUTILE = 0.15  # of studies, which ask at their looks only
HOPELESS = 0.08  # of frugal runs, which ask after every run
_SURE = 5  # runs from which a case may rest; after three, half of those at 80 % would
_GRID = 64


class Look(NamedTuple):
    """The lift so far, and whether more runs are worthwhile."""

    lift: Lift
    open: bool
    chance: float  # that the remaining runs will show a lift


def look(pairs: Pairs, runs: int, plan: tuple[int, ...], chance: float | None = None) -> Look:
    """The lift of a skill on a model after `runs` runs, one of the `steps` of the plan.

    ``chance`` is as for `spreads`. Between the looks of the plan, nothing counts as shown.
    """
    level = plan_level(plan)
    lift = paired_lift(pairs, runs, level)
    shown, likely = lift.shown and runs in plan, float(lift.shown)
    if runs < plan[-1] and not lift.shown:
        likely = _likely(pairs, runs, plan[-1], level, chance)
    return Look(lift, runs < plan[-1] and not shown and likely >= HOPELESS, likely)


def steps(plan: tuple[int, ...]) -> list[int]:
    """The numbers of runs after which a run may stop: 3..12 → 3, 4, …, 12."""
    between = range(plan[0], plan[-1], max(1, plan[0] // 3))
    return sorted({*plan, *between})


def rest_after(plan: tuple[int, ...]) -> int | None:
    """After how many runs a case rests if they all went the same way: 3..12 → 6."""
    return next((runs for runs in plan[:-1] if runs >= _SURE), None)


def weights(kinds: Sequence[Hashable], rest: int | None) -> list[float]:
    """What each run of a case counts, by how the runs went; they add up to 1.

    With a rest, all orders of the runs in which the first ``rest`` of them don't go the same way
    are equally likely. A run counts as often as it is among the first ones of these.
    """
    runs = len(kinds)
    went_on = rest is not None and runs > rest and len(set(kinds[:rest])) > 1
    if rest is None or not went_on:
        return [1 / runs] * runs
    counts, orders = Counter(kinds), comb(runs, rest)
    alike = {kind: comb(count, rest) / orders for kind, count in counts.items()}
    undecided = 1 - sum(alike.values())
    return [(1 / runs - alike[kind] / counts[kind]) / undecided for kind in kinds]


def look_plan(fewest: int, most: int) -> tuple[int, ...]:
    """The numbers of runs to look after: 3..12 → 3, 6, 12."""
    plan = [fewest]
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
        density = list(zip(points, masses, strict=True))
        points, weights = _simpson(bound * sqrt(now))
        masses = [
            weight * sum(mass * _bell(x - y, now - before) for y, mass in density)
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
