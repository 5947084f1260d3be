"""Records → one summary per skill and model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..stats import wilson
from ..trials.records import Record
from ..trials.trial import Arm


@dataclass(frozen=True)
class CaseSummary:
    """A case on a model: means over its runs of which every arm was answered."""

    case: str
    runs: int
    baseline: float | None  # the share of runs that passed
    skill: float
    baseline_tokens: float | None
    skill_tokens: float | None
    previous: float | None = None
    previous_tokens: float | None = None
    baseline_score: float | None = None
    skill_score: float | None = None


@dataclass(frozen=True)
class Summary:
    """How a skill does on a model. Rates and scores are 0–1, tokens, seconds and cost (in
    USD) means of one answer.

    Rates, scores, lift, tokens and cost are over complete pairs only: a trial without an
    answer takes its partners of the other arms with it. What is not known is None.
    """

    skill: str
    model: str
    model_id: str
    cases: int
    runs: int  # the most that a case has
    baseline_rate: float | None
    skill_rate: float | None
    lift: float | None
    baseline_score: float | None
    skill_score: float | None
    baseline_tokens: float | None
    skill_tokens: float | None
    token_change: float | None
    baseline_cost: float | None
    skill_cost: float | None
    checks_passed: int
    checks_total: int
    errored: int
    baseline_seconds: float | None
    skill_seconds: float | None
    graded: int  # answers with the skill that were held to checks
    not_run: int  # cases that the run did not come to
    by_case: tuple[CaseSummary, ...] = ()
    against: str | None = None  # the git ref of the arm ``previous``
    previous_rate: float | None = None
    previous_tokens: float | None = None
    previous_cost: float | None = None
    most_runs: int | None = None  # that could have been, where the rest is asked only if need be

    @property
    def rates(self) -> list[tuple[float, float]]:
        """The pass rates of each case, without the skill and with it."""
        return [(case.baseline, case.skill) for case in self.by_case if case.baseline is not None]

    @property
    def tokens(self) -> list[tuple[float, float]]:
        """The tokens of each case; nothing where a server does not tell them."""
        return _all_known([(case.baseline_tokens, case.skill_tokens) for case in self.by_case])

    @property
    def rates_since(self) -> list[tuple[float, float]]:
        """The pass rates of each case, with the skill as it was and as it is."""
        return _all_known([(case.previous, case.skill) for case in self.by_case])

    @property
    def tokens_since(self) -> list[tuple[float, float]]:
        return _all_known([(case.previous_tokens, case.skill_tokens) for case in self.by_case])

    @property
    def scores(self) -> list[tuple[float, float]]:
        """The scores of each case, without the skill and with it; nothing where one is missing."""
        pairs = [(case.baseline_score, case.skill_score) for case in self.by_case]
        known = [(one, two) for one, two in pairs if one is not None and two is not None]
        return known if len(known) == len(pairs) else []

    @property
    def skill_low(self) -> float | None:
        """The lower bound of Wilson's interval of the pass rate with the skill."""
        return None if self.skill_rate is None else wilson(self.skill_rate, len(self.by_case)).low


Run = Mapping[Arm, Record]  # of a case: what came of each arm


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
    by_case = _complete_runs(own)
    runs = [run for case in by_case.values() for run in case]
    baselines, previous, with_skill = _arm(runs, "baseline"), _arm(runs, "previous"), _arm(runs)
    baseline_cases = [_arm(case, "baseline") for case in by_case.values()]
    skill_cases = [_arm(case) for case in by_case.values()]
    baseline_rate = _mean_over_cases(baseline_cases, _passed)
    skill_rate = _mean_over_cases(skill_cases, _passed)
    tokens = _mean([record.tokens for record in baselines])
    skill_tokens = _mean([record.tokens for record in with_skill])
    grades = [grade for record in own if record.arm == "skill" for grade in record.checks]
    return Summary(
        skill=skill,
        model=model,
        model_id=model_id,
        cases=len({record.case for record in own}),
        runs=max((record.run for record in own), default=0),
        baseline_rate=baseline_rate,
        skill_rate=skill_rate,
        lift=_difference(skill_rate, baseline_rate),
        baseline_score=_mean_over_cases(baseline_cases, _score),
        skill_score=_mean_over_cases(skill_cases, _score),
        baseline_tokens=tokens,
        skill_tokens=skill_tokens,
        token_change=skill_tokens / tokens - 1 if tokens and skill_tokens else None,
        baseline_cost=_mean([record.cost for record in baselines]),
        skill_cost=_mean([record.cost for record in with_skill]),
        checks_passed=sum(grade.passed for grade in grades),
        checks_total=len(grades),
        errored=sum(record.outcome == "errored" for record in own),
        baseline_seconds=_mean([record.seconds for record in baselines]),
        skill_seconds=_mean([record.seconds for record in with_skill]),
        graded=sum(record.arm == "skill" and bool(record.checks) for record in own),
        not_run=not_run,
        by_case=tuple(_case(case, own_runs) for case, own_runs in by_case.items()),
        against=against,
        most_runs=most_runs,
        previous_rate=_mean_over_cases(
            [_arm(case, "previous") for case in by_case.values()], _passed
        ),
        previous_tokens=_mean([record.tokens for record in previous]),
        previous_cost=_mean([record.cost for record in previous]),
    )


def _case(case: str, runs: Sequence[Run]) -> CaseSummary:
    baselines, previous, with_skill = _arm(runs, "baseline"), _arm(runs, "previous"), _arm(runs)
    return CaseSummary(
        case=case,
        runs=len(runs),
        baseline=_mean(list(map(_passed, baselines))),
        skill=fmean(map(_passed, with_skill)),
        baseline_tokens=_mean([record.tokens for record in baselines]),
        skill_tokens=_mean([record.tokens for record in with_skill]),
        previous=_mean(list(map(_passed, previous))),
        previous_tokens=_mean([record.tokens for record in previous]),
        baseline_score=_mean([record.score for record in baselines]),
        skill_score=_mean([record.score for record in with_skill]),
    )


def _complete_runs(records: Sequence[Record]) -> dict[str, list[Run]]:
    """Per case, the runs of which every arm was answered."""
    arms = {"skill", *(record.arm for record in records)}
    runs: dict[tuple[str, int], dict[Arm, Record]] = {}
    for record in records:
        if record.outcome != "errored":
            runs.setdefault((record.case, record.run), {})[record.arm] = record
    complete: dict[str, list[Run]] = {}
    for (case, _), run in runs.items():
        if run.keys() == arms:
            complete.setdefault(case, []).append(run)
    return complete


def _arm(runs: Iterable[Run], arm: Arm = "skill") -> list[Record]:
    return [run[arm] for run in runs if arm in run]


def _passed(record: Record) -> float:
    return float(record.outcome == "passed")


def _score(record: Record) -> float | None:
    return record.score


def _mean_over_cases(
    cases: Sequence[Sequence[Record]], value: Callable[[Record], float | None]
) -> float | None:
    """Mean over cases of the mean over runs: the case is the sample, not the run."""
    return _mean([_mean([value(record) for record in case]) for case in cases])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _all_known(
    pairs: Sequence[tuple[float | None, float | None]],
) -> list[tuple[float, float]]:
    known = [(one, two) for one, two in pairs if one is not None and two is not None]
    return known if len(known) == len(pairs) else []


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
