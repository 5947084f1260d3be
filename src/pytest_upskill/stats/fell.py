"""Which cases fell: is what passes now less than what passed before?

The cases are the same, so the runs are the sample. Given how often a case passed in
both together, and if nothing changed, its present passes are a draw without
replacement. That is Fisher's exact test for one case, and its exact stratified form
(Mantel and Haenszel) for many. A case that always passes or always fails carries no
weight, a mixed one little.
"""

from collections.abc import Container, Iterable, Sequence
from math import comb
from operator import mul
from typing import Final, NamedTuple

from .distributions import normal_quantile, normal_tail
from .intervals import LEVEL
from .significance import holm

Passes = tuple[int, int]  # runs passed, and runs

_ERROR: Final = 0.05
# With fewer runs before, a case is no evidence by itself.
_MIN_RUNS: Final = 3
# Counts with a smaller chance are left out, which saves most of the time.
_NEVER: Final = 1e-18


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


class LiftChange(NamedTuple):
    """How much more lift there is than before: an interval, and whether there is
    less.
    """

    low: float
    high: float
    p_fell: float  # of so much less, one-sided


class _Test(NamedTuple):
    p_value: float
    lowest: float  # p value that these sums of passes allow


def worsened(
    groups: Sequence[Sequence[CasePasses]], level: float = _ERROR
) -> list[Worsening]:
    """What got worse in each group of a run, such as the cases of a skill on a model.

    If nothing changed, something is found in at most ``level`` of all runs, however
    many groups there are: half of it goes to single cases, half to groups as a whole.
    """
    places = []
    alone = []
    for number, cases in enumerate(groups):
        for index, case in enumerate(cases):
            if case.before[1] >= _MIN_RUNS:
                places.append((number, index))
                alone.append(_test([case]))

    fallen: list[list[int]] = [[] for _ in groups]
    for place in _find_significant(alone, level / 2):
        number, index = places[place]
        fallen[number].append(index)

    others = []
    tests = []
    for cases, indexes in zip(groups, fallen, strict=True):
        whole = _test(_independent(cases))
        rest = _independent(cases, without=indexes)
        others.append(rest)
        # What fell alone must not carry the others.
        tests.append(whole._replace(p_value=max(whole.p_value, _p_value(rest))))

    together = _find_significant(tests, level / 2)
    return [
        Worsening(
            cases=tuple(fallen[number]),
            together=number in together,
            before=_total(case.before for case in rest),
            now=_total(case.now for case in rest),
            p_value=_p_value(rest),
        )
        for number, rest in enumerate(others)
    ]


def fell_together(
    groups: Sequence[Sequence[CasePasses]], level: float = _ERROR
) -> list[bool]:
    """Which groups of a run got worse as a whole; any error among them is at most
    ``level``.
    """
    tests = [_test(_independent(cases)) for cases in groups]
    significant = _find_significant(tests, level)
    return [number in significant for number in range(len(groups))]


def lift_change(
    cases: Sequence[tuple[CasePasses, CasePasses]], level: float = LEVEL
) -> LiftChange:
    """The mean over cases, each with the skill and without.

    The lift of a case is as uncertain as its four rates. These are drawn to the middle
    by half a run of each kind: 3 of 3 is no certainty.
    """
    change = 0.0
    variance = 0.0
    for skill, baseline in cases:
        sides = ((1, skill.now), (-1, skill.before), (-1, baseline.now))
        for sign, (passes, runs) in (*sides, (1, baseline.before)):
            change += sign * passes / runs
            rate = (passes + 0.5) / (runs + 1)
            variance += rate * (1 - rate) / runs

    deviation = variance**0.5
    half = normal_quantile((1 + level) / 2) * deviation
    low = max(-2.0, (change - half) / len(cases))
    high = min(2.0, (change + half) / len(cases))
    return LiftChange(low, high, normal_tail(-change / deviation))


def drop(earlier: Sequence[Passes], present: Sequence[Passes]) -> float:
    """One-sided exact p value of so few present passes, over all cases."""
    fewest = 0
    chances = [1.0]
    for (before, runs_before), (now, runs) in zip(earlier, present, strict=True):
        drawn = hypergeometric(runs, before + now, runs_before + runs)
        chances = _convolve(chances, drawn)
        while chances[0] < _NEVER:
            chances.pop(0)
            fewest += 1
        while chances[-1] < _NEVER:
            chances.pop()

    passes = sum(now for now, _ in present)
    return min(1.0, sum(chances[: max(0, passes - fewest + 1)])) or _NEVER


def hypergeometric(drawn: int, marked: int, total: int) -> list[float]:
    """The chances of drawing 0, 1, … marked items in `drawn` of `total`."""
    ways = comb(total, drawn)
    chances = []
    for hits in range(drawn + 1):
        misses = drawn - hits
        chances.append(comb(marked, hits) * comb(total - marked, misses) / ways)
    return chances


def _convolve(first: list[float], second: list[float]) -> list[float]:
    """The chances of a sum of two counts."""
    short, long = sorted((first, second), key=len)
    turned = short[::-1]
    zeros = [0.0] * (len(short) - 1)
    padded = zeros + long + zeros
    total = []
    for start in range(len(short) + len(long) - 1):
        total.append(sum(map(mul, turned, padded[start : start + len(short)])))
    return total


def _test(cases: Sequence[CasePasses]) -> _Test:
    extreme = []
    for (before, runs_before), (now, runs), _ in cases:
        most = min(before + now, runs_before)
        extreme.append(CasePasses((most, runs_before), (before + now - most, runs)))
    return _Test(_p_value(cases), _p_value(extreme))


def _p_value(cases: Sequence[CasePasses]) -> float:
    return drop([case.before for case in cases], [case.now for case in cases])


def _find_significant(tests: Sequence[_Test], level: float) -> list[int]:
    """The tests that are significant, with any error among them at most ``level``
    (Tarone 1990).

    Tests that can't reach the level of the others take no share of it. Which these are
    depends on the lowest p values that are possible, hence only on how many of all runs
    passed, which tells nothing of a change: given those, Holm's method on the others
    keeps its level.
    """
    shares = 1
    while sum(test.lowest <= level / shares for test in tests) > shares:
        shares += 1

    testable = [n for n, test in enumerate(tests) if test.lowest <= level / shares]
    adjusted = holm([tests[index].p_value for index in testable])
    p_values = zip(testable, adjusted, strict=True)
    return [index for index, p_value in p_values if p_value <= level]


def _independent(
    cases: Sequence[CasePasses], without: Container[int] = ()
) -> list[CasePasses]:
    """One case of each sample: those that ask the same have the same answers.

    It is the one that can tell most, by how many of all its runs passed; the test is
    given that number, so that this choice makes no error more likely.
    """
    chosen: dict[object, CasePasses] = {}
    for index, case in enumerate(cases):
        if index in without:
            continue
        sample = case.sample or index
        if sample not in chosen or _weigh(case) > _weigh(chosen[sample]):
            chosen[sample] = case
    return list(chosen.values())


def _weigh(case: CasePasses) -> float:
    passes, runs = _total([case.before, case.now])
    return passes * (runs - passes) / runs**2


def _total(counts: Iterable[Passes]) -> Passes:
    passes = 0
    runs = 0
    for count in counts:
        passes += count[0]
        runs += count[1]
    return passes, runs
