"""Nights of simulated skills that have accepted results."""

import random
from collections.abc import Sequence

from pytest_upskill.results.comparison import CasePair, find_fallen
from pytest_upskill.trials.plan import FAILURES_OF_A_REGRESSION, Count

Chances = Sequence[Sequence[float]]  # to pass, of each case of each skill


def accept(draw: random.Random, chances: Chances, runs: int) -> list[list[Count]]:
    return [[_count(draw, chance, runs) for chance in skill] for skill in chances]


def night(
    draw: random.Random,
    accepted: Sequence[Sequence[Count]],
    chances: Chances,
    runs: int,
) -> list[tuple[str, ...]]:
    """The cases of each skill that regressed in a night of so many runs."""
    groups = {}
    for number, (counts, skill) in enumerate(zip(accepted, chances, strict=True)):
        cases: list[CasePair] = []
        for was, chance in zip(counts, skill, strict=True):
            now = _ask(draw, was, chance, runs)
            cases.append(CasePair(f"case-{len(cases)}", was, now))
        groups[number] = cases
    return [fallen.names if fallen else () for fallen in find_fallen(groups).values()]


def _ask(draw: random.Random, was: Count, chance: float, runs: int) -> Count:
    """It is asked again as long as all its runs fail, if it had always passed."""
    now = _count(draw, chance, runs)
    if was.passes == was.runs:
        while not now.passes and now.runs < FAILURES_OF_A_REGRESSION:
            now = Count(_count(draw, chance, 1).passes, now.runs + 1)
    return now


def _count(draw: random.Random, chance: float, runs: int) -> Count:
    return Count(sum(draw.random() < chance for _ in range(runs)), runs)
