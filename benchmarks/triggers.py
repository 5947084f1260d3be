"""How often intervals of recall and false alarms are wrong,
and an unchanged skill regresses.

python benchmarks/triggers.py [repeats]
"""

import random
import sys
from pathlib import Path
from statistics import fmean
from typing import Final

from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pytest_upskill.stats import CasePasses, wilson, worsened
from support.simulated import passes

# How the chances of queries to open a skill are spread: a Beta distribution,
# or all or nothing.
KINDS: Final = {
    "even": (1.0, 1.0),
    "middling": (4.0, 4.0),
    "mostly sure": (0.3, 0.1),
    "mostly opened": (9.0, 1.0),
    "rarely opened": (1.0, 9.0),
}
RUNS: Final = 3


def chances(draw: random.Random, kind: str, queries: int) -> list[float]:
    return [draw.betavariate(*KINDS[kind]) for _ in range(queries)]


def coverage(kind: str, queries: int, repeats: int, runs: int = RUNS) -> float:
    """How often the interval has the share of all queries that there could be."""
    draw = random.Random(f"{kind} {queries}")
    a, b = KINDS[kind]
    held = 0
    for _ in range(repeats):
        found = fmean(
            passes(draw, one, runs) / runs for one in chances(draw, kind, queries)
        )
        low, high = wilson(found, queries)
        held += low <= a / (a + b) <= high
    return held / repeats


def alarms(kind: str, queries: int, repeats: int) -> float:
    """How often the same queries, asked twice, are said to have got worse."""
    draw = random.Random(f"regressions {kind} {queries}")
    found = 0
    for _ in range(repeats):
        own = chances(draw, kind, queries)
        before, now = (
            [(passes(draw, one, RUNS), RUNS) for one in own] for _ in range(2)
        )
        found += worsened([list(map(CasePasses, before, now))])[0].found
    return found / repeats


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    rows = []
    for queries in (5, 10, 20):
        covered = [coverage(kind, queries, repeats) for kind in KINDS]
        false = [alarms(kind, queries, max(1, repeats // 4)) for kind in KINDS]
        once = [coverage(kind, queries, repeats, runs=1) for kind in KINDS]
        cells = [min(covered), fmean(covered), min(once), fmean(false), max(false)]
        rows.append([queries, *(f"{cell:.1%}" for cell in cells)])
    headers = ["queries", "least coverage", "mean coverage", "least with 1 run"]
    headers += ["unchanged regresses", "at most"]
    print(tabulate(rows, headers))


if __name__ == "__main__":
    main()
