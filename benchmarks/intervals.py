"""How often the interval of a lift contains the true one,
and how often equal arms differ.

python benchmarks/intervals.py [repeats]           takes some minutes
python benchmarks/intervals.py [repeats] checks    of shares of checks
"""

import random
import sys
from pathlib import Path
from statistics import fmean
from typing import Final

from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pytest_upskill.stats import RELEVANT_LIFT, paired_lift
from support.simulated import World, ask, differ, rates, shares, worlds

CASES: Final = (6, 8, 12, 20, 40)
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
        found = paired_lift(differ(asked))
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


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    chancy = [world for lift in LIFTS for world in worlds(lift)]
    fixed = [
        all_or_nothing(*kind)
        for kind in [(0.1, 0), (0.2, 0), (0.4, 0), (0.6, 0), (0.3, 0.1)]
    ]
    relevant = [world for world in chancy if world.lift == RELEVANT_LIFT]
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
                    f"{fmean(found[w][1] for w in relevant):.0%}",
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
        "20 points",
    ]
    print(tabulate(rows, headers))


if __name__ == "__main__":
    main()
