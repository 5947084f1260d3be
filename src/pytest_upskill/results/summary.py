"""How a skill does on a model: in each arm, over all cases and by case."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import fmean
from typing import Final, Literal, get_args

from .._util import grouped
from .._util.texts import counted, one_line
from ..options import DAY, age_words
from ..settings import Score
from ..stats import Interval, wilson
from ..trials.answer_times import outdated
from ..trials.arm import BASELINE, SKILL
from ..trials.plan import Count, PlannedCase
from ..trials.records import Outcome, Record, agents_in, asked_apart
from ..trials.subject import CHAT, ORACLE, SkillOnSubject, WithPair
from .activation import Activation, activation_of

_NO_RUNS: Final = Count(0, 0)
SELECTED_BY_OUTCOME: Final = "only cases that failed the last time"
BUDGET_ENDED: Final = "the budget ended the run"


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm of a skill on a model, or of one of its cases.

    ``rate`` and ``score`` (0–1) are means over samples; ``tokens``, ``seconds``,
    ``cost`` (USD), ``turns`` and ``tool_calls`` of an agent are means of one answer.
    All of them are over complete runs only, those with an answer in every arm. The
    counts are over every record. None means not known.
    """

    # With a complete run: cases, but those of a group, or that ask the same,
    # count once.
    samples: int = 0
    rate: float | None = None
    score: float | None = None
    tokens: float | None = None
    seconds: float | None = None
    cost: float | None = None
    checks_passed: int = 0
    checks_total: int = 0
    graded: int = 0  # answers with checks
    uneven: bool = False  # whether some of these have more checks than others
    asked: int = 0  # trials, those without an answer too
    errored: int = 0
    passed: int = 0
    unfinished: int = 0  # of those that failed: at a limit, or without a word
    retries: int = 0  # questions that were asked again after errors
    turns: float | None = None
    tool_calls: float | None = None
    asked_first: datetime | None = None
    asked_last: datetime | None = None
    count: Count = _NO_RUNS  # passes of complete runs

    @property
    def interval(self) -> Interval | None:
        """Wilson's interval of the pass rate."""
        return (
            None
            if self.rate is None or not self.samples
            else wilson(self.rate, self.samples)
        )

    def scored(self, score: Score) -> float | None:
        """The pass rate, or the share of checks."""
        return self.rate if score == "pass" else self.score


_NOT_ASKED: Final = ArmSummary()
_SAME_TIME: Final = timedelta(hours=1)

AmountName = Literal["tokens", "cost", "seconds"]  # of an answer
AMOUNTS: Final[tuple[AmountName, ...]] = get_args(AmountName)
PairedNumber = Literal["rate", "score"] | AmountName
_NUMBERS: Final[Mapping[Score, PairedNumber]] = {"pass": "rate", "checks": "score"}


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """A case on a model that has a complete run."""

    case: str
    runs: int  # complete ones
    arms: Mapping[str, ArmSummary]
    sample: str = ""  # the same for all cases that a lift counts as one
    question: str = ""  # the same for all cases that ask the same

    def arm(self, arm: str) -> ArmSummary:
        return self.arms.get(arm, _NOT_ASKED)


