"""Studies: the same cases, asked in several arms, and how these differ.

A plan says what is asked (variants), what is compared (contrasts) and what follows from that
(``conclude``); a `StudyRunner` carries it out look by look. `skill_matrix` and `ablation` plan.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from statistics import fmean, variance
from typing import Final

from .._util.texts import counted
from ..checks import CheckedCase, load_checked_cases, why_agent
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..models.prices import PriceOf, cost
from ..results.contrasts import Contrast
from ..results.study import Study, StudyArm
from ..settings import Score, Settings
from ..skills.case_loading import find_cases, has_cases
from ..skills.context import load_for_run
from ..skills.skill import Skill
from ..stats import Differences, Family, cases_to_tell, family_level
from ..stats.power import fewest_cases
from ..trials.arm import SKILL, SkillCopy
from ..trials.plan import SkillInfo, score_of
from ..trials.records import Record
from ..trials.subject import CHAT, Subject
from ..trials.trial import Question, sample_of, trials_of
from .arm_maker import ArmMaker
from .estimate import Estimate, calls_of_trial, estimate_of

MATTERS: Final = 0.1  # the smallest change that nobody would want to miss


@dataclass(frozen=True)
class SkillCases:
    """A skill that is studied, and its cases; it may have none."""

    label: str  # its name in reports
    skill: Skill
    cases: tuple[CheckedCase, ...]
    score: Score = "pass"

    def cases_for(self, subject: Subject, model_id: str) -> tuple[CheckedCase, ...]:
        """The cases for a subject, the same as in a run of tests."""
        return tuple(
            (case, checks)
            for case, checks in self.cases
            if not case.skip
            and case.is_for(subject.label, subject.model, model_id)
            and (subject.agent != CHAT or not why_agent(case, checks))
        )

    def info(self, path: str) -> SkillInfo:
        return SkillInfo.of(self.skill, self.label, path, score=self.score)


def load_skill_cases(file: Path, label: str, settings: Settings) -> SkillCases:
    """The skill of a SKILL.md with its own cases; InputError if one of its files is broken."""
    folder, cases_file = file.parent, find_cases(file.parent)
    cases = tuple[CheckedCase, ...]()
    if cases_file and has_cases(cases_file):
        cases = tuple(load_checked_cases(cases_file, folder=folder).require_all())
    score = score_of(settings.score, [case for case, _ in cases])
    return SkillCases(label, load_for_run(file, settings), cases, score)


@dataclass(frozen=True)
class Variant:
    """An arm of a study: with a skill, as it is or changed, or without; alone or with others."""

    name: str
    skill: Skill
    cases: tuple[CheckedCase, ...]
    arm: str = SKILL  # or BASELINE
    neighbours: tuple[SkillCopy, ...] = ()  # that agents have as well
    score: Score = "pass"


@dataclass(frozen=True)
class StudyPlan:
    """Contrasts of one subject that are judged together, with 5 % error for all of them."""

    title: str
    legend: str  # what a change is
    subject: Subject
    variants: tuple[Variant, ...]
    contrasts: tuple[Contrast, ...]
    conclude: Callable[[Study], Study] = lambda study: study  # in sentences


@dataclass(frozen=True)
class StudyRunner:
    """Carries out studies, and estimates what they take."""

    settings: Settings
    looks: tuple[int, ...]  # numbers of runs after which the contrasts are looked at
    ask: Ask
    version_of: Callable[[str], str]  # of an agent
    price_of: PriceOf  # of a model
    begin: Callable[[str], None] = lambda _: None  # a step, in words
    done: Callable[[str], None] = lambda _: None  # what came of it
    stop: Callable[[], None] | None = None  # after Ctrl-C, ask no more
    stored: Callable[[Sequence[Question]], set[str]] = lambda _: set()  # keys of stored answers

    @cached_property
    def _settings(self) -> Settings:
        """Both arms, and as many runs as there may be."""
        return replace(
            self.settings, runs=self.looks[-1], first_runs=None, baseline=True, against=None
        )

    @cached_property
    def _maker(self) -> ArmMaker:
        return ArmMaker(self._settings)

    def run(self, plan: StudyPlan) -> Study:
        """Ask look by look; variants whose contrasts are all settled are not asked again."""
        progress = _Progress(plan, self.looks)
        for before, runs in pairwise((0, *self.looks)):
            variants = progress.open_variants if before else plan.variants
            self._ask(progress, variants, range(before + 1, runs + 1))
            progress.look(runs)
            self.done(progress.words)
            if not progress.family.open:
                break
        return plan.conclude(progress.study())

    def _ask(self, progress: "_Progress", variants: Sequence[Variant], runs: range) -> None:
        """Ask everything at once, and add the records."""
        subject = progress.plan.subject
        asked = [
            (variant.name, trial)
            for variant in variants
            for trial in self._trials(variant, subject, runs)
        ]
        to_grade, sandbox = [trial for _, trial in asked], self.settings.sandbox
        numbers = f"run {runs[0]}" if len(runs) == 1 else f"runs {runs[0]} to {runs[-1]}"
        self.begin(f"{subject.label}: {numbers}, {counted(len(asked), 'trial')}")
        try:
            graded = records_of(to_grade, self.ask, sandbox)
        except KeyboardInterrupt:
            if self.stop is None:
                raise
            self.stop()
            progress.interrupted = True
            graded = records_of(to_grade, self.ask, sandbox)  # what is answered already
        price = self.price_of(subject.model)
        for (variant, graded_trial), record in zip(asked, graded, strict=True):
            key = graded_trial.trial.question.key
            progress.add(variant, key, replace(record, cost=cost(price, record.usage)))

    def estimate(self, plans: Sequence[StudyPlan], *, free: bool) -> Estimate:
        """What the studies take that is not stored, with as many runs as there may be."""
        planned = [item.trial for item in self._all_trials(plans, self.looks[-1])]
        trials = {trial.question.key: trial for trial in planned}
        stored = self.stored([trial.question for trial in trials.values()])
        new = [trial for key, trial in trials.items() if key not in stored]
        calls = [group for trial in new for group in calls_of_trial(trial)]
        by_agents = sum(trial.question.task is not None for trial in new)
        guess = estimate_of(
            calls, self.price_of, free=free or not calls, trials=by_agents, stored=len(stored)
        )
        return replace(guess, warning=self._warning(plans))

    def _all_trials(self, plans: Iterable[StudyPlan], runs: int) -> Iterable[ToGrade]:
        for plan in plans:
            for variant in plan.variants:
                yield from self._trials(variant, plan.subject, range(1, runs + 1))

    def _warning(self, plans: Sequence[StudyPlan]) -> str:
        """If there are too few cases to show anything, however large."""
        fewest = fewest_cases(family_level(1, self.looks))
        variants = [variant for plan in plans for variant in plan.variants]
        samples = [{sample_of(case) for case, _ in variant.cases} for variant in variants]
        most = max(map(len, samples), default=0)
        if most >= fewest:
            return ""
        return f"Too few cases: {most} can't show any difference ({fewest} needed)."

    def _trials(self, variant: Variant, subject: Subject, runs: range) -> list[ToGrade]:
        cases, skill = [case for case, _ in variant.cases], variant.skill
        agents = subject.agent != CHAT
        arms = self._maker.arms(skill, cases, variant.neighbours, agents=agents)
        return [
            ToGrade(trial, case, checks)
            for case, checks in variant.cases
            for trial in trials_of(
                skill.name,
                case,
                subject,
                [arm for arm in arms if arm.name == variant.arm],
                self._settings,
                rubric_for(checks, self.settings.judge, skill),
                version=self.version_of(subject.agent),
            )
            if trial.run in runs
        ]


@dataclass
class _Progress:
    """A study while it is carried out."""

    plan: StudyPlan
    looks: tuple[int, ...]
    records: dict[str, list[Record]] = field(default_factory=dict)  # by variant
    by_question: dict[str, Record] = field(default_factory=dict)  # variants share some
    interrupted: bool = False
    _incomplete: set[str] = field(default_factory=set)  # contrasts with answers missing

    def __post_init__(self) -> None:
        self.records = {variant.name: [] for variant in self.plan.variants}
        self.family = Family((contrast.name for contrast in self.plan.contrasts), self.looks)

    def add(self, variant: str, key: str, record: Record) -> None:
        self.records[variant].append(record)
        self.by_question[key] = record

    @property
    def open_variants(self) -> list[Variant]:
        """The variants that an open contrast needs."""
        contrasts = (contrast for contrast in self.plan.contrasts if self._is_open(contrast))
        needed = {name for contrast in contrasts for name in (*contrast.plus, *contrast.minus)}
        return [variant for variant in self.plan.variants if variant.name in needed]

    def _is_open(self, contrast: Contrast) -> bool:
        return contrast.name in self.family.open

    @property
    def words(self) -> str:
        """``1 of 5 differences shown, 2 open, 1 incomplete``; others are not worth further runs."""
        total = counted(len(self.plan.contrasts), "difference")
        shown = self.family.shown.keys() - self._incomplete
        counts = {"open": len(self.family.open), "incomplete": len(self._incomplete)}
        words = [f"{number:,} {word}" for word, number in counts.items() if number]
        return ", ".join([f"{len(shown):,} of {total} shown", *words])

    def look(self, runs: int) -> None:
        """Judge all contrasts that are not shown yet, and settle those that can be."""
        scores, by_contrast = self._scores(), dict[str, Differences]()
        for contrast in filter(self._is_open, self.plan.contrasts):
            if self._has_errors(contrast):
                self._incomplete.add(contrast.name)
                if contrast.name in self.family.known:
                    continue  # the look before had all answers, and says more
            if by_case := differences(contrast, scores, runs):
                by_contrast[contrast.name] = by_case
        self.family.look(by_contrast, self._incomplete)
        if self.interrupted:
            self._incomplete |= self.family.open
            self.family.open.clear()

    def _has_errors(self, contrast: Contrast) -> bool:
        records = (self.records[name] for name in (*contrast.plus, *contrast.minus))
        return any(record.outcome == "errored" for record in chain.from_iterable(records))

    def _scores(self) -> dict[str, "Scores"]:
        variants = self.plan.variants
        return {
            variant.name: scores_of(variant, self.records[variant.name]) for variant in variants
        }

    def study(self) -> Study:
        """What came of it so far, without conclusions."""
        records, plan = [*chain.from_iterable(self.records.values())], self.plan
        costs = [record.cost for record in self.by_question.values() if not record.stored]
        errors = [record.error or "" for record in records if record.outcome == "errored"]
        scores = self._scores()
        return Study(
            title=plan.title,
            legend=plan.legend,
            agent=plan.subject.agent,
            model=plan.subject.model,
            arms=tuple(_arm(name, rows, scores[name]) for name, rows in self.records.items()),
            contrasts=tuple(map(self._measured, plan.contrasts)),
            trials=len(self.by_question),
            errored=len(errors),
            error=next((error for error, _ in Counter(filter(None, errors)).most_common(1)), ""),
            cost=None if None in costs else sum((usd or 0.0 for usd in costs), 0.0),
            interrupted=self.interrupted,
        )

    def _measured(self, contrast: Contrast) -> Contrast:
        name, family = contrast.name, self.family
        by_case, judged = family.known.get(name), {**family.unshown, **family.shown}.get(name)
        if by_case is None or judged is None:
            return contrast
        needed = judged.cases_needed
        if needed is None and name in family.unshown and contrast.margin is None:
            level = family_level(len(self.plan.contrasts), self.looks)
            needed = cases_to_tell(by_case.values, MATTERS, level, by_case.reach)
        if name in self._incomplete:
            state = contrast.state
        elif name in family.shown:
            state = "shown"
        else:
            state = "none shown" if by_case.runs == self.looks[-1] else "dropped"
        return replace(
            contrast,
            lift=judged.lift,
            cases=len(by_case.values),
            runs=by_case.runs,
            state=state,
            cases_needed=needed if needed and needed > len(by_case.values) else None,
            tokens=self._tokens(contrast),
        )

    def _tokens(self, contrast: Contrast) -> float | None:
        """Of two arms: a difference of lifts has tokens that say nothing."""
        if len(contrast.plus) > 1:
            return None
        names = (*contrast.plus, *contrast.minus)
        by_case = paired(contrast, {name: _tokens_by_case(self.records[name]) for name in names})
        return fmean(by_case.values()) if by_case else None


def _arm(name: str, records: Sequence[Record], scores: "Scores") -> StudyArm:
    answered = [record for record in records if record.outcome != "errored"]
    activities = [record.activity for record in answered if record.activity]
    tokens = _tokens_by_case(records)
    return StudyArm(
        name,
        fmean(map(_mean, scores.values())) if scores else None,
        fmean(tokens.values()) if tokens else None,
        len(activities),
        Counter(skill for activity in activities for skill in dict.fromkeys(activity.opened)),
    )


def _tokens_by_case(records: Iterable[Record]) -> dict[str, float]:
    by_case: dict[str, list[int]] = {}
    for record in records:
        if record.outcome != "errored" and record.tokens is not None:
            by_case.setdefault(record.case, []).append(record.tokens)
    return {case: fmean(tokens) for case, tokens in by_case.items()}


# Scores of a variant by sample: of every case that asks it, the scores of all runs.
Scores = Mapping[str, Sequence[Sequence[float]]]


def scores_of(variant: Variant, records: Iterable[Record]) -> Scores:
    """Cases that ask the same are one sample; a case with an error is left out."""
    samples = {case.id: sample_of(case) for case, _ in variant.cases}
    by_case: dict[str, list[float]] = {}
    errored = set[str]()
    for record in records:
        if record.outcome == "errored":
            errored.add(record.case)
        else:
            passed = float(record.outcome == "passed")
            value = passed if variant.score == "pass" else record.score or 0.0
            by_case.setdefault(record.case, []).append(value)
    by_sample: dict[str, list[list[float]]] = {}
    for case, values in by_case.items():
        if case not in errored:
            by_sample.setdefault(samples[case], []).append(values)
    # All cases of a sample or none: they must be the same in all variants.
    sizes = Counter(samples.values())
    return {key: cases for key, cases in by_sample.items() if len(cases) == sizes[key]}


def differences(contrast: Contrast, scores: Mapping[str, Scores], runs: int) -> Differences | None:
    """The difference of every sample that all arms have; None if there is none."""
    names = (*contrast.plus, *contrast.minus)
    means = {name: {key: _mean(cases) for key, cases in scores[name].items()} for name in names}
    values = paired(contrast, means)
    if not values:
        return None
    return Differences(
        tuple(values.values()),
        runs,
        fmean(sum(_chance(scores[name][key]) for name in names) for key in values),
        reach=float(max(len(contrast.plus), len(contrast.minus))),
        margin=contrast.margin,
    )


def paired(contrast: Contrast, by_arm: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The difference of every case that all arms of a contrast have."""
    plus, minus = ([by_arm[name] for name in names] for names in (contrast.plus, contrast.minus))
    common = [key for key in plus[0] if all(key in values for values in (*plus, *minus))]
    return {
        key: sum(values[key] for values in plus) - sum(values[key] for values in minus)
        for key in common
    }


def _mean(cases: Sequence[Sequence[float]]) -> float:
    return fmean(fmean(values) for values in cases)


def _chance(cases: Sequence[Sequence[float]]) -> float:
    """The variance of a run; cases of a sample share their answers, so they don't reduce it."""
    return fmean(variance(values) if len(values) > 1 else 0.0 for values in cases)
