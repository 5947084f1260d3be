"""A study: the same cases, asked with skills installed in several ways, and how these differ.

The matrix of neighbours, the ablation of parts and the versions of ``distill`` are studies. Who
plans one says what is asked (variants), what is compared (contrasts), and what to make of it
(``conclude``); a `Lab` carries it out, for the commands and for pytest.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, variance

from ..checks import CheckedCase, load_checked_cases, why_agent
from ..results.effects import Effect
from ..results.neighbours import Matrix
from ..results.parts import Parts
from ..settings import Score, Settings
from ..skills.case_loading import find_cases, has_cases
from ..skills.context import load_for_run
from ..skills.skill import Skill
from ..stats import LEVEL, Differences, Lift, paired_lift
from ..trials.plan import SkillInfo, score_of
from ..trials.records import Record
from ..trials.subject import CHAT, Arm, Subject
from ..trials.task import Installed
from ..trials.trial import Prompt, default_prompt, sample_of


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
    margin: float | None = None  # a loss of less does not count, and may be shown not to be there


@dataclass(frozen=True)
class Studied:
    """What came of a study."""

    effects: Mapping[str, Effect]  # by contrast
    records: Mapping[str, tuple[Record, ...]]  # by variant
    scores: Mapping[str, "Scores"]  # by variant
    trials: int = 0  # asked for, or known already
    cost: float | None = None  # of new answers
    interrupted: bool = False

    def lift(self, plus: str, minus: str, level: float = LEVEL) -> Lift | None:
        """The lift of a variant over another: a description, not one of the tests."""
        more, less = self.scores[plus], self.scores[minus]
        pairs = [(_mean(less[one]), _mean(more[one])) for one in more if one in less]
        runs = [len(values) for one in (more, less) for own in one.values() for values in own]
        return paired_lift(pairs, max(runs), level) if pairs else None


@dataclass(frozen=True)
class Study:
    """Contrasts on an agent and model that are judged together: all of them err in 5 %."""

    subject: Subject
    variants: tuple[Variant, ...]
    contrasts: tuple[Contrast, ...]
    conclude: Callable[[Studied], Matrix | Parts]


def info_of(source: SkillCases, path: str) -> SkillInfo:
    return SkillInfo.of(source.skill, source.label, path, score=source.score)


# Scores of a variant by sample: of every case that asks it, the scores of all runs.
Scores = Mapping[str, Sequence[Sequence[float]]]


def scores_of(variant: Variant, records: Iterable[Record]) -> Scores:
    """Cases that ask the same are one sample; a case with an error is left out."""
    samples = {case.id: sample_of(case) for case, _ in variant.cases}
    found: dict[str, list[float]] = {}
    broken = set[str]()
    for one in records:
        if one.outcome == "errored":
            broken.add(one.case)
        else:
            passed = float(one.outcome == "passed")
            value = passed if variant.score == "pass" else one.score or 0.0
            found.setdefault(one.case, []).append(value)
    grouped: dict[str, list[list[float]]] = {}
    for case, values in found.items():
        if case not in broken:
            grouped.setdefault(samples[case], []).append(values)
    # Of a sample, all cases or none: they must be the same ones in all variants.
    sizes = dict.fromkeys(grouped, 0)
    for sample in samples.values():
        sizes[sample] = sizes.get(sample, 0) + 1
    return {sample: own for sample, own in grouped.items() if len(own) == sizes[sample]}


def differences(
    plus: Sequence[Scores],
    minus: Sequence[Scores],
    runs: int,
    margin: float | None = None,
) -> Differences | None:
    """The difference of every sample that all variants have; None if there is none."""
    common = [one for one in plus[0] if all(one in scores for scores in (*plus, *minus))]
    if not common:
        return None
    values = [
        sum(_mean(scores[one]) for scores in plus) - sum(_mean(scores[one]) for scores in minus)
        for one in common
    ]
    chance = fmean(sum(_chance(scores[one]) for scores in (*plus, *minus)) for one in common)
    return Differences(
        tuple(values), runs, chance, reach=float(max(len(plus), len(minus))), margin=margin
    )


def _mean(cases: Sequence[Sequence[float]]) -> float:
    return fmean(fmean(values) for values in cases)


def _chance(cases: Sequence[Sequence[float]]) -> float:
    """The variance of a run; cases of a sample share their answers, so they don't reduce it."""
    return fmean(variance(values) if len(values) > 1 else 0.0 for values in cases)