@dataclass(frozen=True)
class Summary(WithPair):
    """How a skill does on a model."""

    skill: str
    model: str
    model_id: str
    cases: int
    runs: int  # the most that a case has
    arms: Mapping[str, ArmSummary]  # those with records
    not_run: int = 0  # cases without records
    # Cases that a budget kept from being asked. That does not depend on how they would
    # have ended, so they are left out as if they were not selected; but no gate passes.
    over_budget: int = 0
    not_asked: int = 0  # trials that a budget kept from being asked
    by_case: tuple[CaseSummary, ...] = ()
    against: str | None = None  # the git ref of the arm ``previous``
    score: Score = "pass"  # what the lift compares
    agent: str = CHAT
    agent_version: str = ""
    activation: Activation | None = None  # of an agent
    max_age: float = DAY  # seconds between arms that can be compared
    apart: bool = False  # whether those of a complete run are further apart
    # Whether the cases were selected by how they ended the last time
    by_outcome: bool = False
    # What the lift can be, whatever the missing answers would be;
    # None if none are missing.
    possible_lift: Interval | None = None

    def arm(self, arm: str) -> ArmSummary:
        """The numbers of an arm; none are known of one that was not asked."""
        return self.arms.get(arm, _NOT_ASKED)

    @property
    def errored(self) -> int:
        return sum(arm.errored for arm in self.arms.values())

    @property
    def incomplete(self) -> bool:
        """Whether answers are missing, or can't be compared: the others don't tell."""
        return bool(
            self.errored or self.not_run or not self.by_case or self.why_withheld
        )

    @property
    def budget_words(self) -> str:
        """``the budget ended the run after 6 of 10 cases``; empty if it did not."""
        return budget_words(self.cases, self.over_budget) if self.not_asked else ""

    @property
    def unfinished(self) -> bool:
        """Whether at least half of the trials have no end,
        with the skill and without it.
        """
        arms = [self.arm(BASELINE), self.arm(SKILL)]
        return all(2 * arm.unfinished >= arm.asked - arm.errored > 0 for arm in arms)

    @property
    def lift(self) -> float | None:
        """The score with the skill less that of the baseline, over complete runs.

        None of the oracle: its references say nothing about the skill.
        """
        skill, baseline = self.scored("skill"), self.scored("baseline")
        if (
            self.why_withheld
            or self.agent == ORACLE
            or skill is None
            or baseline is None
        ):
            return None
        return skill - baseline

    @property
    def why_withheld(self) -> str:
        """Why the arms can't be compared, with their dates; empty if they can.

        Cases that failed with the skill did no better than the baseline,
        whatever the skill does.
        """
        if self.by_outcome:
            return SELECTED_BY_OUTCOME
        if not self.apart:
            return ""
        return f"arms more than {age_words(self.max_age)} apart: {self._asked_words}"

    def asked_words(self, started: datetime) -> str:
        """When the arms were asked; empty if all were at about the same time,
        on the run's day.
        """
        oldest = min((first for first, _ in self._asked.values()), default=started)
        is_today = (
            oldest > started - _SAME_TIME
            or oldest.date() == started.astimezone(UTC).date()
        )
        return (
            "" if is_today and self._asked_spread <= _SAME_TIME else self._asked_words
        )

    @property
    def _asked(self) -> dict[str, tuple[datetime, datetime]]:
        """The first and the last time that each arm was asked, where it is known."""
        return {
            name: (arm.asked_first, arm.asked_last)
            for name, arm in self.arms.items()
            if arm.asked_first and arm.asked_last
        }

    @property
    def _asked_spread(self) -> timedelta:
        spans = zip(*self._asked.values(), strict=True)
        return max((max(times) - min(times) for times in spans), default=timedelta())

    @property
    def _asked_words(self) -> str:
        """``baseline asked 2026-11-10 to 2026-11-11, skill 2026-11-17``."""
        spans = self._asked
        days = {moment.date() for span in spans.values() for moment in span}
        by_hour = len(days) == 1 and self._asked_spread > _SAME_TIME
        form = "%Y-%m-%d %H:%M UTC" if by_hour else "%Y-%m-%d"
        words = {
            name: " to ".join(dict.fromkeys(f"{moment:{form}}" for moment in span))
            for name, span in spans.items()
        }
        if len(set(words.values())) == 1:
            return f"asked {next(iter(words.values()))}"
        (first, asked), *others = words.items()
        return ", ".join(
            [f"{first} asked {asked}", *(f"{arm} {span}" for arm, span in others)]
        )

    def scored(self, arm: str) -> float | None:
        """The chosen score: the pass rate, or the share of checks passed."""
        return self.arm(arm).scored(self.score)

    def growth(self, amount: AmountName) -> float | None:
        """That of an amount over the baseline, as a share."""
        skill, baseline = (getattr(self.arm(arm), amount) for arm in (SKILL, BASELINE))
        return skill / baseline - 1 if skill and baseline else None

    @property
    def samples(self) -> int:
        """How many cases a lift counts: those of a group, or that ask the same,
        are one.
        """
        return len(cases_by_sample(self.by_case))

    def pairs(
        self, number: PairedNumber, over: str, of: str = "skill"
    ) -> list[tuple[float, float]]:
        """A number of each sample in both arms, ``over`` first; none if any is
        unknown.
        """
        pairs = self._case_pairs(number, over, of)
        return [
            (
                fmean(pairs[case][0] for case in cases),
                fmean(pairs[case][1] for case in cases),
            )
            for sample in (cases_by_sample(self.by_case) if pairs else ())
            for cases in [[case.case for case in sample]]
        ]

    def scores(
        self, over: str, of: str = "skill", score: Score | None = None
    ) -> list[tuple[float, float]]:
        """`pairs` of pass rates or of shares of checks; by default of the chosen
        score.
        """
        return self.pairs(_NUMBERS[score or self.score], over, of)

    def case_scores(
        self, over: str, of: str = "skill"
    ) -> dict[str, tuple[float, float]]:
        """The same by case."""
        return self._case_pairs(_NUMBERS[self.score], over, of)

    def _case_pairs(
        self, number: PairedNumber, over: str, of: str
    ) -> dict[str, tuple[float, float]]:
        pairs: dict[str, tuple[float, float]] = {}
        for case in self.by_case:
            before, after = (
                getattr(case.arm(over), number),
                getattr(case.arm(of), number),
            )
            if before is None or after is None:
                return {}
            pairs[case.case] = (before, after)
        return pairs

    def sample_scores(self, arm: str) -> dict[str, float]:
        """The chosen score of each sample in one arm, where it is known."""
        samples: dict[str, list[float]] = {}
        for case in self.by_case:
            if (score := case.arm(arm).scored(self.score)) is not None:
                samples.setdefault(case.sample or case.case, []).append(score)
        return {sample: fmean(scores) for sample, scores in samples.items()}


