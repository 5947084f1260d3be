"""How often tools say that a skill changed that did not: 12 cases, asked again.

python benchmarks/against_itself.py [repeats]
"""

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pytest_upskill.stats import CasePasses, paired_lift, worsened
from support.simulated import passes

CASES, RUNS, THRESHOLD = 12, 3, 0.8
# How the chances of cases to pass are spread: a Beta distribution.
KINDS: Final = {"even": (1.0, 1.0), "middling": (4.0, 4.0), "mostly pass": (4.0, 1.0)}
Counts = Sequence[tuple[int, int]]


def rate(counts: Counts) -> float:
    return sum(passed / runs for passed, runs in counts) / len(counts)


def _ours(before: Counts, now: Counts) -> bool:
    differences = []
    for (was, runs), (is_now, _) in zip(before, now, strict=True):
        differences.append((is_now - was) / runs)
    return paired_lift(differences).shown


def _regressed(before: Counts, now: Counts) -> bool:
    (worse,) = worsened([list(map(CasePasses, before, now))])
    return worse.found


def _fell(before: Counts, now: Counts) -> bool:
    return any(was > is_now for (was, _), (is_now, _) in zip(before, now, strict=True))


RULES: Final[dict[str, tuple[int, Callable[[Counts, Counts], bool]]]] = {
    "1 run: a case that passed fails": (1, _fell),
    "1 run: the score is lower": (1, lambda before, now: rate(now) < rate(before)),
    f"1 run: above {THRESHOLD:.0%} or not": (
        1,
        lambda before, now: (rate(before) >= THRESHOLD) != (rate(now) >= THRESHOLD),
    ),
    f"{RUNS} runs: the score is lower": (
        RUNS,
        lambda before, now: rate(now) < rate(before),
    ),
    f"{RUNS} runs: the verdict here": (RUNS, _ours),
    f"{RUNS} runs: accepted results here": (RUNS, _regressed),
}


def share(rule: str, kind: str, repeats: int) -> float:
    """Of unchanged skills, those that are said to have changed."""
    draw = random.Random(f"{rule} {kind}")
    runs, says_so = RULES[rule]
    changed = 0
    for _ in range(repeats):
        chances = [draw.betavariate(*KINDS[kind]) for _ in range(CASES)]
        before, now = (
            [(passes(draw, chance, runs), runs) for chance in chances] for _ in range(2)
        )
        changed += says_so(before, now)
    return changed / repeats


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    rows = [
        [rule, *(f"{share(rule, kind, repeats):.0%}" for kind in KINDS)]
        for rule in RULES
    ]
    print(tabulate(rows, ["rule", *KINDS]))


if __name__ == "__main__":
    main()
