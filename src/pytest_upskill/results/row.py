"""A skill on a model: what `--skill-json` has in ``summary``, and what each line of the
history is.

A row is a nested value. The numbers that everybody asks for also have flat names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, PlainSerializer, computed_field

from .._util import grouped
from .._util.json_forms import Number, Share, Whole
from .._util.texts import counted, one_line, plural
from ..settings import Score
from ..stats import Interval, Lift, wilson
from ..trials.arm import BASELINE, SKILL
from ..trials.plan import Count, CountSum
from ..trials.subject import CHAT, WithPair
from .activation import Activation
from .arm_times import AskedTimes
from .causes import budget_words
from .comparison import AmountName, CaseResult, Cases, Comparison
from .signals import SIGNALS, Signal

# helps, hurts: the lift is shown. cheaper: it passes as often, at lower cost. no
# effect: a lift of 20 points is ruled out, and so is such a loss. not needed: likewise,
# and models pass without it. nothing measured: half of an arm's answers are missing or
# cut off.
Word = Literal[
    "helps",
    "hurts",
    "cheaper",
    "no effect",
    "not needed",
    "unclear",
    "incomplete",
    "nothing measured",
]
SELECTED_BY_OUTCOME: Final = "only cases that failed the last time"
_NO_RUNS: Final = Count(0, 0)


def _check_interval(interval: Interval) -> Interval:
    if not all(-1 <= number <= 1 for number in interval):
        raise ValueError("must be numbers from -1 to 1")
    return interval


IntervalValue = Annotated[
    Interval,
    AfterValidator(_check_interval),
    PlainSerializer(Interval._asdict, return_type=dict[str, float]),
]


@dataclass(frozen=True)
class SampleShare:
    """A share of queries: a mean over queries of the share of runs, with its
    interval.
    """

    rate: Share
    interval: IntervalValue
    queries: int  # those that ask the same count once


@dataclass(frozen=True)
class QueryShare(SampleShare):
    opened: int  # queries that opened the skill, by the threshold


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """The answers with the skill, or without it, of a case or of all cases.

    Rates and amounts are over complete runs only, those with an answer in every arm:
    means over runs, then over cases. Those of amounts are geometric over cases, so that
    they agree with the changes. The counts are over every record. None is not known.
    """

    rate: Number | None = None
    score: Number | None = None
    tokens: Number | None = None
    seconds: Number | None = None
    cost: Number | None = None  # USD
    turns: Number | None = None
    tool_calls: Number | None = None
    samples: Whole = 0
    checks_passed: Whole = 0
    checks_total: Whole = 0
    asked: Whole = 0  # trials, those without an answer too
    errored: Whole = 0
    passed: Whole = 0
    cut_off: Whole = 0  # failed, at a limit or refused
    retries: Whole = 0  # questions that were asked again after errors
    count: CountSum = _NO_RUNS  # passes of complete runs

    @property
    def interval(self) -> Interval | None:
        """Wilson's interval of the pass rate."""
        if self.rate is None or not self.samples:
            return None
        return wilson(self.rate, self.samples)

    @property
    def is_hardly_answered(self) -> bool:
        """Whether half or more of its answers are missing or cut off."""
        return 2 * (self.errored + self.cut_off) >= self.asked > 0

    def scored(self, score: Score) -> float | None:
        """The pass rate, or the share of checks."""
        return self.rate if score == "pass" else self.score

    def amount(self, name: AmountName) -> float | None:
        amount: float | None = getattr(self, name)
        return amount


NOT_ASKED: Final = ArmSummary()


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """A case on a model that has a complete run."""

    case: str
    runs: int  # complete ones
    arms: Mapping[str, ArmSummary]
    sample: str = ""  # the same for all cases that a lift counts as one
    question: str = ""  # the same for all cases that ask the same
    signal: Signal | None = None  # None without a baseline
    signal_shown: bool = False

    def arm(self, name: str) -> ArmSummary:
        return self.arms.get(name, NOT_ASKED)


@dataclass(frozen=True, slots=True)
class Saving:
    """The same work for less: how much less of an amount, while passing is the same."""

    measure: Literal["cost", "tokens"]
    change: Number
    low: Number
    high: Number
    margin: Share  # a larger loss of passing is ruled out