def budget_words(done: int, over_budget: int, noun: str = "case") -> str:
    """``the budget ended the run after 6 of 10 cases``."""
    after = (
        f" after {done:,} of {counted(done + over_budget, noun)}" if over_budget else ""
    )
    return f"{BUDGET_ENDED}{after}"


def case_words(rows: Sequence[Summary]) -> str:
    """How many cases a skill has, and how many groups if a lift
    counts some of them as one.
    """
    largest, most = max(rows, key=lambda row: row.cases), max(rows, key=_repeated)
    cases = counted(largest.cases + largest.over_budget, "case")
    if largest.over_budget:
        cases = f"{largest.cases:,} of {cases}"
    return f"{cases} ({counted(most.samples, 'group')})" if _repeated(most) else cases


def repeat_notes(rows: Sequence[Summary], noun: str = "case") -> list[str]:
    """What cases that ask the same or are of one group mean for the numbers,
    once per skill.
    """
    repeated = {row.skill: row for row in rows if _repeated(row)}
    return [
        f"{repeat_words(skill, len(row.by_case), row.samples, noun)}."
        for skill, row in repeated.items()
    ]


def repeat_words(skill: str, cases: int, groups: int, noun: str = "case") -> str:
    """``gate: 12 cases in 4 groups: …``."""
    plural = counted(2, noun)[2:]
    return (
        f"{one_line(skill, 100)}: {counted(cases, noun)} in {counted(groups, 'group')}:"
        f" {plural} of a group, or that ask the same, count as one"
    )


def _repeated(row: Summary) -> int:
    return len(row.by_case) - row.samples


def cases_by_sample(cases: Iterable[CaseSummary]) -> list[list[CaseSummary]]:
    """The cases of each sample; one whose sample is unknown is alone."""
    return list(
        grouped(
            cases, lambda case: (case.sample, "" if case.sample else case.case)
        ).values()
    )


# Records → one summary per skill and model.

Run = Mapping[str, Record]  # of a case


