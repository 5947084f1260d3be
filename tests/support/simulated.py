"""Simulated skills: cases with known pass rates, and runs drawn from them."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pytest_upskill.stats import Look, look, rest_after, steps, weights

Chances = list[tuple[float, float]]  # per case: to pass without the skill, and with it
Passes = list[tuple[int, int]]


@dataclass(frozen=True)
class World:
    """A distribution of cases with a known mean lift."""

    name: str
    lift: float
    case: Callable[[random.Random], tuple[float, float]]

    def cases(self, draw: random.Random, n: int) -> Chances:
        return [self.case(draw) for _ in range(n)]


def passes(draw: random.Random, chance: float, runs: int) -> int:
    return sum(draw.random() < chance for _ in range(runs))


def ask(draw: random.Random, chances: Chances, runs: int) -> Passes:
    return [
        (passes(draw, baseline, runs), passes(draw, skill, runs)) for baseline, skill in chances
    ]


def frugal(
    draw: random.Random, chances: Chances, plan: tuple[int, ...], *, rests: bool = True
) -> tuple[Look, int, int]:
    """The last look of frugal runs, after how many runs it was, and the calls that it took."""
    most, rest = plan[-1], rest_after(plan) if rests else None
    cases = [
        [(draw.random() < baseline, draw.random() < skill) for _ in range(most)]
        for baseline, skill in chances
    ]
    for runs in steps(plan):
        rested = [rest and runs > rest and len(set(case[:rest])) == 1 for case in cases]
        asked = [
            case[: rest if is_resting else runs]
            for case, is_resting in zip(cases, rested, strict=True)
        ]
        seen = look([weighted(case, rest) for case in asked], runs, plan)
        if not seen.open:
            return seen, runs, 2 * sum(map(len, asked))
    raise AssertionError("a plan has an end")


def weighted(case: list[tuple[bool, bool]], rest: int | None) -> tuple[float, float]:
    """The rates of a case."""
    own = weights(case, rest)
    baseline, skill = (
        sum(w for w, run in zip(own, case, strict=True) if run[arm]) for arm in (0, 1)
    )
    return baseline, skill


def shares(draw: random.Random, chances: Chances, runs: int) -> list[tuple[float, float]]:
    """The mean share of checks passed; cases have 2 to 8 checks, some of which fail together."""
    return [_shares_of(draw, pair, runs, draw.randint(2, 8)) for pair in chances]


def _shares_of(
    draw: random.Random, pair: tuple[float, float], runs: int, checks: int
) -> tuple[float, float]:
    def share(chance: float) -> float:
        if draw.random() < 0.3:  # an answer that is right or wrong as a whole
            return float(draw.random() < chance)
        return passes(draw, chance, checks) / checks

    baseline, skill = (sum(share(chance) for _ in range(runs)) / runs for chance in pair)
    return baseline, skill


def rates(counts: Passes, runs: int) -> list[tuple[float, float]]:
    return [(baseline / runs, skill / runs) for baseline, skill in counts]


def worlds(lift: float) -> Iterator[World]:
    """Skills that help all cases alike, that solve some, and that ignore the baseline."""
    for a, b in [(1, 1), (2, 2), (0.3, 0.3), (0.5, 2), (5, 1)]:
        mean = a / (a + b)
        gain = lift / (1 - mean)
        if gain <= 1:
            yield World(f"all gain, beta({a}, {b})", lift, _all_gain(a, b, gain))
            yield World(f"some gain, beta({a}, {b})", lift, _some_gain(a, b, gain))
        if mean + lift < 1:
            yield World(f"unrelated, beta({a}, {b})", lift, _unrelated(a, b, mean + lift))


def _all_gain(a: float, b: float, gain: float) -> Callable[[random.Random], tuple[float, float]]:
    def case(draw: random.Random) -> tuple[float, float]:
        chance = draw.betavariate(a, b)
        return chance, chance + gain * (1 - chance)

    return case


def _some_gain(a: float, b: float, gain: float) -> Callable[[random.Random], tuple[float, float]]:
    def case(draw: random.Random) -> tuple[float, float]:
        chance = draw.betavariate(a, b)
        return chance, 1 if draw.random() < gain else chance

    return case


def _unrelated(a: float, b: float, mean: float) -> Callable[[random.Random], tuple[float, float]]:
    def case(draw: random.Random) -> tuple[float, float]:
        size = a + b
        return draw.betavariate(a, b), draw.betavariate(mean * size, (1 - mean) * size)

    return case
