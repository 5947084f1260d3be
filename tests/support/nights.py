"""Nights of simulated skills that have accepted results."""

import random
from collections.abc import Sequence

from pytest_upskill.results.regressions import (
    AcceptedComparison,
    Compared,
    compare_groups,
)
from pytest_upskill.trials.plan import (
    FAILURES_OF_A_REGRESSION,
    Count,
    Expectation,
    Group,
    PlannedCase,
)

from .made import pair_of

Chances = Sequence[Sequence[float]]  # to pass, of each case of each skill


def accept(draw: random.Random, chances: Chances, runs: int) -> list[list[Count]]:
    return [[_count(draw, chance, runs) for chance in skill] for skill in chances]


def night(
    draw: random.Random,
    accepted: Sequence[Sequence[Count]],
    chances: Chances,
    runs: int,
) -> list[AcceptedComparison]:
    """The comparisons of a night of so many runs, one of each skill."""
    groups = {}
    for number, (counts, skill) in enumerate(zip(accepted, chances, strict=True)):
        group = Group(pair_of(f"skill-{number}", "m"), of_triggers=False)
        cases: list[Compared] = []
        for was, chance in zip(counts, skill, strict=True):
            cases.append(_case(draw, f"case-{len(cases)}", was, chance, runs))
        groups[group] = cases
    return compare_groups(groups)


def _case(
    draw: random.Random, name: str, was: Count, chance: float, runs: int
) -> Compared:
    """It is asked again as long as all its runs fail, if it had always passed."""
    expected = Expectation(was, "2026-01-02")
    now = _count(draw, chance, runs)
    while (
        expected.always_passed
        and not now.passes
        and now.runs < FAILURES_OF_A_REGRESSION
    ):
        now = Count(_count(draw, chance, 1).passes, now.runs + 1)
    test = PlannedCase(name, "skill", name, "m", expected=expected)
    return Compared(test, now, extra_runs=now.runs - runs)


def _count(draw: random.Random, chance: float, runs: int) -> Count:
    return Count(sum(draw.random() < chance for _ in range(runs)), runs)
