"""Looks after growing numbers of runs: is a difference shown,
and are more runs worthwhile?

Frugal runs start with a few, and add more only while the verdict is open, case by case.
Studies look at several differences together.

This is a group-sequential design. The interval is checked after doubling numbers of
runs, each time at one level above 95 %, chosen so that all looks together err in 5 %
(Pocock 1977). Such repeated intervals hold for any stopping rule (Jennison and Turnbull
1989), so the run may also stop when more runs would hardly bring a verdict, which is
often early: runs do not reduce the spread between cases. Looks at a mean over the same
cases follow a Brownian motion if all cases have the same lift; otherwise they are more
correlated, which only makes errors rarer.

Between looks a frugal run may only stop for want of a chance, which is asked after
every run. And a case rests once its runs have all gone the same way. That choice would
bias its rate: one that passes in 80 % of its runs rests as a sure one now and then. So
the runs of a case that went on are weighted (Rao and Blackwell): its rate is what its
first runs would show on average over all orders of its runs in which it goes on. The
mean of the first runs is unbiased, and so is this.

All effects of a family err in 5 % together, over all looks. Each look has the level
of Pocock, shared by the effects with Holm's method. Effects that could not be
significant whatever the signs of their differences take no share (Tarone 1990): how
many differences there are says nothing about their direction. An effect that was
given up stays in its family, so stopping early for futility makes no error more
likely (Maurer and Bretz 2013).

With a margin, an effect may also be shown not to be below it. For that every
effect takes its share, since one without any difference is evidence, too: its
interval is wider than the one that decides whether it differs from 0, and it
allows for losses that are rare and large.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import comb, exp, pi, sqrt
from typing import NamedTuple

from .distributions import normal_tail
from .intervals import (
    LEVEL,
    ROUNDING,
    Lift,
    Pairs,
    guarded,
    half_width,
    low_with_rare_losses,
    paired_effect,
    paired_lift,
    shared_level,
    unseen,
)
from .power import fewest_cases, spreads

# Stop below this chance of a verdict. A lower value saves less if there is no lift, a
# higher one misses more small lifts; benchmarks/sequential.py shows both.
FUTILE = 0.15  # of studies, which ask at their looks only
HOPELESS = 0.08  # of frugal runs, which ask after every run
_SURE = 5  # runs from which a case may rest; after three, half of those at 80 % would
_GRID = 64


class Look(NamedTuple):
    """The lift so far, and whether more runs are worthwhile."""

    lift: Lift
    open: bool
    chance: float  # that the remaining runs will show a lift


def look(
    pairs: Pairs,
    runs: int,
    plan: tuple[int, ...],
    chance: float | None = None,
    models: int = 1,
) -> Look:
    """The lift of a skill on a model after `runs` runs, one of the `steps` of the plan.

    ``chance`` is as for `spreads`. Between the looks of the plan, nothing counts as
    shown. A lift that is shown here is shown among the lifts on all ``models`` of the
    skill, whatever the others are: this is the first step of Holm.
    """
    level = family_level(models, plan)
    lift = paired_lift(pairs, runs, level)
    shown, likely = lift.shown and runs in plan, float(lift.shown)
    if runs < plan[-1] and not lift.shown:
        values = tuple(skill - baseline for baseline, skill in pairs)
        within = spreads(pairs, runs, chance)[1] if runs > 1 else 0.0
        likely = _likely(Differences(values, runs, within), plan[-1], level, level)
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

    With a rest, all orders of the runs in which the first ``rest`` of them
    don't go the same way are equally likely. A run counts as often as it is
    among the first ones of these.
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
        low, high = (
            (middle, high) if _stays_within(middle, plan) < level else (low, middle)
        )
    return 1 - 2 * normal_tail(high)


def _stays_within(bound: float, plan: tuple[int, ...]) -> float:
    """The chance that a Brownian motion stays within ± `bound`
    deviations at every look.

    Its density is integrated from look to look by Simpson's rule (Armitage,
    McPherson and Rowe 1969).
    """
    points, weights = _simpson(bound * sqrt(plan[0]))
    masses = [
        _bell(x, plan[0]) * weight for x, weight in zip(points, weights, strict=True)
    ]
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


class Differences(NamedTuple):
    """How variants differ, case by case, after some runs."""

    values: tuple[float, ...]
    runs: int
    chance: float  # the variance of a single run around a case's own difference
    reach: float = 1.0  # the largest difference that there can be
    margin: float | None = None  # a loss of less does not count


class Judged(NamedTuple):
    """An effect with the interval and p value that hold for its family and all
    looks.
    """

    lift: Lift
    level: float  # of its interval
    # Whether more runs may well show it, or that less than the margin is lost
    open: bool


class Family:
    """Effects that are looked at together, after growing numbers of runs,
    until all are settled.
    """

    def __init__(self, names: Iterable[str], plan: tuple[int, ...]) -> None:
        self.open = set(names)  # that more runs may well show
        self.shown: dict[str, Judged] = {}
        self.unshown: dict[str, Judged] = {}
        self.known: dict[str, Differences] = {}  # when last looked at
        self._plan = plan

    def look(
        self, differences: Mapping[str, Differences], given_up: Collection[str] = ()
    ) -> None:
        """Look at the ``differences`` of open effects; those that are
        ``given_up`` are settled.

        Settled ones stay in the family with what is known of them. An effect that is
        shown takes no share of the error any more.
        """
        self.known |= differences
        pending = {
            name: effect
            for name, effect in self.known.items()
            if name not in self.shown
        }
        judged = judge_family(pending, self._plan)
        self.shown |= {
            name: effect for name, effect in judged.items() if effect.lift.shown
        }
        self.unshown = {
            name: effect for name, effect in judged.items() if not effect.lift.shown
        }
        still = self.open & differences.keys() - set(given_up)
        self.open = {
            name for name in still if name in self.unshown and judged[name].open
        }


def judge_family(
    family: Mapping[str, Differences], plan: tuple[int, ...]
) -> dict[str, Judged]:
    """Effects by name, with intervals and p values that hold for all of them,
    and all looks.
    """
    shown, pending = dict[str, Judged](), dict(family)
    while pending:
        level = _level(list(pending.values()), plan)
        judged = {name: _judged(effect, level) for name, effect in pending.items()}
        newly_shown = {
            name: effect for name, effect in judged.items() if effect.lift.shown
        }
        shown |= newly_shown
        pending = {
            name: effect for name, effect in pending.items() if name not in newly_shown
        }
        if not newly_shown:
            break
    wide = family_level(len(pending), plan)
    unshown = {
        name: _unshown(effect, judged[name], wide, plan)
        for name, effect in pending.items()
    }
    return {name: {**shown, **unshown}[name] for name in family}


def family_level(effects: int, plan: tuple[int, ...], level: float = LEVEL) -> float:
    """The level of each interval if so many effects share the error of all looks."""
    return plan_level(plan, shared_level(effects, level))


def _level(family: Sequence[Differences], plan: tuple[int, ...]) -> float:
    """With the fewest shares that are enough for all effects that could be
    significant.
    """
    low, high = 1, len(family)
    while low < high:
        middle = (low + high) // 2
        error = 1 - family_level(middle, plan)
        if sum(_lowest(effect) < error for effect in family) <= middle:
            high = middle
        else:
            low = middle + 1
    return family_level(low, plan)


def _lowest(effect: Differences) -> float:
    """The lowest p value that these differences allow, if all had the same sign."""
    return float(0.5 ** sum(abs(value) > ROUNDING for value in effect.values))


def _judged(effect: Differences, level: float) -> Judged:
    lift = paired_effect(effect.values, level, effect.reach)
    # As the p value of a single test at the usual level.
    p_value = min(1.0, lift.p_value * (1 - LEVEL) / (1 - level))
    return Judged(lift._replace(p_value=p_value), level, open=False)


def _unshown(
    effect: Differences, judged: Judged, wide: float, plan: tuple[int, ...]
) -> Judged:
    """``wide`` is the level at which all effects of the family
    may be within their margins.
    """
    narrow = judged.level
    if effect.margin is not None:
        judged = _judged(effect, wide)
        judged = judged._replace(lift=guarded(judged.lift, effect.values, wide))
        if judged.lift.low > -effect.margin:
            return judged
    is_open = (
        effect.runs < plan[-1] and _likely(effect, plan[-1], narrow, wide) >= FUTILE
    )
    return judged._replace(open=is_open)


def _likely(effect: Differences, most: int, level: float, wide: float) -> float:
    """The chance that the interval after the last run tells, given the effect so far.

    It tells if it excludes 0, or all losses that count.
    """
    cases = len(effect.values)
    if cases < fewest_cases(level):
        return 0.0
    if effect.runs < 2:
        return 1.0  # one run can't separate chance from the spread between cases
    mean = sum(effect.values) / cases
    spread = sum((value - mean) ** 2 for value in effect.values) / (cases - 1)
    between = max(0.0, spread - effect.chance / effect.runs)
    last = sqrt(between + effect.chance / most)
    needed = half_width(last, cases, level)
    above = [needed]  # the means that tell
    if effect.margin is not None and unseen(cases, wide) < effect.margin:
        low = low_with_rare_losses(mean, last, -min(effect.values), cases, wide)
        above.append(max(half_width(last, cases, wide), mean - low) - effect.margin)
    # How far the effect may still move if the cases' rates are about as observed.
    moves = sqrt(effect.chance * (1 / effect.runs - 1 / most) / cases)
    if moves == 0:
        return float(mean > min(above) or mean < -needed)
    return normal_tail((min(above) - mean) / moves) + normal_tail(
        (needed + mean) / moves
    )
