"""Records → one summary per skill and model: each arm, and comparisons of two arms."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import fsum
from operator import mul
from statistics import fmean, variance
from typing import Final, Literal, NamedTuple

from .._util.texts import counted, one_line, points, times_as_much
from .._util.values import frozen
from ..settings import Score
from ..stats import (
    LEVEL,
    Change,
    Interval,
    Lift,
    holm,
    paired_lift,
    paired_ratio,
    rest_after,
    weights,
    wilson,
)
from ..trials.records import Record, agents_in
from ..trials.subject import CHAT
from ..trials.trial import ARMS, Arm
from .activation import Activation, activation_of

_ABOUT_THE_SAME: Final = 0.02
_SCORES: Final[tuple[Score, ...]] = ("pass", "checks")


@frozen
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
_NO_SAMPLES: Final[Mapping[str, str]] = {}


@frozen
class CaseSummary:
    """A case on a model that has a complete run."""

    case: str
    runs: int  # complete ones
    arms: Mapping[Arm, ArmSummary]
    sample: str = ""  # the same for all cases that ask the same

    def arm(self, arm: Arm) -> ArmSummary:
        return self.arms.get(arm, _NOT_ASKED)


@frozen
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
    score: Score = "pass"  # what the lift is of
    agent: str = CHAT  # ``model`` is then the label of the agent on its model
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
        return len(_by_sample([(case.case, case.sample) for case in self.by_case]))

    def pairs(
        self, number: PairedNumber, over: Arm, of: Arm = "skill"
    ) -> list[tuple[float, float]]:
        """A number of each sample in both arms, ``over`` first; none if any is unknown."""
        known = self._case_pairs(number, over, of)
        groups = _by_sample([(case, self.by_case[at].sample) for at, case in enumerate(known)])
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


@frozen
class Comparison:
    """One arm compared with another on a model, paired by case."""

    of: Arm
    over: Arm
    score: Score  # what the verdict is on
    # p-values are adjusted for several models; intervals include 0 unless they are evidence.
    lifts: Mapping[Score, Lift]
    tokens: Change | None

    @property
    def lift(self) -> Lift:
        return self.lifts[self.score]

    @property
    def word(self) -> Literal["better", "worse", "no change shown"]:
        if not self.lift.shown:
            return "no change shown"
        return "better" if self.lift.lift > 0 else "worse"

    @property
    def words(self) -> str:
        """The same in words: verdict, points and tokens."""
        tokens = [token_words(self.tokens)] if self.tokens else []
        return ", ".join([self.word, points_words(self.lift, self.unit), *tokens])

    @property
    def unit(self) -> str:
        """What the points are of, unless that goes without saying."""
        return _UNITS[self.score] if self.other or self.score != "pass" else ""

    @property
    def other(self) -> Score | None:
        """What the verdict is not on, if its lift reads differently."""
        own = points_words(self.lift)
        return next((one for one, lift in self.lifts.items() if points_words(lift) != own), None)

    @property
    def lift_words(self) -> str:
        """The lift, and the other one if it differs."""
        words = points_words(self.lift, self.unit)
        return f"{words}, {other}" if (other := self.other_words) else words

    @property
    def other_words(self) -> str:
        """``+20 of pass rate (-12 to +52)``, if that is not what the verdict is on and differs."""
        if self.other is None:
            return ""
        return points_words(self.lifts[self.other], _UNITS[self.other]).replace(" points", "", 1)


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


SCORE_WORDS: Final[Mapping[Score, str]] = {
    "pass": "pass rate of cases",
    "checks": "share of checks passed",
}
_UNITS: Final[Mapping[Score, str]] = {"pass": " of pass rate", "checks": " of checks"}


def unit_of(score: Score) -> str:
    """What points of a lift are of; those of pass rates are just points."""
    return "" if score == "pass" else _UNITS[score]


def compare_arms(
    rows: Sequence[Summary], over: Arm, of: Arm = "skill", level: float = LEVEL
) -> list[Comparison | None]:
    """One for each model of a skill, adjusted for several models; None without pairs."""
    by_score = {score: _lifts(rows, score, over, of, level) for score in _SCORES}
    found: list[Comparison | None] = []
    for number, row in enumerate(rows):
        lifts = {score: lift for score in _SCORES if (lift := by_score[score][number])}
        tokens = row.pairs("tokens", over, of)
        change = paired_ratio(tokens, level) if tokens else None
        known = row.score in lifts
        found.append(Comparison(of, over, row.score, lifts, change) if known else None)
    return found


def _lifts(
    rows: Sequence[Summary], score: Score, over: Arm, of: Arm, level: float
) -> list[Lift | None]:
    """Of each model, adjusted for several of them."""
    pairs = [row.scores(over, of, score) for row in rows]
    lifts = [
        paired_lift(own, row.runs, level) if own else None
        for row, own in zip(rows, pairs, strict=True)
    ]
    adjusted = iter(holm([lift.p_value for lift in lifts if lift]))
    return [lift and _adjusted(lift, next(adjusted), level) for lift in lifts]


def _adjusted(lift: Lift, p_value: float, level: float) -> Lift:
    if p_value >= 1 - level:  # no evidence, as one of several models
        lift = lift._replace(low=min(lift.low, 0.0), high=max(lift.high, 0.0))
    return lift._replace(p_value=p_value)


def points_words(lift: Lift, unit: str = "") -> str:
    return f"{points(lift.lift)} points{unit} ({points(lift.low)} to {points(lift.high)})"


def token_words(change: Change) -> str:
    if abs(change.change) < _ABOUT_THE_SAME:
        return "the same number of tokens"
    if times := times_as_much(change.change):
        return f"{times} times the tokens"
    return f"{abs(change.change):.0%} {'more' if change.change > 0 else 'fewer'} tokens"


Run = Mapping[Arm, Record]  # of a case


class _Runs(NamedTuple):
    """The complete runs of a case, and what each counts."""

    runs: Sequence[Run]
    weights: Sequence[float]


def kinds_of(runs: Sequence[Run], score: Score) -> list[Hashable]:
    """How each run went: what the lift is of, in all arms."""
    return [
        tuple((arm, _value(record, score)) for arm, record in sorted(run.items())) for run in runs
    ]


def alike(records: Sequence[Record], score: Score) -> bool:
    """Whether all runs of a case went the same way."""
    runs = _complete_runs(records, {record.arm for record in records})
    return len(set(kinds_of(runs, score))) == 1


def _value(record: Record, score: Score) -> float | None:
    return float(record.outcome == "passed") if score == "pass" else record.score


def summarize(
    records: Iterable[Record],
    skill: str,
    model: str,
    *,
    model_id: str,
    not_run: int,
    against: str | None = None,
    looks: tuple[int, ...] = (),
    score: Score = "pass",
    samples: Mapping[str, str] = _NO_SAMPLES,
) -> Summary:
    """Sum up the records of one skill on one model.

    ``looks`` are those of frugal runs; ``samples`` are by case, as in `PlannedCase`.
    """
    own = [record for record in records if (record.skill, record.model) == (skill, model)]
    by_case: dict[str, list[Record]] = {}
    for record in own:
        by_case.setdefault(record.case, []).append(record)
    arms: set[Arm] = {"skill", *(record.arm for record in own)}
    rest = rest_after(looks) if looks else None
    found = {case: _complete_runs(known, arms) for case, known in by_case.items()}
    complete = {
        case: _Runs(runs, weights(kinds_of(runs, score), rest))
        for case, runs in found.items()
        if runs
    }
    groups = _by_sample([(case, samples.get(case, "")) for case in complete])
    by_sample = [[complete[case] for case in group] for group in groups]
    agent = next((record.agent for record in own), CHAT)
    return Summary(
        skill=skill,
        model=model,
        model_id=model_id,
        cases=len(by_case),
        runs=max((record.run for record in own), default=0),
        arms=_arms(own, by_sample),
        not_run=not_run,
        by_case=tuple(
            CaseSummary(case, len(runs.runs), _arms(by_case[case], [[runs]]), samples.get(case, ""))
            for case, runs in complete.items()
        ),
        against=against,
        most_runs=looks[-1] if looks else None,
        score=score,
        agent=agent,
        agent_version=agents_in(own).get(agent, ""),
        activation=activation_of([[one.runs for one in cases] for cases in by_sample], score),
    )


def _by_sample(cases: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The cases of each sample, given with their samples; an unknown one is that case alone."""
    groups: dict[tuple[str, str], list[str]] = {}
    for case, sample in cases:
        groups.setdefault((sample, "" if sample else case), []).append(case)
    return list(groups.values())


