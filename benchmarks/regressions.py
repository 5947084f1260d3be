"""How often regressions are found, and how often an unchanged skill
is said to have got worse.

python benchmarks/regressions.py [repeats]
"""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pytest_upskill.stats import CasePasses, worsened
from support.simulated import passes

NOISY: Final = (1.0, 1.0)  # chances to pass are spread evenly
MOSTLY_SURE: Final = (5.0, 1.0)
Chances = tuple[list[float], list[float]]  # of each case, before and now


def unchanged(draw: random.Random, cases: int, spread: tuple[float, float]) -> Chances:
    chances = [draw.betavariate(*spread) for _ in range(cases)]
    return chances, chances


def one_broke(draw: random.Random, cases: int, spread: tuple[float, float]) -> Chances:
    chances, _ = unchanged(draw, cases - 1, spread)
    return [1.0, *chances], [0.0, *chances]


def all_fell(draw: random.Random, cases: int, _spread: tuple[float, float]) -> Chances:
    chances = [draw.uniform(0.5, 0.95) for _ in range(cases)]
    return chances, [chance - 0.3 for chance in chances]


def red(
    change: Callable[[random.Random, int, tuple[float, float]], Chances],
    *,
    cases: int,
    runs: int,
    repeats: int,
    groups: int = 1,
    spread: tuple[float, float] = NOISY,
) -> float:
    """The share of runs with a regression; only the first group has changed."""
    draw = random.Random(f"{change.__name__} {cases} {runs} {groups}")
    found = 0
    for _ in range(repeats):
        chances = [
            (change if number == 0 else unchanged)(draw, cases, spread)
            for number in range(groups)
        ]
        drawn = [
            [
                CasePasses(
                    (passes(draw, was, runs), runs), (passes(draw, now, runs), runs)
                )
                for was, now in zip(*of_group, strict=True)
            ]
            for of_group in chances
        ]
        found += any(group.found for group in worsened(drawn))
    return found / repeats


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    rows = []
    for groups, cases, runs in (
        *((1, cases, runs) for cases in (12, 20, 40) for runs in (1, 3, 5)),
        (30, 10, 3),
        (30, 10, 5),
    ):
        count = repeats if groups == 1 else repeats // 4
        shares = [
            red(unchanged, cases=cases, runs=runs, repeats=count, groups=groups),
            red(
                unchanged,
                cases=cases,
                runs=runs,
                repeats=count,
                groups=groups,
                spread=MOSTLY_SURE,
            ),
            red(one_broke, cases=cases, runs=runs, repeats=count, groups=groups),
            red(
                one_broke,
                cases=cases,
                runs=runs,
                repeats=count,
                groups=groups,
                spread=MOSTLY_SURE,
            ),
            red(all_fell, cases=cases, runs=runs, repeats=count, groups=groups),
        ]
        rows.append([groups, cases, runs, *(f"{share:.1%}" for share in shares)])
    headers = ["pairs", "cases", "runs", "unchanged, noisy", "unchanged, mostly sure"]
    headers += ["one broke, noisy", "one broke, mostly sure", "all fell by 30 points"]
    print(tabulate(rows, headers, tablefmt="github"))


if __name__ == "__main__":
    main()
