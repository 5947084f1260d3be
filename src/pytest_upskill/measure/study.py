"""A study: the same cases, asked with skills installed in several ways, and how these differ.

The matrix of neighbours, the ablation of parts and the versions of ``distill`` are studies. Who
plans one says what is asked (variants), what is compared (contrasts), and what to make of it
(``conclude``); a `Lab` carries it out, for the commands and for pytest.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean

from ..checks import CheckedCase, load_checked_cases, why_agent
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..models.prices import Price, cost
from ..results.effects import Effect
from ..results.neighbours import Matrix
from ..results.parts import Parts
from ..settings import Score, Settings
from ..skills.case import find_cases, has_cases
from ..skills.context import load_for_run
from ..skills.skill import Skill, estimated_tokens
from ..stats import Lift, paired_lift
from ..trials.answer import Usage
from ..trials.plan import SkillInfo, score_of
from ..trials.records import Record
from ..trials.subject import CHAT, Subject
from ..trials.task import Installed
from ..trials.trial import Arm, Prompt, default_prompt, trials_of
from .estimate import ANSWER, QUESTION, Calls, Estimate, calls_of_trial, estimate_of
from .outfits import Outfits


@dataclass(frozen=True)
class SkillCases:
    """A skill that is studied, and its cases; it may have none."""

    label: str  # its name in reports
    skill: Skill
    cases: tuple[CheckedCase, ...]
    score: Score = "pass"
    prompt: Prompt = default_prompt

    def cases_for(self, subject: Subject, model_id: str) -> tuple[CheckedCase, ...]:
        """The cases that an agent on a model is asked: those that a run of tests asks it, too."""
        return tuple(
            (case, checks)
            for case, checks in self.cases
            if not case.skip
            and case.is_for(subject.label, subject.model, model_id)
            and (subject.agent != CHAT or not why_agent(case, checks))
        )


def load_skill_cases(file: Path, label: str, settings: Settings) -> SkillCases:
    """The skill of a SKILL.md with its own cases; InputError if one of its files is broken."""
    folder, cases_file = file.parent, find_cases(file.parent)
    cases = tuple[CheckedCase, ...]()
    if cases_file and has_cases(cases_file):
        cases = tuple(load_checked_cases(cases_file, folder=folder).whole())
    score = score_of(settings.score, [case for case, _ in cases])
    return SkillCases(label, load_for_run(file, settings), cases, score)


@dataclass(frozen=True)
class Variant:
    """A way to ask cases: with a skill, as it is or changed, or without; among others or alone."""

    name: str
    skill: Skill
    cases: tuple[CheckedCase, ...]
    arm: Arm = "skill"  # or "baseline"
    others: tuple[Installed, ...] = ()  # that agents have besides
    score: Score = "pass"
    prompt: Prompt = default_prompt


@dataclass(frozen=True)
class Contrast:
    """A difference of variants of the same cases: the scores of some, less those of others."""

    name: str
    plus: tuple[str, ...]
    minus: tuple[str, ...]


@dataclass(frozen=True)
class Studied:
    """What came of a study."""

    effects: Mapping[str, Effect]  # by contrast
    records: Mapping[str, tuple[Record, ...]]  # by variant
    lifts: Mapping[tuple[str, str], Lift]  # of any two variants of the same cases, unadjusted
    trials: int = 0
    cost: float | None = None
    interrupted: bool = False

    def lift(self, plus: str, minus: str) -> Lift | None:
        """The lift of a variant over another; a description, not one of the tests."""
        return self.lifts.get((plus, minus))


@dataclass(frozen=True)
class Study:
    """Contrasts on an agent and model that are judged together: all of them err in 5 %."""

    subject: Subject
    variants: tuple[Variant, ...]
    contrasts: tuple[Contrast, ...]
    conclude: Callable[[Studied], Matrix | Parts]


@dataclass(frozen=True)
class Lab:
    """What studies are carried out with."""

    settings: Settings
    looks: tuple[int, ...]  # numbers of runs after which the effects are looked at
    ask: Ask
    version_of: Callable[[str], str]  # of an agent
    price_of: Callable[[str], Price | None]  # of a model
    tell: Callable[[str], None] = lambda _: None  # what is going on

    @cached_property
    def _settings(self) -> Settings:
        """Both arms, and as many runs as there may be."""
        return replace(
            self.settings, runs=self.looks[-1], first_runs=None, baseline=True, against=None
        )

    @cached_property
    def _outfits(self) -> Outfits:
        return Outfits(lambda: self._settings, self.version_of)

    def run(self, study: Study) -> Studied:
        """Ask look by look; variants of which all contrasts are settled are asked no more."""
        records = {one.name: list[Record]() for one in study.variants}
        runs = self.looks[-1]
        to_grade = [
            (variant.name, one)
            for variant in study.variants
            for one in self._trials(variant, study.subject, range(1, runs + 1))
        ]
        graded = records_of([one for _, one in to_grade], self.ask, self.settings.sandbox)
        price = self.price_of(study.subject.model)
        for (name, _), record in zip(to_grade, graded, strict=True):
            records[name].append(replace(record, cost=cost(price, record.usage)))
        scores = {one.name: _by_case(records[one.name], one.score) for one in study.variants}
        effects = {one.name: _effect(one, scores, runs) for one in study.contrasts}
        costs = [record.cost for own in records.values() for record in own if not record.stored]
        known = [usd for usd in costs if usd is not None]
        return Studied(
            effects,
            {name: tuple(own) for name, own in records.items()},
            _lifts(scores, runs),
            len(to_grade),
            sum(known) if len(known) == len(costs) else None,
        )

    def estimate(self, studies: Sequence[Study], free: bool) -> Estimate:
        """What the studies take, from one look at each to all of them."""
        least, most = (
            self._estimate(studies, runs, free) for runs in (self.looks[0], self.looks[-1])
        )
        return replace(most, least=least)

    def _estimate(self, studies: Sequence[Study], runs: int, free: bool) -> Estimate:
        calls, asked, of_agents = list[Calls](), set[str](), 0
        for study in studies:
            for variant in study.variants:
                for one in self._trials(variant, study.subject, range(1, runs + 1)):
                    question, rubric = one.trial.question, one.trial.rubric
                    if question.key in asked:
                        continue
                    asked.add(question.key)
                    own = calls_of_trial(question)
                    calls.append(own)
                    of_agents += question.task is not None
                    if rubric:
                        tokens = estimated_tokens("".join(rubric.texts)) + ANSWER + QUESTION
                        calls.append(Calls(rubric.judge, rubric.votes, Usage(tokens, ANSWER, 0)))
        return estimate_of(calls, self.price_of, free=free, trials=of_agents)

    def _trials(self, variant: Variant, subject: Subject, runs: Iterable[int]) -> list[ToGrade]:
        wanted = set(runs)
        cases = [case for case, _ in variant.cases]
        outfit = self._outfits.of(subject.agent, variant.skill, cases, variant.others)
        return [
            ToGrade(trial, case, checks)
            for case, checks in variant.cases
            for trial in trials_of(
                variant.skill.name,
                variant.skill,
                case,
                subject.model,
                self._settings,
                rubric_for(checks, self.settings.judge, variant.skill),
                variant.prompt,
                outfit,
            )
            if trial.arm == variant.arm and trial.run in wanted
        ]


def info_of(source: SkillCases, path: str) -> SkillInfo:
    return SkillInfo.of(source.skill, source.label, path, score=source.score)


def _by_case(records: Iterable[Record], score: Score) -> dict[str, float]:
    """The mean score of each case that has one."""
    found: dict[str, list[float]] = {}
    for one in records:
        if one.outcome != "errored":
            value = float(one.outcome == "passed") if score == "pass" else one.score
            found.setdefault(one.case, []).append(value or 0.0)
    return {case: fmean(values) for case, values in found.items()}


def _pairs(
    plus: Sequence[Mapping[str, float]], minus: Sequence[Mapping[str, float]]
) -> list[tuple[float, float]]:
    cases = set.intersection(*(set(one) for one in (*plus, *minus)))
    return [
        (sum(one[case] for one in minus), sum(one[case] for one in plus)) for case in sorted(cases)
    ]


def _lifts(scores: Mapping[str, Mapping[str, float]], runs: int) -> dict[tuple[str, str], Lift]:
    return {
        (plus, minus): paired_lift(pairs, runs)
        for plus in scores
        for minus in scores
        if plus != minus and (pairs := _pairs([scores[plus]], [scores[minus]]))
    }


def _effect(contrast: Contrast, scores: Mapping[str, Mapping[str, float]], runs: int) -> Effect:
    plus, minus = ([scores[name] for name in names] for names in (contrast.plus, contrast.minus))
    pairs = _pairs(plus, minus)
    lift = paired_lift(pairs, runs) if pairs else None
    shown = lift is not None and lift.shown
    return Effect(contrast.name, lift, len(pairs), runs, "shown" if shown else "none shown")
