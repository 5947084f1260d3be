"""Effects of a study: how much one way to install skills differs from another, paired by case."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, PlainSerializer

from .._util.texts import counted, dollars, span, unsigned_points
from ..stats import Lift
from ..trials.number_types import Amount, Whole

MARGIN: Final = 0.1  # a loss of at most this many points does not count, unless someone says so

# shown: the interval excludes 0, adjusted for all effects of the study; none shown: all runs were
# made; dropped: more runs could hardly have shown anything; incomplete: answers are missing.
State = Literal["shown", "none shown", "dropped", "incomplete"]

# loses: the interval is below 0; no loss shown: a loss of more than the margin is ruled out; not
# known: neither, for want of cases.
LossStanding = Literal["loses", "no loss shown", "not known"]


def _possible(lift: Lift) -> Lift:
    if not all(-2 <= number <= 2 for number in lift):  # the difference of two lifts
        raise ValueError("must be numbers from -2 to 2")
    return lift


LiftValue = Annotated[
    Lift,
    AfterValidator(_possible),
    PlainSerializer(Lift._asdict, return_type=dict[str, float]),
]


@dataclass(frozen=True)
class Effect:
    """A contrast of variants: a mean over cases, of -1 to 1 (of two lifts: -2 to 2)."""

    name: str  # of the contrast
    lift: LiftValue | None  # adjusted; None if no case has an answer in all of its variants
    cases: Whole
    runs: Whole
    state: State
    cases_needed: Whole | None = None  # that would show an effect of this size; None: too many


@dataclass(frozen=True, kw_only=True)
class StudyTotals:
    """What a study took."""

    trials: Whole = 0
    errored: Whole = 0  # trials without an answer
    error: str = ""  # the most frequent reason
    cost: Amount | None = None

    @property
    def spent(self) -> str:
        """``480 trials, 3 without an answer, $1.20``."""
        words = [counted(self.trials, "trial")]
        words += [f"{self.errored:,} without an answer"] if self.errored else []
        return ", ".join([*words, *([dollars(self.cost)] if self.cost else [])])


def loss_standing(change: Lift | None, margin: float = MARGIN) -> LossStanding:
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
    standing = loss_standing(change, margin)
    if change is None:
        return "not known: not measured"
    if standing == "loses":
        bounds = span(-change.high, -change.low, unsigned_points)
        return f"loses {unsigned_points(-change.lift)} points ({bounds})"
    bounds = f"({span(change.low, change.high)})"
    if standing == "no loss shown":
        return f"no loss shown {bounds}"
    hint = f": about {cases:,} cases would tell" if cases else ""
    return f"not known {bounds}{hint}"
