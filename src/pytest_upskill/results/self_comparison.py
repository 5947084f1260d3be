"""A skill compared with itself (--skill-aa): what that shows,
and what it would show by chance.
"""

from typing import Final

from .._util.texts import counted
from ..stats import RELEVANT_LIFT, ByChance, Lift, shown_by_chance
from ..trials.arm import AGAIN, SKILL
from .arm_comparison import Comparison
from .summary import CaseSummary, Summary, cases_by_sample

_CAUSES: Final = (
    "if it happens again, the arms do not get the same: look at caches, limits and load"
    " of the server, and at the order of requests"
)


def by_chance_of(row: Summary, level: float) -> ByChance:
    """What runs like this one would show if nothing changed."""
    samples = cases_by_sample(row.by_case)
    return shown_by_chance(
        tuple(tuple(map(_passes, cases)) for cases in samples), level
    )


def _passes(case: CaseSummary) -> tuple[int, int]:
    """In both arms together, and the runs of one."""
    return sum(case.arm(arm).count.passes for arm in (AGAIN, SKILL)), case.runs


def aa_words(row: Summary, over: Comparison, by_chance: ByChance) -> str:
    """The difference of the arms, and how often such runs cry wolf."""
    lift = over.lift
    size = f"{counted(len(row.by_case), 'case')} in {counted(row.runs, 'run')}"
    cry_wolf = (
        f"with {size}, {_percent(by_chance.lift)} of runs would show a lift that is not"
        f" there, and {_percent(by_chance.regression)} a regression"
    )
    if lift.shown:
        return (
            f"A/A: {over.lift_words}: the same skill differs from itself; {cry_wolf};"
            f" {_CAUSES}"
        )
    if not rules_out_relevant(lift):
        return f"A/A: {over.lift_words}: too few cases to tell; {cry_wolf}"
    return f"A/A: {over.lift_words}: no difference shown, as it should be; {cry_wolf}"


def rules_out_relevant(lift: Lift) -> bool:
    """Whether the arms can't differ by what would matter."""
    return lift.low > -RELEVANT_LIFT and lift.high < RELEVANT_LIFT


def _percent(share: float) -> str:
    return "fewer than 1%" if share < 0.01 else f"{share:.0%}"
