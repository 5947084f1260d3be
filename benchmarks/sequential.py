"""What frugal runs (3..12) save compared with 12 runs of everything,
and how often each errs.

Calls are per case and arm. The bias, in points, is that of letting cases rest, without
any looks. The draws are the same every time, and so are the numbers, on any machine.

python benchmarks/sequential.py [repeats]    500 by default, which takes some minutes
"""

import random
import sys
from pathlib import Path
from typing import Final

from tables import Row, limited, show

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pytest_upskill.stats import look_plan, paired_lift, rest_after
from support.simulated import World, ask, frugal, rates, weighted, worlds

PLAN: Final = look_plan(3, 12)
CASES: Final = (8, 12, 20, 40)
REPEATS: Final = 500
LIFTS: Final = (0, 0.2, 0.4, 0.6)


def compare(world: World, cases: int, repeats: int) -> list[float]:
    """How often frugal, 6 and 12 runs show a lift; calls per case and arm; misses;
    the bias.
    """
    draw = random.Random(f"{world.name} {world.lift} {cases}")
    found = [0.0] * 6
    for _ in range(repeats):
        chances = world.cases(draw, cases)
        seen, _, calls = frugal(draw, chances, PLAN)
        by_6, by_12 = (
            paired_lift(rates(ask(draw, chances, n), n), n).shown for n in (6, 12)
        )
        covered = seen.lift.low - 1e-9 <= world.lift <= seen.lift.high + 1e-9
        shown = seen.lift.shown and not seen.open
        # Of the choice of cases alone: no look stops it.
        everything = [
            [(draw.random() < b, draw.random() < s) for _ in range(PLAN[-1])]
            for b, s in chances
        ]
        lifts = [s - b for b, s in map(_rested, everything)]
        true = sum(s - b for b, s in chances) / cases
        bias = sum(lifts) / cases - true
        values = (shown, by_6, by_12, calls / (2 * cases), not covered, bias)
        found = [one + value for one, value in zip(found, values, strict=True)]
    return found


def _rested(case: list[tuple[bool, bool]]) -> tuple[float, float]:
    rest = rest_after(PLAN)
    alike = len(set(case[:rest])) == 1
    return weighted(case[:rest] if alike else case, rest)


def sequential(_: Path, repeats: int = REPEATS) -> None:
    """Calls to a verdict, and how often it is right."""
    rows, saved, errors, power = list[Row](), list[float](), list[float](), 0.0
    for lift in LIFTS:
        for cases in CASES:
            # If the arms are unrelated, no skill is being tested.
            some = [world for world in worlds(lift) if "unrelated" not in world.name]
            found = [compare(world, cases, repeats) for world in some]
            total = repeats * len(some)
            means = [sum(column) / total for column in zip(*found, strict=True)]
            shown, by_6, by_12, calls, missed, bias = means
            most = max(one[0] for one in found) / repeats
            saved.append(1 - calls / PLAN[-1])
            errors += [shown] if lift == 0 else []
            power = shown if (lift, cases) == (0.2, 12) else power
            rows.append(
                [
                    f"{100 * lift:.0f} points" if lift else "none",
                    str(cases),
                    f"{calls:.1f}",
                    f"{saved[-1]:.0%}",
                    f"{shown:.1%}",
                    f"{by_6:.1%}",
                    f"{by_12:.1%}",
                    f"{most:.1%}" if lift == 0 else "",
                    f"{1 - missed:.1%}",
                    f"{100 * bias:+.2f}",
                ]
            )
    head = ["lift", "cases", "calls", "saved", "shown", "by 6 runs", "by 12 runs"]
    head += ["at most", "coverage", "bias"]
    show(f"Calls to a verdict with 3 to 12 runs, {repeats:,} times each", rows, head)
    limits = [
        ["calls made, of those of 12 runs", *limited(1 - sum(saved) / len(saved), 0.4)],
        ["lifts shown where there is none", *limited(max(errors), 0.05)],
        ["20 points on 12 cases missed", *limited(1 - power, 0.54)],
    ]
    show("Limits of calls to a verdict", limits)


if __name__ == "__main__":
    sequential(Path(), *map(int, sys.argv[1:]))
