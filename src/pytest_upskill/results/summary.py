"""Records → one summary per skill and model: each arm, and comparisons of two arms."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal

from .._util.texts import points, times_as_much
from ..stats import LEVEL, Change, Interval, Lift, holm, paired_lift, paired_ratio, wilson
from ..trials.records import Record
from ..trials.trial import ARMS, Arm

_ABOUT_THE_SAME: Final = 0.02


@dataclass(frozen=True)
class ArmSummary:
    """One arm of a skill on a model, or of one of its cases.

    ``rate`` and ``score`` (0–1) are means over cases; ``tokens``, ``seconds`` and ``cost`` (USD)
    are means of one answer. All of them are over complete runs only, those with an answer in every
    arm. The counts are over every record. None means not known.
    """

    cases: int = 0  # with a complete run
    rate: float | None = None
    score: float | None = None
    tokens: float | None = None
    seconds: float | None = None
    cost: float | None = None
    checks_passed: int = 0
    checks_total: int = 0
    graded: int = 0  # answers with checks
    errored: int = 0

    @property
    def interval(self) -> Interval | None:
        """Wilson's interval of the pass rate."""
        return None if self.rate is None or not self.cases else wilson(self.rate, self.cases)


_NOT_ASKED: Final = ArmSummary()

PairedNumber = Literal["rate", "score", "tokens", "seconds", "cost"]


@dataclass(frozen=True)
class CaseSummary:
    """A case on a model that has a complete run."""

    case: str
    runs: int  # complete ones
    arms: Mapping[Arm, ArmSummary]

    def arm(self, arm: Arm) -> ArmSummary:
        return self.arms.get(arm, _NOT_ASKED)


@dataclass(frozen=True)
class Summary:
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

    def arm(self, arm: Arm) -> ArmSummary:
        """The numbers of an arm; none are known of one that was not asked."""
        return self.arms.get(arm, _NOT_ASKED)

    @property
    def errored(self) -> int:
        return sum(arm.errored for arm in self.arms.values())

    @property
    def lift(self) -> float | None:
        """The pass rate with the skill less that of the baseline."""
        skill, baseline = self.arm("skill").rate, self.arm("baseline").rate
        return None if skill is None or baseline is None else skill - baseline

    @property
    def token_change(self) -> float | None:
        """The growth in tokens over the baseline, as a share."""
        skill, baseline = self.arm("skill").tokens, self.arm("baseline").tokens
        return skill / baseline - 1 if skill and baseline else None

    def pairs(
        self, number: PairedNumber, over: Arm, of: Arm = "skill"
    ) -> list[tuple[float, float]]:
        """A number of each case in both arms, ``over`` first; none if any is unknown."""
        pairs: list[tuple[float, float]] = []
        for case in self.by_case:
            one, two = getattr(case.arm(over), number), getattr(case.arm(of), number)
            if one is None or two is None:
                return []
            pairs.append((one, two))
        return pairs


@dataclass(frozen=True)
class Comparison:
    """One arm compared with another on a model, paired by case."""

    of: Arm
    over: Arm
    lift: Lift  # of pass rates; its interval includes 0 unless the adjusted p-value is evidence
    p_value: float  # adjusted for several models
    score: Lift | None
    tokens: Change | None

    @property
    def word(self) -> Literal["better", "worse", "no change shown"]:
        if not self.lift.shown:
            return "no change shown"
        return "better" if self.lift.lift > 0 else "worse"

    @property
    def words(self) -> str:
        """The same in words: verdict, points and tokens."""
        tokens = [token_words(self.tokens)] if self.tokens else []
        return ", ".join([self.word, points_words(self.lift), *tokens])


def compare_arms(
    rows: Sequence[Summary], over: Arm, of: Arm = "skill", level: float = LEVEL
) -> list[Comparison | None]:
    """One for each model of a skill, adjusted for several models; None without pairs."""
    pairs = [row.pairs("rate", over, of) for row in rows]
    lifts = [
        paired_lift(own, row.runs, level) if own else None
        for row, own in zip(rows, pairs, strict=True)
    ]
    adjusted = iter(holm([lift.p_value for lift in lifts if lift]))
    return [
        _comparison(row, of, over, lift, next(adjusted), level) if lift else None
        for row, lift in zip(rows, lifts, strict=True)
    ]


