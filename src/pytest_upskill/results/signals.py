"""Signals: what each case says about a skill, from how often it passes.

They describe what was seen. No gate and no verdict goes by them.
"""

from typing import Final, Literal, NamedTuple, get_args

from ..stats import drop
from ..trials.plan import Count

Signal = Literal["only with", "only without", "both pass", "both fail", "mixed"]
SIGNALS: Final[tuple[Signal, ...]] = get_args(Signal)
SIGNAL_ADVICE: Final[dict[Signal, str]] = {
    "only with": "the skill is why they pass",
    "only without": "read the two answers first",
    "both pass": "they tell nothing",
    "both fail": "not in SKILL.md, or a wrong check",
    "mixed": "ask more often",
}
_CLEAR_DIFFERENCE: Final = 0.5
_SHOWN: Final = 0.05


class CaseSignal(NamedTuple):
    signal: Signal
    is_shown: bool  # by Fisher's exact test, one-sided


def signal_of(without: Count, with_skill: Count) -> CaseSignal:
    """What the passes of a case say, without the skill and with it."""
    if without.share == with_skill.share == 1:
        return CaseSignal("both pass", is_shown=False)
    if without.share == with_skill.share == 0:
        return CaseSignal("both fail", is_shown=False)

    difference = with_skill.share - without.share
    if difference >= _CLEAR_DIFFERENCE:
        return CaseSignal("only with", drop([with_skill], [without]) <= _SHOWN)
    if difference <= -_CLEAR_DIFFERENCE:
        return CaseSignal("only without", drop([without], [with_skill]) <= _SHOWN)
    return CaseSignal("mixed", is_shown=False)
