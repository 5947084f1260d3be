"""Records → one summary per skill and model."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from math import fsum
from operator import mul
from statistics import fmean, variance
from typing import Final, NamedTuple

from ..settings import Score
from ..stats import rest_after, weights
from ..trials.records import Record, agents_in
from ..trials.subject import ARMS, Arm, SkillOnSubject
from .activation import activation_of
from .summary import ArmSummary, CaseSummary, Summary, cases_by_sample

_NO_SAMPLES: Final[Mapping[str, str]] = {}
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
    pair: SkillOnSubject,
    *,
    model_id: str,
    not_run: int,
    against: str | None = None,
    looks: tuple[int, ...] = (),
    score: Score = "pass",
    samples: Mapping[str, str] = _NO_SAMPLES,
    own_runs: Collection[str] = (),
) -> Summary:
    """Sum up the records of one skill on one model.

    ``looks`` are those of frugal runs, which cases with ``own_runs`` don't have; ``samples`` are
    by case, as in `PlannedCase`.
    """
    own = [record for record in records if record.pair == pair]
    by_case: dict[str, list[Record]] = {}
    for record in own:
        by_case.setdefault(record.case, []).append(record)
    arms: set[Arm] = {"skill", *(record.arm for record in own)}
    rest = rest_after(looks) if looks else None
    found = {case: _complete_runs(known, arms) for case, known in by_case.items()}
    complete = {
        case: _Runs(runs, weights(kinds_of(runs, score), None if case in own_runs else rest))
        for case, runs in found.items()
        if runs
    }
    groups = cases_by_sample([(case, samples.get(case, "")) for case in complete])
    by_sample = [[complete[case] for case in group] for group in groups]
    agent, model = pair.subject
    return Summary(
        skill=pair.skill,
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
    if len(values) == 1:  # most cases have one run
        return values[0] if values[0] is None else float(values[0])
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
