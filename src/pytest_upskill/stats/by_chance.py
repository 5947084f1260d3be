"""What runs of an unchanged skill would show by chance,
by the rules that verdicts follow.
"""

from functools import lru_cache
from random import Random
from statistics import fmean
from typing import NamedTuple

from .intervals import LEVEL, paired_lift
from .significance import CasePasses, worsened

_SEED = 1
_MOST, _FEWEST = 1_000, 100  # repetitions
_MOST_CASES = 12_000  # in all repetitions, which takes about half a second


class ByChance(NamedTuple):
    """The shares of such runs that show a lift, or a regression."""

    lift: float
    regression: float


# Of each: passes in both arms together, and runs of one arm
Cases = tuple[tuple[int, int], ...]


@lru_cache(maxsize=64)
def shown_by_chance(samples: tuple[Cases, ...], level: float = LEVEL) -> ByChance:
    """Simulate two arms that are the same, with cases that pass as often as these did.

    The chance of a case is only known from its passes, so each repetition draws
    it from what they leave possible (Jeffreys' posterior): one that always
    passed may fail now and then.
    """
    draw, shown = Random(_SEED), list[tuple[bool, bool]]()
    for _ in range(max(_FEWEST, min(_MOST, _MOST_CASES // sum(map(len, samples))))):
        drawn = [[_drawn(draw, *case) for case in cases] for cases in samples]
        rates = [
            (fmean(map(_before, cases)), fmean(map(_now, cases))) for cases in drawn
        ]
        lift = paired_lift(
            rates, max(runs for cases in samples for _, runs in cases), level
        )
        (worse,) = worsened([[case for cases in drawn for case in cases]], 1 - level)
        shown.append((lift.shown, worse.found))
    return ByChance(*(fmean(column) for column in zip(*shown, strict=True)))


def _drawn(draw: Random, passes: int, runs: int) -> CasePasses:
    chance = draw.betavariate(passes + 0.5, 2 * runs - passes + 0.5)
    before, now = (sum(draw.random() < chance for _ in range(runs)) for _ in range(2))
    return CasePasses((before, runs), (now, runs))


def _before(case: CasePasses) -> float:
    return case.before[0] / case.before[1]


def _now(case: CasePasses) -> float:
    return case.now[0] / case.now[1]
