"""How a skill does on a model: in each arm, over all cases and by case."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal

from .._util.texts import counted, one_line
from ..settings import Score
from ..stats import Interval, wilson
from ..trials.subject import CHAT, Arm, WithPair
from .activation import Activation


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm of a skill on a model, or of one of its cases.

    ``rate`` and ``score`` (0–1) are means over samples; ``tokens``, ``seconds``, ``cost`` (USD),
    ``turns`` and ``tool_calls`` of an agent are means of one answer. All of them are over complete
    runs only, those with an answer in every arm. The counts are over every record. None means not
    known.
    """

    samples: int = 0  # with a complete run: cases, but those that ask the same count once
    rate: float | None = None
    score: float | None = None
    tokens: float | None = None
    seconds: float | None = None
    cost: float | None = None
    checks_passed: int = 0
    checks_total: int = 0
    graded: int = 0  # answers with checks
    uneven: bool = False  # whether some of these have more checks than others
    errored: int = 0
    score_variance: float | None = None  # of the runs of one case
    turns: float | None = None
    tool_calls: float | None = None

    @property
    def interval(self) -> Interval | None:
        """Wilson's interval of the pass rate."""
        return None if self.rate is None or not self.samples else wilson(self.rate, self.samples)

    def scored(self, score: Score) -> float | None:
        """The pass rate, or the share of checks."""
        return self.rate if score == "pass" else self.score


_NOT_ASKED: Final = ArmSummary()

PairedNumber = Literal["rate", "score", "tokens", "seconds", "cost"]
_NUMBERS: Final[Mapping[Score, PairedNumber]] = {"pass": "rate", "checks": "score"}


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """A case on a model that has a complete run."""

    case: str
    runs: int  # complete ones
    arms: Mapping[Arm, ArmSummary]
    sample: str = ""  # the same for all cases that ask the same

    def arm(self, arm: Arm) -> ArmSummary:
        return self.arms.get(arm, _NOT_ASKED)


@dataclass(frozen=True)
class Summary(WithPair):
    """How a skill does on a model."""

    skill: str
    model: str
    model_id: str
    cases: int
    runs: int  # the most that a case has
    arms: Mapping[Arm, ArmSummary]  # those with records
    not_run: int = 0  # cases without records
    by_case: tuple[CaseSummary, ...] = ()
    against: str | None = None  # the git ref of the arm ``previous``
    most_runs: int | None = None  # the upper limit of frugal runs
    score: Score = "pass"  # what the lift is of
    agent: str = CHAT
    agent_version: str = ""
    activation: Activation | None = None  # of an agent

    def arm(self, arm: Arm) -> ArmSummary:
        """The numbers of an arm; none are known of one that was not asked."""
        return self.arms.get(arm, _NOT_ASKED)

    @property
    def errored(self) -> int:
        return sum(arm.errored for arm in self.arms.values())

    @property
    def lift(self) -> float | None:
        """The score with the skill less that of the baseline."""
        skill, baseline = self.scored("skill"), self.scored("baseline")
        return None if skill is None or baseline is None else skill - baseline

    def scored(self, arm: Arm) -> float | None:
        """What the lift is of: the pass rate, or the share of checks."""
        return self.arm(arm).scored(self.score)

    @property
    def token_change(self) -> float | None:
        """The growth in tokens over the baseline, as a share."""
        skill, baseline = self.arm("skill").tokens, self.arm("baseline").tokens
        return skill / baseline - 1 if skill and baseline else None

    @property
    def samples(self) -> int:
        """How many questions the cases ask: those with the same one are one sample."""
        return len(cases_by_sample([(case.case, case.sample) for case in self.by_case]))

    def pairs(
        self, number: PairedNumber, over: Arm, of: Arm = "skill"
    ) -> list[tuple[float, float]]:
        """A number of each sample in both arms, ``over`` first; none if any is unknown."""
        known = self._case_pairs(number, over, of)
        groups = cases_by_sample([(case, self.by_case[at].sample) for at, case in enumerate(known)])
        return [
            (fmean(known[case][0] for case in group), fmean(known[case][1] for case in group))
            for group in groups
        ]

    def scores(
        self, over: Arm, of: Arm = "skill", score: Score | None = None
    ) -> list[tuple[float, float]]:
        """`pairs` of pass rates or of shares of checks; by default of what the lift is of."""
        return self.pairs(_NUMBERS[score or self.score], over, of)

    def case_scores(self, over: Arm, of: Arm = "skill") -> dict[str, tuple[float, float]]:
        """The same by case."""
        return self._case_pairs(_NUMBERS[self.score], over, of)

    def _case_pairs(
        self, number: PairedNumber, over: Arm, of: Arm
    ) -> dict[str, tuple[float, float]]:
        pairs: dict[str, tuple[float, float]] = {}
        for case in self.by_case:
            one, two = getattr(case.arm(over), number), getattr(case.arm(of), number)
            if one is None or two is None:
                return {}
            pairs[case.case] = (one, two)
        return pairs

    def chance(self, over: Arm, of: Arm = "skill") -> float | None:
        """The variance of one run's difference, for `spreads`; None if the rates tell it."""
        arms = [[case.arm(arm).score_variance for arm in (over, of)] for case in self.by_case]
        known = [sum(both) for pair in arms if len(both := [v for v in pair if v is not None]) == 2]
        return fmean(known) if known and self.score == "checks" else None


def case_words(rows: Sequence[Summary]) -> str:
    """How many cases a skill has, and how many questions if some of them ask the same."""
    cases, most = counted(max(row.cases for row in rows), "case"), max(rows, key=_repeated)
    return f"{cases} ({counted(most.samples, 'question')})" if _repeated(most) else cases


def repeat_notes(rows: Sequence[Summary]) -> list[str]:
    """What cases that ask the same mean for the numbers, once for each skill."""
    found = {row.skill: row for row in rows if _repeated(row)}
    return [
        f"{one_line(skill, 100)}: {counted(len(row.by_case), 'case')} ask "
        f"{counted(row.samples, 'question')}: cases that ask the same count as one."
        for skill, row in found.items()
    ]


def _repeated(row: Summary) -> int:
    return len(row.by_case) - row.samples


def cases_by_sample(cases: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The cases of each sample, given with their samples; an unknown one is that case alone."""
    groups: dict[tuple[str, str], list[str]] = {}
    for case, sample in cases:
        groups.setdefault((sample, "" if sample else case), []).append(case)
    return list(groups.values())
