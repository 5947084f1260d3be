"""Simulated skills: cases with known pass rates, and runs drawn from them."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

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
        (passes(draw, baseline, runs), passes(draw, skill, runs))
        for baseline, skill in chances
    ]


def shares(
    draw: random.Random, chances: Chances, runs: int
) -> list[tuple[float, float]]:
    """The mean share of checks passed; cases have 2 to 8 checks,
    some of which fail together.
    """
    return [_shares_of(draw, pair, runs, draw.randint(2, 8)) for pair in chances]


def _shares_of(
    draw: random.Random, pair: tuple[float, float], runs: int, checks: int
) -> tuple[float, float]:
    def share(chance: float) -> float:
        if draw.random() < 0.3:  # an answer that is right or wrong as a whole
            return float(draw.random() < chance)
        return passes(draw, chance, checks) / checks

    baseline, skill = (
        sum(share(chance) for _ in range(runs)) / runs for chance in pair
    )
    return baseline, skill


def rates(counts: Passes, runs: int) -> list[tuple[float, float]]:
    return [(baseline / runs, skill / runs) for baseline, skill in counts]


def differ(pairs: Sequence[tuple[float, float]]) -> list[float]:
    return [skill - baseline for baseline, skill in pairs]


def worlds(lift: float) -> Iterator[World]:
    """Skills that help all cases alike, that solve some, and that ignore the
    baseline.
    """
    for a, b in [(1, 1), (2, 2), (0.3, 0.3), (0.5, 2), (5, 1)]:
        mean = a / (a + b)
        gain = lift / (1 - mean)
        if gain <= 1:
            yield World(f"all gain, beta({a}, {b})", lift, _all_gain(a, b, gain))
            yield World(f"some gain, beta({a}, {b})", lift, _some_gain(a, b, gain))
        if mean + lift < 1:
            yield World(
                f"unrelated, beta({a}, {b})", lift, _unrelated(a, b, mean + lift)
            )


def _all_gain(
    a: float, b: float, gain: float
) -> Callable[[random.Random], tuple[float, float]]:
    def case(draw: random.Random) -> tuple[float, float]:
        chance = draw.betavariate(a, b)
        return chance, chance + gain * (1 - chance)

    return case


def _some_gain(
    a: float, b: float, gain: float
) -> Callable[[random.Random], tuple[float, float]]:
    def case(draw: random.Random) -> tuple[float, float]:
        chance = draw.betavariate(a, b)
        return chance, 1 if draw.random() < gain else chance

    return case


def _unrelated(
    a: float, b: float, mean: float
) -> Callable[[random.Random], tuple[float, float]]:
    def case(draw: random.Random) -> tuple[float, float]:
        size = a + b
        return draw.betavariate(a, b), draw.betavariate(mean * size, (1 - mean) * size)

    return case