@dataclass(frozen=True)
class SinceAccepted:
    """The cases that have an accepted result, then and now, in means over cases."""

    rate: Number  # that was accepted
    now: Number
    date: str
    worse: Whole  # cases that regressed

    @property
    def change(self) -> float:
        return self.now - self.rate

    @property
    def fall(self) -> str:
        """``67 → 17``; or ``in 1 case``, if others rose. Empty unless that is shown."""
        if not self.worse:
            return ""
        before = round(100 * self.rate)
        now = round(100 * self.now)
        if now < before:
            return f"{before} → {now}"
        return f"in {counted(self.worse, 'case')}"

    @property
    def words(self) -> str:
        """``fell 67 → 17 since 2026-11-01``."""
        return f"fell {self.fall} since {self.date}" if self.fall else ""


@dataclass(frozen=True)
class Row(WithPair):
    """Rates are 0–1, costs in USD; None means not known."""

    skill: str
    model: str
    model_id: str = ""
    agent: str = CHAT
    agent_version: str = ""
    score: Score = "pass"  # what the lift compares
    cases: Whole = 0
    runs: Whole = 0  # the most that a case has
    samples: Whole = 0  # cases of a group, or that ask the same, count once
    # Of the skill; -k or --lf may have selected fewer. 0 is not known
    all_cases: Whole = 0
    interrupted: bool = False  # the run was stopped before its end
    skill_digest: str = ""
    against: str | None = None  # the git ref of the arm ``previous``

    arms: Mapping[str, ArmSummary] = field(default_factory=dict)
    # The skill compared with each other arm; none while incomplete
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    verdict: Word | None = None
    sentence: str = ""
    saving: Saving | None = None
    signals: Mapping[Signal, Whole] = field(default_factory=dict)
    detectable_lift: Number | None = None  # that as many such cases show
    cases_needed: Whole | None = None  # by a new run, to show such a lift

    errored: Whole = 0  # answers that are missing
    not_run: Whole = 0  # cases without records
    # Cases that a budget kept from being asked. That does not depend on how they would
    # have ended, so they are left out as if they were not selected; but no gate passes.
    over_budget: Whole = 0
    not_asked: Whole = 0  # trials that a budget kept from being asked
    # What the lift can be, whatever the missing answers would be
    possible_lift: IntervalValue | None = None
    asked: AskedTimes | None = None

    activation: Activation | None = None  # of an agent
    accepted: SinceAccepted | None = None
    recall: QueryShare | None = None
    false_alarms: QueryShare | None = None
    by_case: Annotated[tuple[CaseSummary, ...], Field(exclude=True)] = ()
    # Whether the cases were selected by how they ended the last time
    by_outcome: Annotated[bool, Field(exclude=True)] = False

    @computed_field
    @property
    def baseline_rate(self) -> float | None:
        return self.arm(BASELINE).rate

    @computed_field
    @property
    def skill_rate(self) -> float | None:
        return self.arm(SKILL).rate

    @property
    def _lift(self) -> Lift | None:
        over = self.over(BASELINE)
        return over.lift if over else None

    @computed_field
    @property
    def lift(self) -> float | None:
        """Of what ``score`` says; None while answers are missing."""
        return self._lift.lift if self._lift else None

    @computed_field
    @property
    def lift_low(self) -> float | None:
        return self._lift.low if self._lift else None

    @computed_field
    @property
    def lift_high(self) -> float | None:
        return self._lift.high if self._lift else None

    @computed_field
    @property
    def p_value(self) -> float | None:
        return self._lift.p_value if self._lift else None

    @computed_field
    @property
    def baseline_tokens(self) -> float | None:
        return self.arm(BASELINE).tokens

    @computed_field
    @property
    def skill_tokens(self) -> float | None:
        return self.arm(SKILL).tokens

    @computed_field
    @property
    def token_change(self) -> float | None:
        """A share, as all changes of amounts are."""
        over = self.over(BASELINE)
        return over.tokens.change if over and over.tokens else None

    @computed_field
    @property
    def baseline_cost(self) -> float | None:
        return self.arm(BASELINE).cost

    @computed_field
    @property
    def skill_cost(self) -> float | None:
        return self.arm(SKILL).cost

    @computed_field
    @property
    def checks_passed(self) -> int:
        return self.arm(SKILL).checks_passed

    @computed_field
    @property
    def checks_total(self) -> int:
        return self.arm(SKILL).checks_total

    def arm(self, name: str) -> ArmSummary:
        """The numbers of an arm; none are known of one that was not asked."""
        return self.arms.get(name, NOT_ASKED)

    def over(self, arm: str) -> Comparison | None:
        """The skill compared with another arm."""
        return self.comparisons.get(arm)

    def scored(self, arm: str) -> float | None:
        """The chosen score: the pass rate, or the share of checks passed."""
        return self.arm(arm).scored(self.score)

    def case_results(self, arm: str) -> Cases:
        """The results of each case in an arm, where they are known."""
        results = {}
        for case in self.by_case:
            summary = case.arm(arm)
            score = summary.scored(self.score)
            if score is not None:
                results[case.case] = CaseResult(
                    score=score,
                    amounts={
                        "tokens": summary.tokens,
                        "cost": summary.cost,
                        "turns": summary.turns,
                        "seconds": summary.seconds,
                    },
                    sample=case.sample or case.case,
                )
        return results

    @property
    def subset(self) -> bool:
        """Whether -k, --lf and the like left out cases."""
        return self.cases < self.all_cases

    @property
    def whole(self) -> bool:
        return not self.subset and not self.interrupted

    @property
    def incomplete(self) -> bool:
        """Whether answers are missing, or can't be compared: the others don't tell."""
        if self.errored or self.not_run or self.why_withheld:
            return True
        return not self.by_case

    @property
    def is_apart(self) -> bool:
        """Whether the arms were asked too far apart to be compared."""
        return self.asked is not None and self.asked.is_apart

    @property
    def why_withheld(self) -> str:
        """Why the arms can't be compared, with their dates; empty if they can.

        Cases that failed with the skill did no better than the baseline, whatever the
        skill does.
        """
        if self.by_outcome:
            return SELECTED_BY_OUTCOME
        if self.asked and self.asked.is_apart:
            return self.asked.apart_words
        return ""

    @property
    def budget_words(self) -> str:
        """``the budget ended the run after 6 of 10 cases``; empty if it did not."""
        if not self.not_asked:
            return ""
        return budget_words(self.cases, self.over_budget)


