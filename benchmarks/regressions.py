"""How often regressions are found, and how often an unchanged skill
is said to have got worse.

python benchmarks/regressions.py [teams]
"""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.nights import accept, night

NIGHTS: Final = 50  # with the same accepted results

Spread = Callable[[random.Random], float]  # of the chances that cases have to pass


class Size(NamedTuple):
    """The columns that describe a row."""

    skills: int
    cases: int  # of each skill
    accepted_runs: int
    runs: int


def sure(_draw: random.Random) -> float:
    return 0.85


def mostly_sure(draw: random.Random) -> float:
    return draw.betavariate(5, 1)


def noisy(draw: random.Random) -> float:
    return draw.betavariate(1, 1)


def unchanged(draw: random.Random, size: Size, spread: Spread) -> float:
    """The share of nights in which something is red."""
    chances = [[spread(draw) for _ in range(size.cases)] for _ in range(size.skills)]
    accepted = accept(draw, chances, size.accepted_runs)
    red = 0
    for _ in range(NIGHTS):
        red += any(night(draw, accepted, chances, size.runs))
    return red / NIGHTS


def one_broke(draw: random.Random, size: Size) -> float:
    """Whether a case is named that always passed and never does any more."""
    before = [[sure(draw)] * size.cases for _ in range(size.skills)]
    before[0][0] = 1.0
    accepted = accept(draw, before, size.accepted_runs)
    now = [[0.0, *before[0][1:]], *before[1:]]
    first, *_ = night(draw, accepted, now, size.runs)
    return "case-0" in first


def skill_fell(draw: random.Random, size: Size) -> float:
    """Whether a skill is red all of whose cases pass 30 points less often."""
    before = [[sure(draw)] * size.cases for _ in range(size.skills)]
    accepted = accept(draw, before, size.accepted_runs)
    now = [[chance - 0.3 for chance in before[0]], *before[1:]]
    first, *_ = night(draw, accepted, now, size.runs)
    return bool(first)


def mean(measure: Callable[..., float], teams: int, size: Size, *more: object) -> str:
    draw = random.Random(f"{measure.__name__} {size}")
    return f"{sum(measure(draw, size, *more) for _ in range(teams)) / teams:.1%}"


def main() -> None:
    teams = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    rows = []
    for size in (
        *(Size(20, 6, accepted, runs) for accepted in (1, 3, 5) for runs in (1, 3)),
        Size(20, 6, 5, 5),
        Size(1, 12, 3, 1),
        Size(1, 40, 3, 1),
    ):
        row: list[object] = [*size]
        for spread in (sure, mostly_sure, noisy):
            row.append(mean(unchanged, teams, size, spread))
        row.append(mean(one_broke, 10 * teams, size))
        row.append(mean(skill_fell, 10 * teams, size))
        rows.append(row)
    headers = ["skills", "cases", "accepted runs", "runs", "unchanged, 85 %"]
    headers += ["unchanged, mostly sure", "unchanged, noisy"]
    headers += ["one case broke", "a skill fell by 30 points"]
    print(tabulate(rows, headers, tablefmt="github"))


if __name__ == "__main__":
    main()