def _value(record: Record, score: Score) -> float | None:
    return float(record.passed_common) if score == "pass" else record.score


def summarize(
    records: Iterable[Record],
    pair: SkillOnSubject,
    *,
    model_id: str,
    not_run: int,
    against: str | None = None,
    score: Score = "pass",
    tests: Iterable[PlannedCase] = (),
    max_age: float = DAY,
    started: datetime | None = None,
    by_outcome: bool = False,
    members: Sequence[str] = (),
) -> Summary:
    """Sum up the records of one skill on one model, of a run that ``started`` then.

    ``tests`` tell what is known of cases besides records;
    ``members`` are the skills of a bundle.
    """
    records = [record for record in records if record.pair == pair]
    planned = {test.case: test for test in tests}
    not_asked = sum(record.over_budget for record in records)
    left_out = cases_over_budget(records)
    records = [record for record in records if record.case not in left_out]
    by_case = grouped(records, lambda record: record.case)
    arms: set[str] = {"skill", *(record.arm for record in records)}
    complete = {
        case: runs
        for case, of_case in by_case.items()
        if (runs := _complete_runs(of_case, arms))
    }
    cases = [
        CaseSummary(
            case,
            len(runs),
            _arms(by_case[case], [[runs]]),
            planned[case].lift_sample if case in planned else "",
            planned[case].sample if case in planned else "",
        )
        for case, runs in complete.items()
    ]
    by_sample = [
        [complete[case.case] for case in sample] for sample in cases_by_sample(cases)
    ]
    agent, model = pair.subject
    again = partial(
        summarize,
        pair=pair,
        model_id=model_id,
        not_run=0,
        score=score,
        tests=planned.values(),
        max_age=max_age,
    )
    return Summary(
        skill=pair.skill,
        model=model,
        model_id=model_id,
        cases=len(by_case),
        runs=max((record.run for record in records), default=0),
        arms=_arms(records, by_sample),
        not_run=not_run,
        over_budget=len(left_out),
        not_asked=not_asked,
        by_case=tuple(cases),
        against=against,
        score=score,
        agent=agent,
        agent_version=agents_in(records).get(agent, ""),
        activation=activation_of(by_sample, members),
        max_age=max_age,
        apart=asked_apart(
            (
                record
                for runs in complete.values()
                for run in runs
                for record in run.values()
            ),
            max_age,
        ),
        by_outcome=by_outcome,
        possible_lift=(
            None
            if by_outcome
            else _possible_lift(records, not_run, again, max_age, started)
        ),
    )


def cases_over_budget(records: Iterable[Record]) -> set[str]:
    """Cases that a budget kept from being asked, in any arm or run."""
    return {record.case for record in records if record.over_budget}


def _possible_lift(
    records: Sequence[Record],
    not_run: int,
    summarized: Callable[[list[Record]], Summary],
    max_age: float,
    started: datetime | None,
) -> Interval | None:
    """The lift if all that is missing passes in one arm and fails in the others."""
    missing = {_trial(record) for record in records if record.outcome == "errored"}
    if not missing and not not_run:
        return None
    missing |= _outdated(records, max_age, started) if started else set()
    bounds = []
    for arm, sign in ((BASELINE, -1), (SKILL, 1)):
        row = summarized(
            [
                (
                    _as_if(record, record.arm == arm)
                    if _trial(record) in missing
                    else record
                )
                for record in records
            ]
        )
        if row.lift is None:
            return None
        bounds.append(
            (row.lift * row.samples + sign * not_run) / (row.samples + not_run)
        )
    return Interval(*bounds)


def _trial(record: Record) -> tuple[str, int, str]:
    return record.case, record.run, record.arm


def _outdated(
    records: Sequence[Record], max_age: float, started: datetime
) -> set[tuple[str, int, str]]:
    """Trials that the same command carries out again: too old for those that it
    lacks.
    """
    runs: dict[tuple[str, int], dict[tuple[str, int, str], int | None]] = {}
    for record in records:
        if record.asked_at is not None or record.outcome == "errored":
            runs.setdefault((record.case, record.run), {})[_trial(record)] = (
                record.asked_at
            )
    return {
        trial
        for run in runs.values()
        for trial in outdated(run, max_age, started.timestamp())
    }


