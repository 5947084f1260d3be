"""A study: the same cases, asked with skills installed in several ways, and how these differ.

The matrix of neighbours, the ablation of parts and the versions of ``distill`` are studies.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..checks import CheckedCase
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..results.effects import Effect
from ..settings import Score, Settings
from ..skills.skill import Skill
from ..stats import paired_lift
from ..trials.outfit import Outfit
from ..trials.records import Record
from ..trials.subject import Subject
from ..trials.task import Installed
from ..trials.trial import Arm, trials_of


@dataclass(frozen=True)
class Variant:
    """A way to ask cases: with a skill, as it is or changed, or without; among others or alone."""

    name: str
    skill: Skill
    cases: tuple[CheckedCase, ...]
    arm: Arm = "skill"  # or "baseline"
    others: tuple[Installed, ...] = ()  # that agents have besides


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


OutfitOf = Callable[[str, Variant], Outfit | None]  # of an agent; None for a plain completion


def run_study(
    variants: Sequence[Variant],
    contrasts: Sequence[Contrast],
    subject: Subject,
    settings: Settings,
    looks: tuple[int, ...],
    ask: Ask,
    outfit_of: OutfitOf = lambda _agent, _variant: None,
    score: Score = "pass",
) -> Studied:
    """Ask look by look; variants of which all contrasts are settled are asked no more."""
    records = {one.name: list[Record]() for one in variants}
    runs = looks[-1]
    to_grade = [
        (variant.name, one)
        for variant in variants
        for one in _trials(variant, subject, settings, range(1, runs + 1), outfit_of)
    ]
    graded = records_of([one for _, one in to_grade], ask, settings.sandbox)
    for (name, _), record in zip(to_grade, graded, strict=True):
        records[name].append(record)
    scores = {name: _by_case(own, score) for name, own in records.items()}
    effects = {one.name: _effect(one, scores, runs) for one in contrasts}
    return Studied(effects, {name: tuple(own) for name, own in records.items()})


def _trials(
    variant: Variant,
    subject: Subject,
    settings: Settings,
    runs: Iterable[int],
    outfit_of: OutfitOf,
) -> list[ToGrade]:
    wanted, outfit = set(runs), outfit_of(subject.agent, variant)
    return [
        ToGrade(trial, case, checks)
        for case, checks in variant.cases
        for trial in trials_of(
            variant.skill.name,
            variant.skill,
            case,
            subject.model,
            settings,
            rubric_for(checks, settings.judge, variant.skill),
            outfit=outfit,
        )
        if trial.arm == variant.arm and trial.run in wanted
    ]


def _by_case(records: Iterable[Record], score: Score) -> dict[str, float]:
    """The mean score of each case that has one."""
    found: dict[str, list[float]] = {}
    for one in records:
        if one.outcome != "errored":
            value = float(one.outcome == "passed") if score == "pass" else one.score
            found.setdefault(one.case, []).append(value or 0.0)
    return {case: fmean(values) for case, values in found.items()}


def _effect(contrast: Contrast, scores: Mapping[str, Mapping[str, float]], runs: int) -> Effect:
    plus, minus = ([scores[name] for name in names] for names in (contrast.plus, contrast.minus))
    cases = set.intersection(*(set(one) for one in (*plus, *minus)))
    pairs = [
        (sum(one[case] for one in minus), sum(one[case] for one in plus)) for case in sorted(cases)
    ]
    lift = paired_lift(pairs, runs) if pairs else None
    shown = lift is not None and lift.shown
    return Effect(contrast.name, lift, len(pairs), runs, "shown" if shown else "none shown")
