"""Contrasts: how arms differ over the same cases, in numbers and in words.

A study is arms and contrasts with a title, and what follows from them in sentences.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, PlainSerializer, computed_field

from .._util.json_forms import Amount, Flag, Number, Share, Whole
from .._util.texts import counted, dollars, points, span, unsigned_points
from ..stats import Lift
from ..trials.subject import WithSubject

# A loss of at most this many points does not count, unless someone says so
MARGIN: Final = 0.1

# hurts, helps: the interval excludes 0, adjusted for all contrasts of the study;
# no loss shown: a loss of more than the margin is ruled out; not known:
# neither that nor a change is shown, for want of cases; no change shown: the
# same where there is no margin; incomplete: answers are missing.
ContrastWord = Literal[
    "hurts", "helps", "no loss shown", "no change shown", "not known", "incomplete"
]


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
class Contrast:
    """A difference of arms: the scores of some, less those of others, paired by
    case.
    """

    name: str
    plus: tuple[str, ...]  # names of arms
    minus: tuple[str, ...]
    margin: Share | None = None  # a loss below it does not count
    # What came of it: a mean over cases, adjusted; None if answers are missing
    lift: LiftValue | None = None
    cases: Whole = 0
    # Of a trial, of two arms: a mean over cases, if they are known
    tokens: Number | None = None
    # Its 95 % interval; None: too few cases
    tokens_span: tuple[Number, Number] | None = None

    @computed_field
    @property
    def word(self) -> ContrastWord:
        if self.lift is None:
            return "incomplete"
        if self.lift.shown:
            return "helps" if self.lift.low > 0 else "hurts"
        if self.margin is None:
            return "no change shown"
        return "no loss shown" if is_within(self.lift, self.margin) else "not known"

    @property
    def words(self) -> str:
        """``loses 12 points (3 to 21)``, ``not known (-9 to +9)``."""
        if self.lift is None:
            return "not measured"
        if self.word in ("hurts", "helps"):
            return gain_words(self.lift)
        return f"{self.word} ({span(self.lift.low, self.lift.high)})"


def is_within(change: Lift | None, margin: float) -> bool:
    """Whether a loss of the margin is ruled out; a smaller one may be there,
    or even be shown.
    """
    return change is not None and change.low > -margin


def gain_words(change: Lift) -> str:
    """``loses 12 points (3 to 21)``, of a change that is shown."""
    if change.lift > 0:
        interval = span(change.low, change.high, unsigned_points)
        return f"gains {size_of(change.lift)} ({interval})"
    interval = span(-change.high, -change.low, unsigned_points)
    return f"loses {size_of(-change.lift)} ({interval})"


def size_of(share: float) -> str:
    """``12 points``."""
    number = unsigned_points(share)
    return f"{number} {'point' if number == '1' else 'points'}"


def span_words(lift: Lift, unit: str = "") -> str:
    """``+20 (-12 to +52)``."""
    return f"{points(lift.lift)}{unit} ({span(lift.low, lift.high)})"


def points_words(lift: Lift, unit: str = "") -> str:
    """``+20 points (-12 to +52)``."""
    return span_words(lift, f" points{unit}")


@dataclass(frozen=True)
class StudyArm:
    """What came of an arm, over all of its cases."""

    name: str
    rate: Share | None = None  # a mean over cases; None without an answer
    tokens: Amount | None = None  # of a trial: a mean over cases
    trials: Whole = 0  # that tell which skills were opened
    # In how many of them, by skill
    opened: Mapping[str, Whole] = field(default_factory=dict)
    opened_first: Mapping[str, Whole] = field(default_factory=dict)
    digest: str = ""  # of what is there: the same in two studies if the arm is

    def opened_in(self, skill: str) -> str:
        """``6 of 10``."""
        return f"{self.opened.get(skill, 0):,} of {self.trials:,}"


@dataclass(frozen=True, kw_only=True)
class Study(WithSubject):
    """Contrasts of arms, for an agent on a model, that err in 5 % together."""

    title: str
    legend: str  # what a change is
    agent: str
    model: str
    arms: tuple[StudyArm, ...]
    contrasts: tuple[Contrast, ...]  # as they are to be read
    conclusions: tuple[str, ...] = ()  # sentences; the last one is what to remember
    runs: Whole = 0
    trials: Whole = 0
    errored: Whole = 0  # trials without an answer
    error: str = ""  # the most frequent reason
    cost: Amount | None = None  # of new answers
    interrupted: Flag = False  # by Ctrl-C
    apart: Flag = False  # arms were asked too far apart, and could not be asked again
    failure: str = ""  # why it fails, with all answers

    @property
    def complete(self) -> bool:
        lacks = any(contrast.word == "incomplete" for contrast in self.contrasts)
        return not self.interrupted and not lacks

    @property
    def problem(self) -> str:
        """``loop/haiku: 2 pairs hurt``; empty if it does not fail."""
        reason = self.failure
        if not reason and not self.complete:
            reason = "answers are missing"
            if self.apart:
                reason = "answers are of different days"
        return f"{self.label}: {reason}" if reason else ""

    def arm(self, name: str) -> StudyArm:
        return next((arm for arm in self.arms if arm.name == name), StudyArm(name))

    def contrast(self, name: str) -> Contrast:
        return next(contrast for contrast in self.contrasts if contrast.name == name)

    @property
    def size(self) -> str:
        """``24 cases × 2 runs``; empty if nothing was measured."""
        cases = max((contrast.cases for contrast in self.contrasts), default=0)
        if not cases:
            return ""
        return f"{counted(cases, 'case')} × {counted(self.runs, 'run')}"

    @property
    def spent(self) -> str:
        """``480 trials, 3 without an answer, $1.20``."""
        words = [counted(self.trials, "trial")]
        if self.errored:
            words.append(f"{self.errored:,} without an answer")
        if self.cost:
            words.append(dollars(self.cost))
        return ", ".join(words)
