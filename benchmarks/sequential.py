"""What frugal runs (3..12) save compared with 12 runs of everything, and how often each errs.

python benchmarks/sequential.py [repeats]    takes some minutes
"""

import random
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pytest_upskill.stats import look, look_plan, paired_lift
from support.simulated import Chances, Passes, World, ask, rates, worlds

PLAN: Final = look_plan(3, 12)
CASES: Final = (8, 12, 20, 40)
LIFTS: Final = (0, 0.2, 0.4, 0.6)


def looks(draw: random.Random, chances: Chances) -> Iterator[tuple[int, Passes]]:
    """The passes after each step of the plan."""
    counts = [(0, 0)] * len(chances)
    for before, runs in pairwise((0, *PLAN)):
        more = ask(draw, chances, runs - before)
        counts = [(b + c, s + t) for (b, s), (c, t) in zip(counts, more, strict=True)]
        yield runs, counts


def compare(world: World, cases: int, repeats: int) -> tuple[int, int, int, int, int]:
    """How often frugal, 6 and 12 runs show a lift; the frugal runs, and their missed intervals."""
    draw = random.Random(f"{world.name} {world.lift} {cases}")
    frugal_shown = frugal_runs = missed = 0
    fixed_shown = dict.fromkeys(PLAN, 0)
    for _ in range(repeats):
        stopped = False
        for runs, counts in looks(draw, world.cases(draw, cases)):
            pairs = rates(counts, runs)
            fixed_shown[runs] += paired_lift(pairs, runs).shown
            if not stopped and not (seen := look(pairs, runs, PLAN)).open:
                stopped = True
                frugal_runs += runs
                frugal_shown += seen.lift.shown
                missed += not seen.lift.low - 1e-9 <= world.lift <= seen.lift.high + 1e-9
    return frugal_shown, fixed_shown[6], fixed_shown[12], frugal_runs, missed


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    rows = []
    for lift in LIFTS:
        for cases in CASES:
            # If the arms are unrelated, no skill is being tested.
            some = [world for world in worlds(lift) if "unrelated" not in world.name]
            found = [compare(world, cases, repeats) for world in some]
            total = repeats * len(some)
            means = [sum(column) / total for column in zip(*found, strict=True)]
            frugal, by_6, by_12, runs, missed = means
            most = max(one[0] for one in found) / repeats
            rows.append(
                [
                    f"{lift:.0%}",
                    cases,
                    f"{runs:.1f}",
                    f"{1 - runs / PLAN[-1]:.0%}",
                    f"{frugal:.1%}",
                    f"{by_6:.1%}",
                    f"{by_12:.1%}",
                    f"{most:.1%}" if lift == 0 else "",
                    f"{1 - missed:.1%}",
                ]
            )
    headers = ["lift", "cases", "runs", "saved", "shown", "by 6 runs", "by 12"]
    headers += ["at most", "coverage"]
    print(tabulate(rows, headers))


if __name__ == "__main__":
    main()