def count_signals(cases: Iterable[CaseSummary]) -> dict[Signal, int]:
    """How many cases have each signal; empty without a baseline."""
    counts = dict.fromkeys(SIGNALS, 0)
    for case in cases:
        if case.signal:
            counts[case.signal] += 1
    return counts if any(counts.values()) else {}


def cases_by_sample(cases: Iterable[CaseSummary]) -> list[list[CaseSummary]]:
    """The cases of each sample; one whose sample is unknown is alone."""
    return list(grouped(cases, lambda case: case.sample or case.case).values())


def missing_words(row: Row) -> str:
    """``2 answers missing and 1 case not run``."""
    parts = []
    if row.errored:
        parts.append(f"{counted(row.errored, 'answer')} missing")
    if row.not_run:
        parts.append(f"{counted(row.not_run, 'case')} not run")
    if row.why_withheld:
        parts.append(row.why_withheld)
    return " and ".join(parts) or row.budget_words or "no answers"


def since_words(row: Row, since: Comparison) -> str:
    """``since main: worse, -20 points (…)``."""
    ref = one_line(row.against or "", 60)
    return f"since {ref}: {since.words}"


def share_words(share: Share | None) -> str:
    return "unknown" if share is None else f"{share:.0%}"


def repeat_words(skill: str, cases: int, groups: int, noun: str = "case") -> str:
    """``gate: 12 cases in 4 groups: …``."""
    return (
        f"{one_line(skill, 100)}: {counted(cases, noun)} in {counted(groups, 'group')}:"
        f" {plural(noun)} of a group, or that ask the same, count as one"
    )
