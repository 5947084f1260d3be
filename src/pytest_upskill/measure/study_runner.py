"""Studies: the same cases, asked in several arms, and how these differ.

A plan says what is asked (cases in arms), what is compared (contrasts) and what
follows from that (``conclude``); a `StudyRunner` carries it out.
`skill_matrix` and `ablation` plan.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from .._util.texts import counted
from ..checks import CheckedCase, runnable_in
from ..checks.grading import ToGrade
from ..engine.engine import KnownBefore
from ..results.contrasts import Contrast, Study, StudyArm
from ..settings import Score, Settings
from ..skills.context import load_for_run
from ..skills.skill import Skill
from ..skills.suites.reading import read_suites
from ..stats import LEVEL, Differences, Lift, judge_family, paired_lift
from ..stats.descriptive import mean_and_spread
from ..stats.intervals import half_width
from ..stats.power import fewest_cases
from ..trials.arm import Arm
from ..trials.plan import SkillInfo, score_of
from ..trials.records import Record, asked_apart
from ..trials.subject import Subject
from ..trials.trial import Question, Trial, lift_sample_of
from .estimate import Estimate, calls_of_trial, estimate_of
from .evaluate import Evaluator, asked_cases

# Scores of an arm by sample: of every case that asks it, the scores of all runs.
Scores = Mapping[str, Sequence[Sequence[float]]]

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
    """The skill of a SKILL.md with its own cases; InputError if
    one of its files is broken.
    """
    suite = read_suites(file.parent).cases
    cases = tuple(runnable_in(suite)) if suite and suite.has_cases else ()
    score = score_of(settings.score, [case for case, _ in cases])
    path = suite.path if suite else file
    return SkillCases(label, load_for_run(file, settings), cases, score, path)


@dataclass(frozen=True)
class CasesInArms:
    """Cases of a skill, and the arms that they are carried out in."""

    skill: Skill
    cases: tuple[CheckedCase, ...]
    arms: tuple[Arm, ...]  # each of its name in the study
    score: Score = "pass"


@dataclass(frozen=True)
class StudyPlan:
    """Contrasts of one subject that are judged together,
    with 5 % error for all of them.
    """

    title: str
    legend: str  # what a change is
    subject: Subject
    groups: tuple[CasesInArms, ...]
    contrasts: tuple[Contrast, ...]
    # In sentences, from the scores of the arms too.
    conclude: Callable[[Study, Mapping[str, Scores]], Study] = lambda study, _: study


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
        max_age = self.evaluator.settings.max_age
        by_arm: dict[str, list[Record]] = {
            arm.name: [] for group in plan.groups for arm in group.arms
        }
        for record in records:
            by_arm[record.arm].append(record)
        keys = (item.trial.question.key for item in asked)
        by_question = dict(zip(keys, records, strict=True))
        answers = _Answers(
            plan, self.runs, max_age, by_arm, by_question, interrupted=interrupted
        )
        study = answers.study()
        self.done(_done_words(study))
        return plan.conclude(study, answers.scores)

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
        planned = [item.trial for plan in plans for item in self._trials(plan)]
        return replace(
            self.estimate_of(planned, free=free), warning=self._warning(plans)
        )

    def estimate_of(self, planned: Sequence[Trial], *, free: bool) -> Estimate:
        """What trials take that is not stored."""
        trials = {trial.question.key: trial for trial in planned}
        stored = self.stored([trial.question for trial in trials.values()])
        new = [trial for key, trial in trials.items() if key not in stored.used]
        calls = [group for trial in new for group in calls_of_trial(trial)]
        by_agents = sum(trial.question.task is not None for trial in new)
        return estimate_of(
            calls,
            self.evaluator.price_of,
            free=free or not calls,
            trials=by_agents,
            stored=len(stored.used),
            outdated=len(stored.outdated),
        )

    def _warning(self, plans: Sequence[StudyPlan]) -> str:
        """If there are too few cases to show anything, however large."""
        fewest = fewest_cases()
        groups = [group for plan in plans for group in plan.groups]
        samples = [
            {lift_sample_of(case) for case, _ in group.cases} for group in groups
        ]
        most = max(map(len, samples), default=0)
        if most >= fewest:
            return ""
        return f"Too few cases: {most} can't show any difference ({fewest} needed)."

    def _trials(self, plan: StudyPlan) -> Iterator[ToGrade]:
        for group in plan.groups:
            for checked in group.cases:
                # A case may say that it has fewer runs.
                runs = min(self.runs, checked[0].runs or self.runs)
                yield from self.evaluator.trials(
                    group.skill, [checked], plan.subject, group.arms, range(1, runs + 1)
                )


def _done_words(study: Study) -> str:
    """``1 of 5 differences shown, 1 incomplete``."""
    words = Counter(contrast.word for contrast in study.contrasts)
    shown, incomplete = words["helps"] + words["hurts"], words["incomplete"]
    missing = f", {incomplete:,} incomplete" if incomplete else ""
    return f"{shown:,} of {counted(words.total(), 'difference')} shown{missing}"


@dataclass
class _Answers:
    """All answers of a study."""

    plan: StudyPlan
    runs: int
    max_age: float  # seconds between answers that can be compared
    records: Mapping[str, Sequence[Record]]  # by arm
    by_question: Mapping[str, Record]  # arms share some
    interrupted: bool

    def _judged(self) -> dict[str, Lift]:
        """All contrasts without missing answers, judged together."""
        family: dict[str, Differences] = {}
        for contrast in self.plan.contrasts:
            if self._lacks_answers(contrast):
                continue
            if by_case := differences(contrast, self.scores):
                family[contrast.name] = by_case
        return judge_family(family)

    def _lacks_answers(self, contrast: Contrast) -> bool:
        records = self._records_of(contrast)
        has_errors = any(record.outcome == "errored" for record in records)
        return has_errors or self._is_apart(contrast)

    def _is_apart(self, contrast: Contrast) -> bool:
        return asked_apart(self._records_of(contrast), self.max_age)

    def _records_of(self, contrast: Contrast) -> Iterator[Record]:
        names = (*contrast.plus, *contrast.minus)
        return chain.from_iterable(self.records[name] for name in names)

    @cached_property
    def scores(self) -> dict[str, Scores]:
        return {
            arm.name: scores_of(group, self.records[arm.name])
            for group in self.plan.groups
            for arm in group.arms
        }

    def study(self) -> Study:
        """What came of it, without conclusions."""
        records, plan = [*chain.from_iterable(self.records.values())], self.plan
        costs = [
            record.cost for record in self.by_question.values() if not record.stored
        ]
        errors = [
            record.error or "" for record in records if record.outcome == "errored"
        ]
        judged = self._judged()
        return Study(
            title=plan.title,
            legend=plan.legend,
            agent=plan.subject.agent,
            model=plan.subject.model,
            arms=tuple(
                _arm(arm, self.records[arm.name], self.scores[arm.name])
                for group in plan.groups
                for arm in group.arms
            ),
            contrasts=tuple(
                self._measured(contrast, judged.get(contrast.name))
                for contrast in plan.contrasts
            ),
            runs=self.runs,
            trials=len(self.by_question),
            errored=len(errors),
            error=next(
                (error for error, _ in Counter(filter(None, errors)).most_common(1)), ""
            ),
            cost=None if None in costs else sum((usd or 0.0 for usd in costs), 0.0),
            interrupted=self.interrupted,
            apart=any(map(self._is_apart, plan.contrasts)),
        )

    def _measured(self, contrast: Contrast, lift: Lift | None) -> Contrast:
        by_case = differences(contrast, self.scores)
        if lift is None or by_case is None:
            return contrast
        cases = len(by_case.values)
        return replace(contrast, lift=lift, cases=cases, **self._tokens(contrast))

    def _tokens(self, contrast: Contrast) -> dict[str, Any]:
        """Of two arms: a difference of lifts has tokens that say nothing."""
        names = (*contrast.plus, *contrast.minus)
        by_case = paired(
            contrast, {name: _tokens_by_case(self.records[name]) for name in names}
        )
        if len(names) > 2 or not by_case:
            return {}
        mean, spread = mean_and_spread([*by_case.values()])
        if len(by_case) < _MIN_CASES:
            return {"tokens": mean}
        half = half_width(spread, len(by_case), LEVEL)
        return {"tokens": mean, "tokens_span": (mean - half, mean + half)}


def _arm(arm: Arm, records: Sequence[Record], scores: Scores) -> StudyArm:
    answered = [record for record in records if record.outcome != "errored"]
    activities = [record.activity for record in answered if record.activity]
    tokens = _tokens_by_case(records)
    return StudyArm(
        arm.name,
        fmean(map(_mean, scores.values())) if scores else None,
        fmean(tokens.values()) if tokens else None,
        len(activities),
        Counter(
            skill for activity in activities for skill in dict.fromkeys(activity.opened)
        ),
        Counter(activity.opened[0] for activity in activities if activity.opened),
        arm.digest[:16],
    )


def _tokens_by_case(records: Iterable[Record]) -> dict[str, float]:
    by_case: dict[str, list[int]] = {}
    for record in records:
        if record.outcome != "errored" and record.tokens is not None:
            by_case.setdefault(record.case, []).append(record.tokens)
    return {case: fmean(tokens) for case, tokens in by_case.items()}


def scores_of(group: CasesInArms, records: Iterable[Record]) -> Scores:
    """Cases of a group, or that ask the same, are one sample;
    a case with an error is left out.
    """
    samples = {case.id: lift_sample_of(case) for case, _ in group.cases}
    by_case: dict[str, list[float]] = {}
    errored = set[str]()
    for record in records:
        if record.outcome == "errored":
            errored.add(record.case)
        else:
            passed = float(record.outcome == "passed")
            value = passed if group.score == "pass" else record.score or 0.0
            by_case.setdefault(record.case, []).append(value)
    by_sample: dict[str, list[list[float]]] = {}
    for case, values in by_case.items():
        if case not in errored:
            by_sample.setdefault(samples[case], []).append(values)
    # All cases of a sample or none: they must be the same in all arms.
    sizes = Counter(samples.values())
    return {key: cases for key, cases in by_sample.items() if len(cases) == sizes[key]}


def differences(contrast: Contrast, scores: Mapping[str, Scores]) -> Differences | None:
    """The difference of every sample that all arms have; None if there is none."""
    names = (*contrast.plus, *contrast.minus)
    means = {
        name: {key: _mean(cases) for key, cases in scores[name].items()}
        for name in names
    }
    values = paired(contrast, means)
    if not values:
        return None
    return Differences(
        tuple(values.values()),
        reach=float(max(len(contrast.plus), len(contrast.minus))),
        margin=contrast.margin,
    )


def paired(
    contrast: Contrast, by_arm: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """The difference of every case that all arms of a contrast have."""
    plus, minus = (
        [by_arm[name] for name in names] for names in (contrast.plus, contrast.minus)
    )
    common = [
        key for key in plus[0] if all(key in values for values in (*plus, *minus))
    ]
    return {
        key: sum(values[key] for values in plus) - sum(values[key] for values in minus)
        for key in common
    }


def lift_between(over: Scores, of: Scores) -> Lift | None:
    """Of two arms, by itself: not adjusted for other contrasts;
    None without a common sample.
    """
    pairs = [
        (_mean(over[key]), _mean(cases)) for key, cases in of.items() if key in over
    ]
    runs = max((len(values) for cases in of.values() for values in cases), default=0)
    return paired_lift(pairs, runs) if pairs else None


def _mean(cases: Sequence[Sequence[float]]) -> float:
    return fmean(fmean(values) for values in cases)
