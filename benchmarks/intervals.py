"""How often the interval of a lift contains the true one,
and how often equal arms differ.

python benchmarks/intervals.py [repeats]           takes some minutes python
benchmarks/intervals.py [repeats] checks    of shares of checks instead of
pass rates python benchmarks/intervals.py [repeats] words     which words a
true lift of 20 points gets
"""

import random
import sys
from pathlib import Path
from typing import Final

from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pytest_upskill.stats import RELEVANT_LIFT, Lift, guarded_twice, paired_lift
from pytest_upskill.stats.intervals import Pairs
from support.simulated import World, ask, rates, shares, worlds

CASES: Final = (5, 8, 12, 20, 40)
RUNS: Final = (1, 3, 5)
LIFTS: Final = (0, 0.1, 0.2, 0.4, 0.6)


def coverage(world: World, cases: int, runs: int, repeats: int) -> tuple[float, float]:
    """The share of intervals that contain the true lift, and of those that exclude
    0.
    """
    draw = random.Random(f"{world.name} {world.lift} {cases} {runs}")
    held = shown = 0
    for _ in range(repeats):
        chances = world.cases(draw, cases)
        by_checks = sys.argv[2:] == ["checks"]
        asked = (
            shares(draw, chances, runs)
            if by_checks
            else rates(ask(draw, chances, runs), runs)
        )
        found = paired_lift(asked, runs)
        held += found.low - 1e-9 <= world.lift <= found.high + 1e-9
        shown += found.shown
    return held / repeats, shown / repeats


def all_or_nothing(gained: float, lost: float) -> World:
    """Cases without chance: the hardest, since their differences
    are skewed and often equal.
    """

    def case(draw: random.Random) -> tuple[float, float]:
        kind = draw.random()
        if kind < gained:
            return 0, 1
        if kind < gained + lost:
            return 1, 0
        return (1, 1) if draw.random() < 0.5 else (0, 0)

    return World(f"all or nothing +{gained} -{lost}", gained - lost, case)


def judged(pairs: Pairs, runs: int) -> Lift:
    """As the word of the verdict is chosen."""
    lift, differences = (
        paired_lift(pairs, runs),
        [after - before for before, after in pairs],
    )
    return lift if lift.shown else guarded_twice(lift, differences)


def words(repeats: int) -> None:
    """How often a lift of 20 points is shown, left open, or wrongly excluded."""
    rows = []
    for runs in (1, 3):
        for cases in (5, 10, 20, 40):
            missed, shown = dict[str, float](), 0
            for world in worlds(RELEVANT_LIFT):
                draw = random.Random(f"{world.name} {cases} {runs}")
                lifts = [
                    judged(rates(ask(draw, world.cases(draw, cases), runs), runs), runs)
                    for _ in range(repeats)
                ]
                missed[world.name] = (
                    sum(lift.high < RELEVANT_LIFT for lift in lifts) / repeats
                )
                shown += sum(lift.low > 0 for lift in lifts)
            mean = sum(missed.values()) / len(missed)
            helps = shown / repeats / len(missed)
            shares = [helps, 1 - helps - mean, mean, max(missed.values())]
            rows.append([runs, cases, *(f"{share:.1%}" for share in shares)])
    print(
        tabulate(
            rows,
            [
                "runs",
                "cases",
                "helps",
                "too few cases",
                "20 points excluded",
                "at most",
            ],
        )
    )


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    if sys.argv[2:] == ["words"]:
        words(repeats)
        return
    chancy = [world for lift in LIFTS for world in worlds(lift)]
    fixed = [
        all_or_nothing(*kind)
        for kind in [(0.1, 0), (0.2, 0), (0.4, 0), (0.6, 0), (0.3, 0.1)]
    ]
    same = [world for world in chancy if world.lift == 0 and "all gain" in world.name]
    rows = []
    for runs in RUNS:
        for cases in CASES:
            found = {world: coverage(world, cases, runs, repeats) for world in chancy}
            least = min(chancy, key=lambda world: found[world][0])
            hard = [coverage(world, cases, runs, repeats)[0] for world in fixed]
            rows.append(
                [
                    runs,
                    cases,
                    f"{found[least][0]:.1%}",
                    f"{least.name}, lift {least.lift}",
                    f"{sum(held for held, _ in found.values()) / len(chancy):.1%}",
                    f"{min(hard):.1%}",
                    f"{max(found[world][1] for world in same):.1%}",
                    f"{max(found[w][1] for w in chancy if w.lift == 0):.1%}",
                ]
            )
    headers = [
        "runs",
        "cases",
        "least",
        "where",
        "mean",
        "all or nothing",
        "equal arms",
        "lift 0",
    ]
    print(tabulate(rows, headers))


if __name__ == "__main__":
    main()
