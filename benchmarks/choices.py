"""How often describe, ablate and refine --max-tokens claim too much,
and what they find.

python benchmarks/choices.py [repeats] [describe] [parts]
[shorter]    takes some minutes
"""

import random
import sys
from pathlib import Path
from typing import Final

from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pytest_upskill.results.contrasts import MARGIN
from support import simulated_studies as choices
from support.simulated_studies import carry_out

RUNS: Final = 3
NO_BETTER: Final = {
    "the same": choices.same_query,
    "as often better as worse": choices.sure_query,
    "most a bit better, a few much worse": choices.mostly_better_query,
}
LOSSES: Final = {
    "a tenth of the cases can't do without": choices.needed_by_few,
    "the same, of cases that are not sure": choices.needed_by_some,
    "all cases lose a bit": choices.missed_by_all,
}


def says_better(name: str, query: choices.Query, repeats: int) -> list[list[object]]:
    rows = list[list[object]]()
    for kinds in ((10, 10), (5, 15), (20, 20)):
        for versions, students in ((1, 1), (2, 1), (4, 1), (2, 3)):
            draw = random.Random(f"{name} {kinds} {versions} {students}")
            found = [
                choices.says_better(draw, query, kinds, versions, students)
                for _ in range(repeats)
            ]
            rows.append(
                [name, "{} + {}".format(*kinds), versions, students, _share(found)]
            )
    return rows


def could_go(name: str, loss: choices.Loss, repeats: int) -> list[list[object]]:
    rows = list[list[object]]()
    for cases in (60, 100):
        for parts in (1, 5, 10):
            draw = random.Random(f"{name} {cases} {parts}")
            found = list[bool]()
            for _ in range(repeats):
                study = choices.margin_study(draw, loss, cases, parts)
                lifts = carry_out(draw, study, RUNS).values()
                found.append(any(x.low > -MARGIN and not x.shown for x in lifts))
            rows.append([name, cases, parts, _share(found)])
    return rows


def shorter(name: str, loss: choices.Loss, repeats: int) -> list[list[object]]:
    """Of three versions, the shortest loses the margin, or the two shortest,
    or all of them.
    """
    rows = list[list[object]]()
    for cases in (40, 66, 100):
        row: list[object] = [name, cases]
        for good in (2, 1, 0):
            draw = random.Random(f"{name} {cases} {good}")
            losses = [choices.not_needed] * good + [loss] * (3 - good)
            places = [choices.chosen_place(draw, losses, cases) for _ in range(repeats)]
            row.append(
                _share([place is not None and place >= good for place in places])
            )
        rows.append(row)
    return rows


def _share(found: list[bool]) -> str:
    return f"{sum(found) / len(found):.1%}"


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    only = sys.argv[2:] or ["describe", "parts", "shorter"]
    if "describe" in only:
        kinds = {**NO_BETTER, "30 points better": choices.better_query}
        rows = [
            row
            for name, query in kinds.items()
            for row in says_better(name, query, repeats)
        ]
        heads = ["a version is", "queries", "versions", "students", "said to be better"]
        print(tabulate(rows, heads))
    if "parts" in only:
        lost = {**LOSSES, "nothing is lost": choices.not_needed}
        rows = [
            row for name, loss in lost.items() for row in could_go(name, loss, repeats)
        ]
        print(tabulate(rows, ["without a part", "cases", "parts", "one could go"]))
    if "shorter" in only:
        rows = [
            row for name, loss in LOSSES.items() for row in shorter(name, loss, repeats)
        ]
        heads = ["a short version", "held-out cases", "1 of 3 loses", "2 of 3", "all"]
        print(tabulate(rows, heads))


if __name__ == "__main__":
    main()