def _comparison(
    row: Summary, of: Arm, over: Arm, lift: Lift, p_value: float, level: float
) -> Comparison:
    if p_value >= 1 - level:  # no evidence, as one of several models
        lift = lift._replace(low=min(lift.low, 0.0), high=max(lift.high, 0.0))
    scores, tokens = row.pairs("score", over, of), row.pairs("tokens", over, of)
    return Comparison(
        of,
        over,
        lift,
        p_value,
        paired_lift(scores, row.runs, level) if scores else None,
        paired_ratio(tokens, level) if tokens else None,
    )


def points_words(lift: Lift) -> str:
    return f"{points(lift.lift)} points ({points(lift.low)} to {points(lift.high)})"


def token_words(change: Change) -> str:
    if abs(change.change) < _ABOUT_THE_SAME:
        return "the same number of tokens"
    if times := times_as_much(change.change):
        return f"{times} times the tokens"
    return f"{abs(change.change):.0%} {'more' if change.change > 0 else 'fewer'} tokens"


Run = Mapping[Arm, Record]  # of a case


def summarize(
    records: Iterable[Record],
    skill: str,
    model: str,
    *,
    model_id: str,
    not_run: int,
    against: str | None = None,
    most_runs: int | None = None,
) -> Summary:
    """Sum up the records of one skill on one model."""
    own = [record for record in records if (record.skill, record.model) == (skill, model)]
    by_case: dict[str, list[Record]] = {}
    for record in own:
        by_case.setdefault(record.case, []).append(record)
    arms: set[Arm] = {"skill", *(record.arm for record in own)}
    complete = {case: _complete_runs(known, arms) for case, known in by_case.items()}
    complete = {case: runs for case, runs in complete.items() if runs}
    return Summary(
        skill=skill,
        model=model,
        model_id=model_id,
        cases=len(by_case),
        runs=max((record.run for record in own), default=0),
        arms=_arms(own, list(complete.values())),
        not_run=not_run,
        by_case=tuple(
            CaseSummary(case, len(runs), _arms(by_case[case], [runs]))
            for case, runs in complete.items()
        ),
        against=against,
        most_runs=most_runs,
    )


def _complete_runs(records: Sequence[Record], arms: set[Arm]) -> list[Run]:
    """The runs of a case with an answer in every arm."""
    runs: dict[int, dict[Arm, Record]] = {}
    for record in records:
        if record.outcome != "errored":
            runs.setdefault(record.run, {})[record.arm] = record
    return [run for run in runs.values() if run.keys() == arms]


def _arms(records: Sequence[Record], complete: Sequence[Sequence[Run]]) -> dict[Arm, ArmSummary]:
    """Each arm that has records; ``complete`` are the complete runs of each case."""
    found: dict[Arm, ArmSummary] = {}
    for arm in ARMS:
        own = [record for record in records if record.arm == arm]
        if own:
            found[arm] = _arm(own, [[run[arm] for run in runs] for runs in complete])
    return found


def _arm(records: Sequence[Record], complete: Sequence[Sequence[Record]]) -> ArmSummary:
    answers = [record for runs in complete for record in runs]
    grades = [grade for record in records for grade in record.checks]
    return ArmSummary(
        cases=len(complete),
        rate=_mean_over_cases(complete, lambda record: float(record.outcome == "passed")),
        score=_mean_over_cases(complete, lambda record: record.score),
        tokens=_mean([record.tokens for record in answers]),
        seconds=_mean([record.seconds for record in answers]),
        cost=_mean([record.cost for record in answers]),
        checks_passed=sum(grade.passed for grade in grades),
        checks_total=len(grades),
        graded=sum(bool(record.checks) for record in records),
        errored=sum(record.outcome == "errored" for record in records),
    )


def _mean_over_cases(
    cases: Sequence[Sequence[Record]], value: Callable[[Record], float | None]
) -> float | None:
    """Mean over cases of the mean over runs: the case is the sample, not the run."""
    return _mean([_mean([value(record) for record in case]) for case in cases])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
