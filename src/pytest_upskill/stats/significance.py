"""Significance tests: how likely are these results if nothing changed?

`sign_flip` tests a lift, where cases are the sample. `worsened` compares earlier
results with present ones; there the cases are the same, so runs are the sample. Given
how often a case passed in both together, and if nothing changed, its present passes are
a draw without replacement. That is Fisher's exact test for one case, and its exact
stratified form (Mantel and Haenszel) for the whole skill. A case that always passes or
always fails carries no weight, a flaky one little.
"""

from collections.abc import Iterable, Sequence
from math import comb, gcd
from operator import mul
from typing import Final, NamedTuple

from .descriptive import mean_and_spread
from .distributions import normal_quantile, normal_tail, t_tail

# The test is exact up to this many cases; beyond,
# Student's t is as good and much faster.
_EXACT = 50
# Differences of rates are whole multiples of 1/27720 for any mix of up to 12 runs;
# shares of other numbers of checks are rounded to it.
_GRID = 27720
# Of this many possible counts, those with a chance this small are left out: it saves
# most of the time, and no p value changes by more than a millionth of a millionth.
_MANY, _NEVER = 200, 1e-18


def sign_flip(differences: Sequence[float]) -> float:
    """Two-sided mid-p value of the sign-flip test that paired
    differences are centered on 0.

    If the arms were equal, each difference could as well have the other sign. If all
    differences are -1, 0 or 1, this is McNemar's mid-p test. Sums that only rounding to
    the grid sets apart are ties.
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
    # Counts the ways to reach each sum as digits of one large number,
    # each `width` bits wide.
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
        # Not marked and not drawn, after the next hit
        neither = total - marked - drawn + hits + 1
        hit = hit * (marked - hits) * (drawn - hits) // ((hits + 1) * neither)
    return chances


Passes = tuple[int, int]  # runs passed, and runs
Counts = Sequence[Passes]  # of each case
_EVIDENT_RUNS: Final = 3  # with fewer runs before, a case is no evidence by itself


class CasePasses(NamedTuple):
    """How often a case passed, before and now."""

    before: Passes
    now: Passes
    sample: str = ""  # the same for cases that ask the same; unknown if empty


class Worsening(NamedTuple):
    """What got worse in a group of cases."""

    cases: tuple[int, ...]  # by evidence of their own
    together: bool  # the others got worse together, too
    before: Passes  # of these others: one case of each sample
    now: Passes
    p_value: float  # of these others

    @property
    def found(self) -> bool:
        return self.together or bool(self.cases)


def worsened(
    groups: Sequence[Sequence[CasePasses]], level: float = 0.05
) -> list[Worsening]:
    """What got worse in each group of a run, such as the cases of a skill on a model.

    If nothing changed, something is found in at most ``level`` of all runs, however
    many groups there are: half of it goes to single cases, half to groups as a whole.
    """
    places = [
        (number, index)
        for number, cases in enumerate(groups)
        for index, case in enumerate(cases)
        if case.before[1] >= _EVIDENT_RUNS
    ]
    alone = [[groups[number][index]] for number, index in places]
    shown = _shown([*map(_p_value, alone)], [*map(_lowest, alone)], level / 2)
    worse = [
        tuple(places[at][1] for at in shown if places[at][0] == n)
        for n in range(len(groups))
    ]
    wholes = [_independent(cases) for cases in groups]
    others = [
        (
            _independent(
                case for index, case in enumerate(cases) if index not in worse[number]
            )
            if worse[number]
            else wholes[number]
        )
        for number, cases in enumerate(groups)
    ]
    p_wholes = [*map(_p_value, wholes)]
    p_others = [_p_value(others[n]) if worse[n] else p for n, p in enumerate(p_wholes)]
    together = _shown(
        [*map(max, p_wholes, p_others)], [*map(_lowest, wholes)], level / 2
    )
    sums = [tuple(map(_total, _columns(cases))) for cases in others]
    return [
        Worsening(worse[n], n in together, before, now, p_others[n])
        for n, (before, now) in enumerate(sums)
    ]


def fell_together(
    groups: Sequence[Sequence[CasePasses]], level: float = 0.05
) -> list[bool]:
    """Which groups of a run got worse as a whole; any error among
    them is at most ``level``.
    """
    wholes = [_independent(cases) for cases in groups]
    shown = _shown([*map(_p_value, wholes)], [*map(_lowest, wholes)], level)
    return [number in shown for number in range(len(groups))]


class LiftChange(NamedTuple):
    """How much more lift there is than before: an interval, and whether there is
    less.
    """

    low: float
    high: float
    p_fell: float  # of so much less, one-sided


def lift_change(
    cases: Sequence[tuple[CasePasses, CasePasses]], level: float = 0.95
) -> LiftChange:
    """The mean over cases, each with the skill and without.

    Runs are the sample, so that the lift of a case is as uncertain as its four rates.
    These are drawn to the middle by half a run of each kind: 3 of 3 is no certainty.
    """
    change = variance = 0.0
    for skill, baseline in cases:
        for arm, sign in ((skill, 1), (baseline, -1)):
            for (passes, runs), side in ((arm.now, sign), (arm.before, -sign)):
                rate = (passes + 0.5) / (runs + 1)
                change += side * passes / runs
                variance += rate * (1 - rate) / runs
    deviation = variance**0.5
    half = normal_quantile((1 + level) / 2) * deviation
    low, high = (
        min(2.0, max(-2.0, end / len(cases))) for end in (change - half, change + half)
    )
    return LiftChange(low, high, normal_tail(-change / deviation))


def _shown(
    p_values: Sequence[float], lowest: Sequence[float], level: float
) -> list[int]:
    """The tests that are significant, with any error among them at
    most ``level`` (Tarone 1990).

    Tests that can't reach the level of the others take no share of it. Which these
    are depends on the lowest p values that are possible, hence only on how many of
    all runs passed, which tells nothing of a change: given those, Holm's method on
    the others keeps its level.
    """
    tests = range(len(p_values))
    share = next(
        (
            k
            for k in range(1, len(p_values))
            if sum(p <= level / k for p in lowest) <= k
        ),
        len(p_values),
    )
    testable = [test for test in tests if lowest[test] <= level / share]
    adjusted = holm([p_values[test] for test in testable])
    return [
        test
        for test, p_value in zip(testable, adjusted, strict=True)
        if p_value <= level
    ]


def _independent(cases: Iterable[CasePasses]) -> list[CasePasses]:
    """One case of each sample: those that ask the same have the same answers.

    It is the one that can tell most, by how many of all its runs passed; the test is
    given that number, so that this choice makes no error more likely.
    """
    chosen: dict[tuple[str, int], CasePasses] = {}
    for index, case in enumerate(cases):
        key = (case.sample, 0 if case.sample else index)
        if key not in chosen or _telling(case) > _telling(chosen[key]):
            chosen[key] = case
    return list(chosen.values())


def _telling(case: CasePasses) -> float:
    passes, runs = _total([case.before, case.now])
    return passes * (runs - passes) / runs**2


def _p_value(cases: Sequence[CasePasses]) -> float:
    return drop(*_columns(cases))


def _lowest(cases: Sequence[CasePasses]) -> float:
    """The lowest p value that these sums of passes allow."""
    extreme = []
    for (before, runs_before), (now, runs), sample in cases:
        most = min(before + now, runs_before)
        extreme.append(
            CasePasses((most, runs_before), (before + now - most, runs), sample)
        )
    return _p_value(extreme)


def _columns(cases: Sequence[CasePasses]) -> tuple[list[Passes], list[Passes]]:
    return [case.before for case in cases], [case.now for case in cases]


def _total(counts: Counts) -> Passes:
    return sum(passes for passes, _ in counts), sum(runs for _, runs in counts)


def drop(earlier: Counts, present: Counts) -> float:
    """One-sided exact p value of so few present passes, over all cases."""
    parts: list[Chances] = []
    for (before, runs_before), (now, runs) in zip(earlier, present, strict=True):
        parts.append(
            _trimmed(0, hypergeometric(runs, before + now, runs_before + runs))
        )
    while len(parts) > 1:  # in pairs of similar length, which is faster than one by one
        odd_part = parts[len(parts) // 2 * 2 :]
        parts = [
            _sum_of(*pair) for pair in zip(parts[::2], parts[1::2], strict=False)
        ] + odd_part
    fewest, chances = parts[0] if parts else (0, [1.0])
    passes = sum(now for now, _ in present)
    return min(1.0, sum(chances[: max(0, passes - fewest + 1)])) or _NEVER


# Of a count: the least that is possible, and the chance of each
Chances = tuple[int, list[float]]


def _trimmed(fewest: int, chances: Sequence[float]) -> Chances:
    """Without impossible counts at both ends; of many,
    also without those that never happen.
    """
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
