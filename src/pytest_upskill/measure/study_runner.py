"""Studies: the same cases, asked in several arms, and how these differ.

A plan says what is asked (cases in arms), what is compared (contrasts) and what
follows from that (``conclude``); a `StudyRunner` carries it out.
`skill_matrix` and `ablation` plan.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Final

from .._util import grouped
from .._util.texts import counted
from ..checks import CheckedCase, runnable_in
from ..checks.grading import ToGrade
from ..engine.engine import KnownBefore
from ..results.comparison import (
    CaseResult,
    Cases,
    Comparison,
    compare,
    lift_results,
    paired_samples,
)
from ..results.contrasts import Contrast, Study, StudyArm
from ..settings import Score, Settings
from ..skills.context import load_for_run
from ..skills.skill import Skill
from ..skills.suites.reading import read_suites
from ..stats import FEWEST_CASES, LEVEL, ROUNDING, Lift, holm_lifts, worst_loss
from ..stats.distributions import mean_and_spread
from ..stats.intervals import half_width
from ..trials.arm import Arm
from ..trials.plan import SkillInfo, score_of
from ..trials.records import Record, asked_apart
from ..trials.subject import Subject
from ..trials.trial import Question, Trial, lift_sample_of
from .estimate import Calls, Estimate, calls_of_trial, estimate_of
from .evaluate import Evaluator, asked_cases

_MIN_CASES: Final = 3  # for an interval of tokens


@dataclass(frozen=True)
class SkillCases:
    """A skill that is studied, and its cases; it may have none."""

    label: str  # its name in reports
    skill: Skill
    cases: tuple[CheckedCase, ...]
    score: Score = "pass"
    path: Path = Path()  # of the cases

    def cases_for(self, subject: Subject, model_id: str) -> tuple[CheckedCase, ...]:
        """The cases for a subject, the same as in a run of tests."""
        return asked_cases(self.cases, subject, model_id)

    def info(self, path: str) -> SkillInfo:
        return SkillInfo.of(self.skill, self.label, path, score=self.score)


def load_skill_cases(file: Path, label: str, settings: Settings) -> SkillCases:
    """The skill of a SKILL.md with its own cases; InputError if one of its files is
    broken.
    """
    suite = read_suites(file.parent).cases
    cases: tuple[CheckedCase, ...] = ()
    if suite and suite.has_cases:
        cases = tuple(runnable_in(suite))
    return SkillCases(
        label,
        load_for_run(file, settings),
        cases=cases,
        score=score_of(settings.score, [case for case, _ in cases]),
        path=suite.path if suite else file,
    )


@dataclass(frozen=True)
class CasesInArms:
    """Cases of a skill, and the arms that they are carried out in."""

    skill: Skill
    cases: tuple[CheckedCase, ...]
    arms: tuple[Arm, ...]  # each of its name in the study
    score: Score = "pass"


@dataclass(frozen=True)
class StudyPlan:
    """Contrasts of one subject that are judged together, with 5 % error for all of
    them.
    """

    title: str
    legend: str  # what a change is
    subject: Subject
    groups: tuple[CasesInArms, ...]
    contrasts: tuple[Contrast, ...]
    # In sentences, from the results of the arms too.
    conclude: Callable[[Study, Mapping[str, Cases]], Study] = lambda study, _: study


@dataclass(frozen=True)
class StudyRunner:
    """Carries out studies, and estimates what they take."""

    evaluator: Evaluator
    runs: int
    begin: Callable[[str], None] = lambda _: None  # a step, in words
    done: Callable[[str], None] = lambda _: None  # what came of it
    stop: Callable[[], None] | None = None  # after Ctrl-C, ask no more
    stored: Callable[[Sequence[Question]], KnownBefore] = lambda _: KnownBefore()

    def run(self, plan: StudyPlan) -> Study:
        """Ask everything at once, and judge all contrasts together."""
        asked = list(self._trials(plan))
        size = f"{counted(self.runs, 'run')}, {counted(len(asked), 'trial')}"
        self.begin(f"{plan.subject.label}: {size}")
        records, interrupted = self.ask(asked)

        answers = _Answers(max_age=self.evaluator.settings.max_age)
        for group in plan.groups:
            for arm in group.arms:
                of_arm = [record for record in records if record.arm == arm.name]
                answers.records[arm.name] = of_arm
                answers.cases[arm.name] = find_case_results(group, of_arm)

        # Arms share some questions.
        by_question = {}
        for item, record in zip(asked, records, strict=True):
            by_question[item.trial.question.key] = record
        study = replace(
            answers.describe(plan),
            runs=self.runs,
            trials=len(by_question),
            cost=_sum_cost(by_question.values()),
            interrupted=interrupted,
        )
        self.done(_done_words(study))
        return plan.conclude(study, answers.cases)

    def ask(self, asked: Sequence[ToGrade]) -> tuple[list[Record], bool]:
        """The records, and whether Ctrl-C came: then only of what was answered
        before.
        """
        try:
            return self.evaluator.records(asked), False
        except KeyboardInterrupt:
            if self.stop is None:
                raise
            self.stop()
            return self.evaluator.records(asked), True

    def estimate(self, plans: Sequence[StudyPlan], *, free: bool) -> Estimate:
        """What the studies take that is not stored."""
        trials: list[Trial] = []
        most = 0
        for plan in plans:
            trials += [item.trial for item in self._trials(plan)]
            for group in plan.groups:
                most = max(most, len({lift_sample_of(case) for case, _ in group.cases}))

        estimate = self.estimate_of(trials, free=free)
        if most >= FEWEST_CASES:
            return estimate
        warning = f"{most} can't show any difference ({FEWEST_CASES} needed)"
        return replace(estimate, warning=f"Too few cases: {warning}.")

    def estimate_of(self, planned: Sequence[Trial], *, free: bool) -> Estimate:
        """What trials take that is not stored."""
        trials = {trial.question.key: trial for trial in planned}
        stored = self.stored([trial.question for trial in trials.values()])
        calls: list[Calls] = []
        by_agents = 0
        for key, trial in trials.items():
            if key not in stored.used:
                calls += calls_of_trial(trial)
                by_agents += trial.question.task is not None
        return estimate_of(
            calls,
            self.evaluator.price_of,
            free=free or not calls,
            trials=by_agents,
            stored=len(stored.used),
            outdated=len(stored.outdated),
        )

    def _trials(self, plan: StudyPlan) -> Iterator[ToGrade]:
        for group in plan.groups:
            for checked in group.cases:
                # A case may say that it has fewer runs.
                runs = min(self.runs, checked[0].runs or self.runs)
                yield from self.evaluator.trials(
                    group.skill,
                    [checked],
                    subject=plan.subject,
                    arms=group.arms,
                    runs=range(1, runs + 1),
                )


def _done_words(study: Study) -> str:
    """``1 of 5 differences shown, 1 incomplete``."""
    counts = Counter(contrast.word for contrast in study.contrasts)
    shown = counts["helps"] + counts["hurts"]
    words = f"{shown:,} of {counted(counts.total(), 'difference')} shown"
    if counts["incomplete"]:
        words += f", {counts['incomplete']:,} incomplete"
    return words


def _sum_cost(records: Iterable[Record]) -> float | None:
    """The cost of new answers; None if one is not known."""
    total = 0.0
    for record in records:
        if not record.stored:
            if record.cost is None:
                return None
            total += record.cost
    return total


@dataclass
class _Answers:
    """All answers of a study, by arm."""

    max_age: float  # seconds between answers that can be compared
    records: dict[str, list[Record]] = field(default_factory=dict)
    cases: dict[str, Cases] = field(default_factory=dict)

    def describe(self, plan: StudyPlan) -> Study:
        """What came of it, without conclusions."""
        comparisons = {}
        apart = False
        for contrast in plan.contrasts:
            records = self._records_of(contrast)
            is_apart = asked_apart(records, self.max_age)
            apart = apart or is_apart
            if is_apart or any(record.outcome == "errored" for record in records):
                continue
            if comparison := compare_arms(contrast, self.cases):
                comparisons[contrast] = comparison

        lifts = judge_contrasts(comparisons)
        contrasts = {contrast.name: contrast for contrast in plan.contrasts}
        for contrast, comparison in comparisons.items():
            contrasts[contrast.name] = replace(
                self._with_tokens(contrast),
                lift=lifts[contrast.name],
                cases=len(comparison.samples),
            )

        errors = Counter[str]()
        for of_arm in self.records.values():
            errors.update(r.error or "" for r in of_arm if r.outcome == "errored")
        reasons = [error for error, _ in errors.most_common() if error]
        arms = [arm for group in plan.groups for arm in group.arms]
        return Study(
            title=plan.title,
            legend=plan.legend,
            agent=plan.subject.agent,
            model=plan.subject.model,
            arms=tuple(map(self._describe_arm, arms)),
            contrasts=tuple(contrasts.values()),
            errored=errors.total(),
            error=reasons[0] if reasons else "",
            apart=apart,
        )

    def _records_of(self, contrast: Contrast) -> list[Record]:
        records = []
        for name in (*contrast.plus, *contrast.minus):
            records += self.records[name]
        return records

    def _with_tokens(self, contrast: Contrast) -> Contrast:
        """Of two arms: a difference of lifts has tokens that say nothing."""
        if len(contrast.plus) > 1:
            return contrast
        before = _tokens_by_case(self.cases[contrast.minus[0]])
        after = _tokens_by_case(self.cases[contrast.plus[0]])
        changes = [after[case] - before[case] for case in after if case in before]
        if not changes:
            return contrast

        mean, spread = mean_and_spread(changes)
        if len(changes) < _MIN_CASES:
            return replace(contrast, tokens=mean)
        half = half_width(spread, len(changes), LEVEL)
        return replace(contrast, tokens=mean, tokens_span=(mean - half, mean + half))

    def _describe_arm(self, arm: Arm) -> StudyArm:
        cases = self.cases[arm.name]
        samples = paired_samples([cases], [cases])
        tokens = _tokens_by_case(cases)
        opened = Counter[str]()
        first = Counter[str]()
        trials = 0
        for record in self.records[arm.name]:
            if record.activity and record.outcome != "errored":
                trials += 1
                opened.update(dict.fromkeys(record.activity.opened, 1))
                first.update(record.activity.opened[:1])
        return StudyArm(
            arm.name,
            rate=fmean(sample.after for sample in samples) if samples else None,
            tokens=fmean(tokens.values()) if tokens else None,
            trials=trials,
            opened=opened,
            opened_first=first,
            digest=arm.digest[:16],
        )


def _tokens_by_case(cases: Cases) -> dict[str, float]:
    tokens = {case: result.amounts["tokens"] for case, result in cases.items()}
    return {case: number for case, number in tokens.items() if number is not None}


def find_case_results(group: CasesInArms, records: Sequence[Record]) -> Cases:
    """The results of the cases of an arm; a case with an error is left out.

    Cases of a group, or that ask the same, are one sample.
    """
    by_case = grouped(records, lambda record: record.case)
    results = {}
    for case, _ in group.cases:
        runs = by_case.get(case.id, [])
        if not runs or any(record.outcome == "errored" for record in runs):
            continue

        scores = [float(record.outcome == "passed") for record in runs]
        if group.score == "checks":
            scores = [record.score or 0.0 for record in runs]
        tokens = [record.tokens for record in runs if record.tokens is not None]
        results[case.id] = CaseResult(
            fmean(scores),
            {"tokens": fmean(tokens) if tokens else None},
            sample=lift_sample_of(case),
        )
    return results


def compare_arms(contrast: Contrast, arms: Mapping[str, Cases]) -> Comparison | None:
    """One arm compared with another, or one lift with another."""
    before = arms[contrast.minus[0]]
    after = arms[contrast.plus[0]]
    if len(contrast.plus) > 1:
        after = lift_results(after, before)
        before = lift_results(arms[contrast.minus[1]], arms[contrast.plus[1]])
    return compare([before], [after], reach=float(len(contrast.plus)))


def judge_contrasts(comparisons: Mapping[Contrast, Comparison]) -> dict[str, Lift]:
    """Contrasts by name; together they err in 5 %.

    A contrast that could not be shown, whatever the signs of its differences, takes no
    share of that (Tarone 1990). It holds 0 by itself.
    """
    testable = [key for key, over in comparisons.items() if _could_be_shown(over)]
    lifts = {contrast: over.lift for contrast, over in comparisons.items()}
    adjusted = holm_lifts([lifts[contrast] for contrast in testable])
    lifts.update(zip(testable, adjusted, strict=True))

    # That a part could go is a claim, too, and all parts make it.
    claims = sum(contrast.margin is not None for contrast in comparisons)
    judged = {}
    for contrast, lift in lifts.items():
        judged[contrast.name] = lift
        if contrast.margin is not None and not lift.shown:
            differences = comparisons[contrast].differences
            low = -worst_loss(differences, share_error(claims))
            judged[contrast.name] = lift._replace(low=min(lift.low, low))
    return judged


def _could_be_shown(comparison: Comparison) -> bool:
    """Whether enough cases differ: all in one direction, they would show it."""
    changed = sum(abs(value) > ROUNDING for value in comparison.differences)
    return bool(0.5**changed < 1 - LEVEL)


def share_error(claims: int) -> float:
    """The level of each claim if all of them together err in 5 %."""
    return 1 - (1 - LEVEL) / max(1, claims)
