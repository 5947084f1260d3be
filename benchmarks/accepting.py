"""Accepted results: accepted again after green nights,
and compared after the model changed.

python benchmarks/accepting.py [repeats]

In the 50 nights nothing changes, so that every red one is a false alarm.
"""

import random
import sys
from pathlib import Path
from typing import Final

from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pytest_upskill.results.accepted import ENOUGH_RUNS
from pytest_upskill.results.regressions import reaches
from pytest_upskill.stats import CasePasses, fell_together, lift_change, worsened
from pytest_upskill.trials.plan import Count
from support.simulated import passes

NIGHTS: Final = 50
HABITS: Final = {
    "never": "never, or when `next:` suggests it",
    "better": "when a case is better and none fell",
    "plain": "every green night, `--skill-accept`",
    "lower": "every green night, `--skill-accept=lower`",
    "risen": "every green night, only cases that rose",
}


def pooled(before: Count, now: Count) -> Count:
    if before.runs >= ENOUGH_RUNS:
        return before
    return Count(before.passes + now.passes, before.runs + now.runs)


def accepted_next(habit: str, accepted: list[Count], now: list[Count]) -> list[Count]:
    """What is accepted after a green night."""
    pairs = list(zip(accepted, now, strict=True))
    after = [pooled(was, present) for was, present in pairs]
    lowered = [
        result.share < was.share for was, result in zip(accepted, after, strict=True)
    ]
    better = any(
        reaches(present, None) and not reaches(was, None) for was, present in pairs
    )
    fell = any(present.share < was.share for was, present in pairs)
    if habit == "risen":
        kept = zip(accepted, after, lowered, strict=True)
        return [was if falls else result for was, result, falls in kept]
    takes_all = {
        "better": better and not fell,
        "plain": not any(lowered),
        "lower": True,
    }
    return after if takes_all.get(habit) else accepted


def red_nights(habit: str, cases: int, runs: int, draw: random.Random) -> int:
    chances = [draw.choice((0.5, 0.7, 0.9)) for _ in range(cases)]

    def night() -> list[Count]:
        return [Count(passes(draw, chance, runs), runs) for chance in chances]

    accepted, red = night(), 0
    for _ in range(NIGHTS):
        now = night()
        counts = [
            CasePasses(was, present) for was, present in zip(accepted, now, strict=True)
        ]
        if worsened([counts])[0].found:
            red += 1
        else:
            accepted = accepted_next(habit, accepted, now)
    return red


CHANGES: Final = {  # chances without the skill and with it, then and now
    "both arms by 30 points": ((0.7, 0.9), (0.4, 0.6)),
    "the skill alone by 30 points": ((0.4, 0.9), (0.4, 0.6)),
    "the model by 30, the skill by 65": ((0.7, 0.95), (0.4, 0.3)),
}


def blamed(change: str, cases: int, runs: int, repeats: int) -> tuple[float, float]:
    """How many runs are red, and how many of these because of the model."""
    before, now = CHANGES[change]
    draw, red, of_model = random.Random(f"{change} {cases} {runs}"), 0, 0
    for _ in range(repeats):
        baseline, skill = (
            [
                CasePasses(
                    (passes(draw, was, runs), runs), (passes(draw, is_now, runs), runs)
                )
                for _ in range(cases)
            ]
            for was, is_now in zip(before, now, strict=True)
        )
        if worsened([skill])[0].found:
            red += 1
            unchanged = lift_change([*zip(skill, baseline, strict=True)]).p_fell > 0.05
            of_model += unchanged and fell_together([baseline])[0]
    return red / repeats, of_model / max(1, red)


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rows = []
    for habit, words in HABITS.items():
        row = [words]
        for cases in (3, 10, 20):
            draw = random.Random(f"{cases}")
            red = [red_nights(habit, cases, 3, draw) for _ in range(repeats)]
            teams = sum(number > 0 for number in red) / repeats
            row.append(f"{teams:.0%} ({sum(red) / repeats / NIGHTS:.1%})")
        rows.append(row)
    headers = ["accepts again", "3 cases", "10 cases", "20 cases"]
    print(tabulate(rows, headers, tablefmt="github"), flush=True)
    rows = []
    for change in CHANGES:
        shares = [
            s
            for c, r in ((12, 3), (20, 3), (20, 5))
            for s in blamed(change, c, r, 2 * repeats)
        ]
        rows.append([change, *(f"{share:.0%}" for share in shares)])
    headers = [
        "fell",
        *("12 × 3", "the model's", "20 × 3", "the model's", "20 × 5", "the model's"),
    ]
    print(tabulate(rows, headers, tablefmt="github"))


if __name__ == "__main__":
    main()
