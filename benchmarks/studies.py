"""How often studies of neighbours and parts err, what they find, and what they save.

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

from pytest_upskill.stats import look_plan
from support.simulated import (
    LIFT,
    Case,
    Simulated,
    carry_out,
    matrix_study,
    parts_study,
    worlds,
)

PLANS: Final = (look_plan(2, 8), look_plan(8, 8))
CASES: Final = (10, 20)

Make = Callable[[random.Random, Case, int], Simulated]


class Found(NamedTuple):
    """Of studies: how many had a false alarm, found what there is,
    the share of calls saved.
    """

    false: float
    found: float
    saved: float
    covered: float


def try_out(
    name: str, make: Make, case: Case, cases: int, plan: tuple[int, ...], n: int
) -> Found:
    draw = random.Random(f"{name} {cases} {plan}")
    false = found = covered = effects = 0
    saved = 0.0
    for _ in range(n):
        study = make(draw, case, cases)
        outcome = carry_out(draw, study, plan)
        family, wrong = outcome.family, False
        for effect, judged in {**family.shown, **family.unshown}.items():
            true, lift = study.true[effect], judged.lift
            wrong |= lift.shown and (true == 0 or (lift.lift > 0) != (true > 0))
            effects += 1
            covered += lift.low - 1e-9 <= true <= lift.high + 1e-9
        false += wrong
        real = [effect for effect, true in study.true.items() if true]
        found += any(effect in family.shown for effect in real)
        saved += 1 - outcome.asked / outcome.whole
    return Found(false / n, found / n, saved / n, covered / effects)


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
    wanted = [(name, kind, 10, PLANS[0]) for name, kind in null.items()]
    wanted += [
        (name, kind, cases, plan)
        for name, kind in real.items()
        for cases in CASES
        for plan in PLANS
    ]
    own = [world for world in worlds(LIFT) if "unrelated" not in world.name]
    rows = []
    for name, (family, make), cases, plan in wanted:
        found = [
            try_out(f"{name} {w.name}", make, w.case, cases, plan, repeats) for w in own
        ]
        means = [sum(column) / len(found) for column in zip(*found, strict=True)]
        runs = f"{plan[0]}..{plan[-1]}" if len(plan) > 1 else plan[0]
        at_most = max(one.false for one in found)
        shown = [
            f"{means[0]:.1%}",
            f"{at_most:.1%}",
            f"{means[1]:.0%}",
            f"{means[2]:.0%}",
        ]
        rows.append([name, family, cases, runs, *shown, f"{means[3]:.1%}"])
        print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
    headers = [
        "study",
        "effects",
        "cases",
        "runs",
        "false alarms",
        "at most",
        "found",
        "saved",
    ]
    print(tabulate(rows, [*headers, "coverage"]))


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
