"""Effects of a study: how much one way to install skills differs from another, paired by case."""

from dataclasses import dataclass
from typing import Literal

from ..stats import Lift

# shown: the interval excludes 0, adjusted for all effects of the study; none shown: all runs were
# made; dropped: more runs could hardly have shown anything; incomplete: answers are missing.
State = Literal["shown", "none shown", "dropped", "incomplete"]


@dataclass(frozen=True)
class Effect:
    """A contrast of variants: a mean over cases, of -1 to 1 (of two lifts: -2 to 2)."""

    name: str  # of the contrast
    lift: Lift | None  # adjusted; None if no case has an answer in all of its variants
    cases: int
    runs: int
    state: State
    cases_needed: int | None = None  # that would show an effect of this size; None: too many
