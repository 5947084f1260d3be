"""How often studies of neighbours and parts err, and what they find.

python benchmarks/studies.py [repeats]    takes some minutes
"""

import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.simulated import worlds
from support.simulated_studies import (
    LIFT,
    Case,
    Simulated,
    carry_out,
    matrix_study,
    parts_study,
)

RUNS: Final = (3, 8)
CASES: Final = (10, 20)

Make = Callable[[random.Random, Case, int], Simulated]


class Found(NamedTuple):
    """Of studies: how many had a false alarm, and found what there is."""

    false: float
    found: float
    covered: float


def try_out(
    name: str, make: Make, case: Case, *, cases: int, runs: int, n: int
) -> Found:
    draw = random.Random(f"{name} {cases} {runs}")
    false = found = covered = effects = 0
    for _ in range(n):
        study = make(draw, case, cases)
        lifts, wrong = carry_out(draw, study, runs), False
        for effect, lift in lifts.items():
            true = study.true[effect]
            wrong |= lift.shown and (true == 0 or (lift.lift > 0) != (true > 0))
            effects += 1
            covered += lift.low - 1e-9 <= true <= lift.high + 1e-9
        false += wrong
        real = [effect for effect, true in study.true.items() if true]
        found += any(lifts[effect].shown for effect in real)
    return Found(false / n, found / n, covered / effects)


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    null: dict[str, tuple[int, Make]] = {}
    for skills, family in ((2, 2), (3, 9), (4, 16)):
        null[f"matrix of {skills} skills"] = family, partial(_matrix, skills)
    for parts in (2, 5, 10, 20):
        null[f"{parts} parts"] = parts, partial(_parts, parts)
    null["10 parts, mixed"] = 10, partial(_mixed, 10)
    real: dict[str, tuple[int, Make]] = {
        "matrix of 3 skills, one hurts": (9, partial(_hurt, 3)),
        "5 parts, one counts": (5, partial(_counts, 5)),
        "10 parts, one counts": (10, partial(_counts, 10)),
    }
    wanted = [(name, kind, 10, RUNS[0]) for name, kind in null.items()]
    wanted += [
        (name, kind, cases, runs)
        for name, kind in real.items()
        for cases in CASES
        for runs in RUNS
    ]
    own = [world for world in worlds(LIFT) if "unrelated" not in world.name]
    rows = []
    for name, (family, make), cases, runs in wanted:
        found = [
            try_out(f"{name} {w.name}", make, w.case, cases=cases, runs=runs, n=repeats)
            for w in own
        ]
        means = [sum(column) / len(found) for column in zip(*found, strict=True)]
        at_most = max(one.false for one in found)
        shown = [
            f"{means[0]:.1%}",
            f"{at_most:.1%}",
            f"{means[1]:.0%}",
            f"{means[2]:.1%}",
        ]
        rows.append([name, family, cases, runs, *shown])
        print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
    headers = [
        "study",
        "effects",
        "cases",
        "runs",
        "false alarms",
        "at most",
        "found",
        "coverage",
    ]
    print(tabulate(rows, headers))


def _matrix(skills: int, draw: random.Random, case: Case, cases: int) -> Simulated:
    return matrix_study(draw, case, cases, skills)


def _hurt(skills: int, draw: random.Random, case: Case, cases: int) -> Simulated:
    return matrix_study(draw, case, cases, skills, harm=1.0)


def _parts(parts: int, draw: random.Random, case: Case, cases: int) -> Simulated:
    return parts_study(draw, case, cases, parts)


def _mixed(parts: int, draw: random.Random, case: Case, cases: int) -> Simulated:
    return parts_study(draw, case, cases, parts, mixed=True)


def _counts(parts: int, draw: random.Random, case: Case, cases: int) -> Simulated:
    return parts_study(draw, case, cases, parts, loss=1.0)


if __name__ == "__main__":
    main()