def _as_if(record: Record, passes: bool) -> Record:
    """A record that is as if its answer was not missing."""
    outcome: Outcome = "passed" if passes else "failed"
    return replace(record, outcome=outcome, score=float(passes), asked_at=None)


def _complete_runs(records: Sequence[Record], arms: set[str]) -> list[Run]:
    """The runs of a case with an answer in every arm."""
    runs: dict[int, dict[str, Record]] = {}
    for record in records:
        if record.outcome != "errored":
            runs.setdefault(record.run, {})[record.arm] = record
    return [run for _, run in sorted(runs.items()) if run.keys() == arms]


# The complete runs in an arm: of each case of each sample.
_Samples = Sequence[Sequence[Sequence[Record]]]


def _arms(
    records: Sequence[Record], complete: Sequence[Sequence[Sequence[Run]]]
) -> dict[str, ArmSummary]:
    """Each arm that has records; ``complete`` are the complete runs of
    each case of each sample.
    """
    by_arm = grouped(records, lambda record: record.arm)
    return {
        arm: _arm(
            of_arm,
            [[[run[arm] for run in runs] for runs in cases] for cases in complete],
        )
        for arm, of_arm in by_arm.items()
    }


def _arm(records: Sequence[Record], complete: _Samples) -> ArmSummary:
    cases = [runs for sample in complete for runs in sample]
    answers = [record for runs in cases for record in runs]
    common = [record.common_checks for record in records]
    grades = [grade for checks in common for grade in checks]
    times = [record.asked_at for record in answers if record.asked_at is not None]
    return ArmSummary(
        samples=len(complete),
        rate=_mean_over_samples(complete, lambda record: _value(record, "pass")),
        score=_mean_over_samples(complete, lambda record: _value(record, "checks")),
        tokens=_mean([record.tokens for record in answers]),
        seconds=_mean([record.seconds for record in answers]),
        cost=_mean([record.cost for record in answers]),
        checks_passed=sum(grade.passed for grade in grades),
        checks_total=len(grades),
        graded=sum(map(bool, common)),
        uneven=len({len(checks) for checks in common if checks}) > 1,
        asked=len(records),
        errored=sum(record.outcome == "errored" for record in records),
        passed=sum(record.passed_common for record in records),
        unfinished=sum(record.is_unfinished for record in records),
        retries=sum(record.retries for record in records),
        turns=_mean([r.activity.turns if r.activity else None for r in answers]),
        tool_calls=_mean(
            [r.activity.tool_calls if r.activity else None for r in answers]
        ),
        asked_first=datetime.fromtimestamp(min(times), UTC) if times else None,
        asked_last=datetime.fromtimestamp(max(times), UTC) if times else None,
        count=Count(sum(r.passed_common for r in answers), len(answers)),
    )


def checks_of(records: Iterable[Record], arm: str) -> tuple[float, float] | None:
    """Checks passed, and all checks, of an answer on average; None if there are
    none.
    """
    by_record = (record.common_checks for record in records if record.arm == arm)
    graded = [checks for checks in by_record if checks]
    if not graded:
        return None
    passed = fmean(sum(grade.passed for grade in checks) for checks in graded)
    return passed, fmean(map(len, graded))


def _mean_over_samples(
    samples: _Samples, value: Callable[[Record], float | None]
) -> float | None:
    """Mean over samples of the mean over cases of the mean over runs.

    The case is the sample, not the run; cases of a group, or that ask the same,
    are one.
    """
    return _mean(
        [
            _mean([_mean([value(record) for record in runs]) for runs in cases])
            for cases in samples
        ]
    )


def _mean(values: Sequence[float | None]) -> float | None:
    if len(values) == 1:  # most cases have one run
        return values[0] if values[0] is None else float(values[0])
    numbers = [value for value in values if value is not None]
    return fmean(numbers) if numbers and len(numbers) == len(values) else None
