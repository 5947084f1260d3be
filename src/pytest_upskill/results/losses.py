"""Whether a shorter skill loses anything, in words that claim no more than its cases show."""

from typing import Final, Literal

from .._util.texts import points
from ..stats import Lift

MARGIN: Final = 0.1  # a loss of at most this many points does not count, unless someone says so

# loses: the interval is below 0; no loss shown: a loss of more than the margin is ruled out; not
# known: neither, for want of cases.
Standing = Literal["loses", "no loss shown", "not known"]


def standing_of(change: Lift | None, margin: float = MARGIN) -> Standing:
    """``change`` is the score of the shorter skill, less that of the whole."""
    if change is None:
        return "not known"
    if change.high < 0:
        return "loses"
    return "no loss shown" if is_within(change, margin) else "not known"


def is_within(change: Lift | None, margin: float) -> bool:
    """Whether a loss of the margin is ruled out; a smaller one may be there, or even be shown."""
    return change is not None and change.low > -margin


def loss_words(change: Lift | None, margin: float = MARGIN, cases: int | None = None) -> str:
    """One line: "loses 12 points (3 to 21)"; ``cases`` would tell what is not known."""
    standing = standing_of(change, margin)
    if change is None:
        return "not known: not measured"
    if standing == "loses":
        lost, least, most = (
            points(-one).lstrip("+") for one in (change.lift, change.high, change.low)
        )
        return f"loses {lost} points ({least} to {most})"
    bounds = f"({points(change.low)} to {points(change.high)})"
    if standing == "no loss shown":
        return f"no loss shown {bounds}"
    told = f": about {cases:,} cases would tell" if cases else ""
    return f"not known {bounds}{told}"
