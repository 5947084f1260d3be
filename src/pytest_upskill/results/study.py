"""Studies: arms and contrasts with a title, and what follows from them in sentences."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .._util.texts import counted, dollars
from ..trials.number_types import Amount, Flag, Share, Whole
from ..trials.subject import WithSubject
from .contrasts import Contrast


@dataclass(frozen=True)
class StudyArm:
    """What came of an arm, over all of its cases."""

    name: str
    rate: Share | None = None  # a mean over cases; None without an answer
    tokens: Amount | None = None  # of a trial: a mean over cases
    trials: Whole = 0  # that tell which skills were opened
    opened: Mapping[str, Whole] = field(default_factory=dict)  # in how many of them, by skill
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
    trials: Whole = 0
    errored: Whole = 0  # trials without an answer
    error: str = ""  # the most frequent reason
    cost: Amount | None = None  # of new answers
    interrupted: Flag = False  # by Ctrl-C
    failure: str = ""  # why it fails, with all answers

    @property
    def complete(self) -> bool:
        return not self.interrupted and not any(c.word == "incomplete" for c in self.contrasts)

    @property
    def problem(self) -> str:
        """``loop/haiku: 2 pairs hurt``; empty if it does not fail."""
        reason = self.failure or ("" if self.complete else "answers are missing")
        return f"{self.label}: {reason}" if reason else ""

    def arm(self, name: str) -> StudyArm:
        return next((arm for arm in self.arms if arm.name == name), StudyArm(name))

    def contrast(self, name: str) -> Contrast:
        return next(contrast for contrast in self.contrasts if contrast.name == name)

    @property
    def size(self) -> str:
        """``24 cases × 2 to 8 runs``; empty if nothing was measured."""
        runs = sorted({contrast.runs for contrast in self.contrasts if contrast.runs})
        if not runs:
            return ""
        cases = max(contrast.cases for contrast in self.contrasts)
        fewest = f"{runs[0]} to " if len(runs) > 1 else ""
        return f"{counted(cases, 'case')} × {fewest}{counted(runs[-1], 'run')}"

    @property
    def spent(self) -> str:
        """``480 trials, 3 without an answer, $1.20``."""
        words = [counted(self.trials, "trial")]
        words += [f"{self.errored:,} without an answer"] if self.errored else []
        return ", ".join([*words, *([dollars(self.cost)] if self.cost else [])])
