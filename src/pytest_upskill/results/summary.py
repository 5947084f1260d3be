"""Sum up the records of a skill on a model: in each arm, over all cases and by case."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, log
from statistics import fmean

from .._util import grouped
from ..options import DAY
from ..settings import Score
from ..stats import Interval
from ..trials.arm import BASELINE, SKILL
from ..trials.plan import Count, PlannedCase
from ..trials.records import Outcome, Record, agents_in
from ..trials.subject import SkillOnSubject
from .activation import find_activation
from .arm_times import asked_times
from .row import ArmSummary, CaseSummary, Row, cases_by_sample, count_signals
from .signals import signal_of

Run = Mapping[str, Record]  # of a case: the record of each arm


@dataclass(frozen=True, kw_only=True)
class RowFacts:
    """What is known of a skill on a model besides its records."""

    model_id: str = ""
    not_run: int = 0  # cases without records
    all_cases: int = 0
    against: str | None = None
    score: Score = "pass"
    tests: Mapping[str, PlannedCase]  # by case
    max_age: float = DAY
    by_outcome: bool = False
    members: Sequence[str] = ()  # the skills of a bundle
    skill_digest: str = ""
    interrupted: bool = False


def summarize(records: Iterable[Record], pair: SkillOnSubject, facts: RowFacts) -> Row:
    """The numbers of a skill on a model; `verdict.judge_rows` adds what they show."""
    records = list(records)
    left_out = cases_over_budget(records)
    asked = [record for record in records if record.case not in left_out]
    row = _count(asked, pair, facts)
    return replace(
        row,
        not_run=facts.not_run,
        over_budget=len(left_out),
        not_asked=sum(record.over_budget for record in records),
        by_outcome=facts.by_outcome,
        possible_lift=None if facts.by_outcome else _find_possible_lift(asked, facts),
    )


def cases_over_budget(records: Iterable[Record]) -> set[str]:
    """Cases that a budget kept from being asked, in any arm or run."""
    return {record.case for record in records if record.over_budget}


def _count(records: Sequence[Record], pair: SkillOnSubject, facts: RowFacts) -> Row:
    """All numbers that come from these records alone."""
    complete = _find_complete_runs(records)
    cases = _summarize_cases(records, complete, facts)
    runs_by_sample = []
    for sample in cases_by_sample(cases):
        runs_by_sample.append([complete[case.case] for case in sample])

    agent, model = pair.subject
    compared = [
        record for runs in complete.values() for run in runs for record in run.values()
    ]
    return Row(
        skill=pair.skill,
        model=model,
        model_id=facts.model_id,
        agent=agent,
        agent_version=agents_in(records).get(agent, ""),
        score=facts.score,
        cases=len({record.case for record in records}),
        runs=max((record.run for record in records), default=0),
        samples=len(runs_by_sample),
        all_cases=facts.all_cases,
        interrupted=facts.interrupted,
        skill_digest=facts.skill_digest,
        against=facts.against,
        arms=_summarize_arms(records, cases),
        signals=count_signals(cases),
        errored=sum(record.outcome == "errored" for record in records),
        asked=asked_times(compared, facts.max_age),
        activation=find_activation(runs_by_sample, facts.members),
        by_case=tuple(cases),
    )


def _find_complete_runs(records: Sequence[Record]) -> dict[str, list[Run]]:
    """By case, the runs with an answer in every arm."""
    arms = {record.arm for record in records}
    by_case: dict[str, dict[int, dict[str, Record]]] = {}
    for record in records:
        if record.outcome != "errored":
            runs = by_case.setdefault(record.case, {})
            runs.setdefault(record.run, {})[record.arm] = record

    complete: dict[str, list[Run]] = {}
    for case, runs in by_case.items():
        whole = [runs[number] for number in sorted(runs) if runs[number].keys() == arms]
        if whole:
            complete[case] = list(whole)
    return complete


def _summarize_cases(
    records: Sequence[Record], complete: Mapping[str, Sequence[Run]], facts: RowFacts
) -> list[CaseSummary]:
    by_case = grouped(records, lambda record: record.case)
    cases = []
    for case, runs in complete.items():
        arms = {
            arm: _summarize_case_arm(of_arm, [run[arm] for run in runs])
            for arm, of_arm in grouped(by_case[case], lambda r: r.arm).items()
        }
        test = facts.tests.get(case)
        summary = CaseSummary(
            case=case,
            runs=len(runs),
            arms=arms,
            sample=test.lift_sample if test else "",
            question=test.sample if test else "",
        )
        cases.append(_add_signal(summary))
    return cases


def _add_signal(case: CaseSummary) -> CaseSummary:
    without = case.arm(BASELINE).count
    with_skill = case.arm(SKILL).count
    if not without.runs or not with_skill.runs:
        return case
    found = signal_of(without, with_skill)
    return replace(case, signal=found.signal, signal_shown=found.is_shown)


def _summarize_case_arm(
    records: Sequence[Record], answers: Sequence[Record]
) -> ArmSummary:
    """A case in an arm; ``answers`` are the records of its complete runs."""
    passes = sum(record.passed_common for record in answers)
    return replace(
        _count_records(records),
        rate=passes / len(answers),
        score=_mean_known([record.score for record in answers]),
        tokens=_mean_known([record.tokens for record in answers]),
        seconds=_mean_known([record.seconds for record in answers]),
        cost=_mean_known([record.cost for record in answers]),
        turns=_mean_known([_turns(record) for record in answers]),
        tool_calls=_mean_known([_tool_calls(record) for record in answers]),
        samples=1,
        count=Count(passes, len(answers)),
    )


def _turns(record: Record) -> float | None:
    return record.activity.turns if record.activity else None


def _tool_calls(record: Record) -> float | None:
    return record.activity.tool_calls if record.activity else None


def _summarize_arms(
    records: Sequence[Record], cases: Sequence[CaseSummary]
) -> dict[str, ArmSummary]:
    """Each arm that has records, over all cases."""
    samples = cases_by_sample(cases)
    return {
        arm: _summarize_arm(
            of_arm, [[case.arm(arm) for case in sample] for sample in samples]
        )
        for arm, of_arm in grouped(records, lambda record: record.arm).items()
    }


def _summarize_arm(
    records: Sequence[Record], samples: Sequence[Sequence[ArmSummary]]
) -> ArmSummary:
    cases = [case for sample in samples for case in sample]
    passes = sum(case.count.passes for case in cases)
    runs = sum(case.count.runs for case in cases)
    return replace(
        _count_records(records),
        rate=_mean_over(samples, lambda case: case.rate, mean=fmean),
        score=_mean_over(samples, lambda case: case.score, mean=fmean),
        tokens=_mean_over(samples, lambda case: case.tokens, mean=_geometric_mean),
        seconds=_mean_over(samples, lambda case: case.seconds, mean=_geometric_mean),
        cost=_mean_over(samples, lambda case: case.cost, mean=_geometric_mean),
        turns=_mean_over(samples, lambda case: case.turns, mean=_geometric_mean),
        tool_calls=_mean_over(samples, lambda case: case.tool_calls, mean=fmean),
        samples=len(samples),
        count=Count(passes, runs),
    )


def _count_records(records: Sequence[Record]) -> ArmSummary:
    """What is counted over every record, also those without an answer."""
    common = [record.common_checks for record in records]
    grades = [grade for checks in common for grade in checks]
    return ArmSummary(
        checks_passed=sum(grade.passed for grade in grades),
        checks_total=len(grades),
        asked=len(records),
        errored=sum(record.outcome == "errored" for record in records),
        passed=sum(record.passed_common for record in records),
        cut_off=sum(record.cut_off for record in records),
        retries=sum(record.retries for record in records),
    )


def _mean_over(
    samples: Sequence[Sequence[ArmSummary]],
    value: Callable[[ArmSummary], float | None],
    *,
    mean: Callable[[Sequence[float]], float],
) -> float | None:
    """Mean over samples of the mean over cases; None if any is unknown.

    The case is the sample, not the run; cases of a group, or that ask the same, are
    one.
    """
    means = []
    for cases in samples:
        known = [number for case in cases if (number := value(case)) is not None]
        if len(known) < len(cases):
            return None
        means.append(mean(known))
    return mean(means) if means else None


def _geometric_mean(numbers: Sequence[float]) -> float:
    """The mean that goes with changes, which are means of ratios."""
    is_exact = min(numbers) == max(numbers)
    if is_exact or min(numbers) <= 0:
        return fmean(numbers)
    return exp(fsum(map(log, numbers)) / len(numbers))


def _mean_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return fmean(known)


# The lift that may be, where answers are missing.


def _find_possible_lift(records: Sequence[Record], facts: RowFacts) -> Interval | None:
    """The lift if all that is missing passes in one arm and fails in the others."""
    has_errors = any(record.outcome == "errored" for record in records)
    if not records or not (has_errors or facts.not_run):
        return None

    bounds = []
    for arm, sign in ((BASELINE, -1), (SKILL, 1)):
        answered = [_answer_if_missing(record, arm) for record in records]
        row = _count(answered, records[0].pair, facts)
        skill = row.scored(SKILL)
        baseline = row.scored(BASELINE)
        if skill is None or baseline is None or row.is_apart:
            return None
        total = (skill - baseline) * row.samples + sign * facts.not_run
        bounds.append(total / (row.samples + facts.not_run))
    return Interval(*bounds)


def _answer_if_missing(record: Record, passing_arm: str) -> Record:
    """A record that is as if its answer was not missing."""
    if record.outcome != "errored":
        return record
    passes = record.arm == passing_arm
    outcome: Outcome = "passed" if passes else "failed"
    return replace(record, outcome=outcome, score=float(passes), asked_at=None)


def checks_of(records: Iterable[Record], arm: str) -> tuple[float, float] | None:
    """Checks passed, and all checks, of an answer on average; None without any."""
    checks = [record.common_checks for record in records if record.arm == arm]
    graded = [grades for grades in checks if grades]
    if not graded:
        return None
    passed = fmean(sum(grade.passed for grade in grades) for grades in graded)
    return passed, fmean(map(len, graded))