def _complete_runs(records: Sequence[Record], arms: set[Arm]) -> list[Run]:
    """The runs of a case with an answer in every arm."""
    runs: dict[int, dict[Arm, Record]] = {}
    for record in records:
        if record.outcome != "errored":
            runs.setdefault(record.run, {})[record.arm] = record
    return [run for _, run in sorted(runs.items()) if run.keys() == arms]


def _arms(records: Sequence[Record], complete: Sequence[Sequence[_Runs]]) -> dict[Arm, ArmSummary]:
    """Each arm that has records; ``complete`` are the complete runs of each case of each sample."""
    found: dict[Arm, ArmSummary] = {}
    for arm in ARMS:
        own = [record for record in records if record.arm == arm]
        if own:
            samples = [
                [([run[arm] for run in one.runs], one.weights) for one in cases]
                for cases in complete
            ]
            found[arm] = _arm(own, samples)
    return found


_Weighted = tuple[Sequence[Record], Sequence[float]]  # the runs of a case, and what each counts


def _arm(records: Sequence[Record], complete: Sequence[Sequence[_Weighted]]) -> ArmSummary:
    cases = [runs for sample in complete for runs, _ in sample]
    answers = [record for runs in cases for record in runs]
    grades = [grade for record in records for grade in record.checks]
    scores = [r.score for r in answers if r.score is not None] if len(cases) == 1 else []
    return ArmSummary(
        samples=len(complete),
        rate=_mean_over_samples(complete, lambda record: _value(record, "pass")),
        score=_mean_over_samples(complete, lambda record: _value(record, "checks")),
        tokens=_mean([record.tokens for record in answers]),
        seconds=_mean([record.seconds for record in answers]),
        cost=_mean([record.cost for record in answers]),
        checks_passed=sum(grade.passed for grade in grades),
        checks_total=len(grades),
        graded=sum(bool(record.checks) for record in records),
        uneven=len({len(record.checks) for record in records if record.checks}) > 1,
        errored=sum(record.outcome == "errored" for record in records),
        score_variance=variance(scores) if len(scores) > 1 else None,
        turns=_mean([r.activity.turns if r.activity else None for r in answers]),
        tool_calls=_mean([r.activity.tool_calls if r.activity else None for r in answers]),
    )


def checks_of(records: Iterable[Record], arm: Arm) -> tuple[float, float] | None:
    """Checks passed, and all checks, of an answer on average; None if there are none."""
    graded = [record.checks for record in records if record.checks and record.arm == arm]
    if not graded:
        return None
    passed = fmean(sum(grade.passed for grade in checks) for checks in graded)
    return passed, fmean(map(len, graded))


def _mean_over_samples(
    samples: Sequence[Sequence[_Weighted]], value: Callable[[Record], float | None]
) -> float | None:
    """Mean over samples of the mean over cases of the mean over runs.

    The case is the sample, not the run; cases that ask the same are one sample.
    """
    return _mean(
        [
            _mean([_weighted([value(record) for record in runs], own) for runs, own in cases])
            for cases in samples
        ]
    )


def _weighted(values: Sequence[float | None], own: Sequence[float]) -> float | None:
    if len(set(own)) == 1:  # exactly the mean, without a rounding error
        return _mean(values)
    known = [value for value in values if value is not None]
    return fsum(map(mul, known, own)) if len(known) == len(values) else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
