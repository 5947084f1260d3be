"""A study: the same cases, asked with skills installed in several ways, and how these differ.

The matrix of neighbours, the ablation of parts and the versions of ``distill`` are studies. A study
says what is asked (variants), what is compared (contrasts) and how the results are made
(``conclude``); a `StudyRunner` carries it out, for the commands and for pytest.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean, variance

from ..checks import CheckedCase, load_checked_cases, why_agent
from ..results.effects import Effect
from ..results.neighbours import Matrix
from ..results.part_effects import Parts
from ..settings import Score, Settings
from ..skills.case_loading import find_cases, has_cases
from ..skills.context import load_for_run
from ..skills.skill import Skill
from ..stats import LEVEL, Differences, Lift, paired_lift
from ..trials.arm import SkillCopy
from ..trials.plan import SkillInfo, score_of
from ..trials.records import Record
from ..trials.subject import CHAT, Subject
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
        """The cases for a subject, the same as in a run of tests."""
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
        cases = tuple(load_checked_cases(cases_file, folder=folder).require_all())
    score = score_of(settings.score, [case for case, _ in cases])
    return SkillCases(label, load_for_run(file, settings), cases, score)


@dataclass(frozen=True)
class Variant:
    """A way to ask cases: with a skill, as it is or changed, or without; alone or with others."""

    name: str
    skill: Skill
    cases: tuple[CheckedCase, ...]
    arm: str = "skill"  # or "baseline"
    neighbours: tuple[SkillCopy, ...] = ()  # that agents have as well
    score: Score = "pass"
    prompt: Prompt = default_prompt


@dataclass(frozen=True)
class Contrast:
    """A difference of variants of the same cases: the scores of some, less those of others."""

    name: str
    plus: tuple[str, ...]
    minus: tuple[str, ...]
    margin: float | None = None  # a loss below it does not count

    def differences(self, scores: Mapping[str, "Scores"], runs: int) -> Differences | None:
        """By sample; None if no sample has scores in all variants."""
        plus, minus = ([scores[name] for name in names] for names in (self.plus, self.minus))
        return differences(plus, minus, runs, self.margin)


@dataclass(frozen=True)
class Studied:
    """What came of a study."""

    effects: Mapping[str, Effect]  # by contrast
    records: Mapping[str, tuple[Record, ...]]  # by variant
    scores: Mapping[str, "Scores"]  # by variant
    trials: int = 0  # new or stored
    cost: float | None = None  # of new answers
    interrupted: bool = False

    def lift(self, plus: str, minus: str, level: float = LEVEL) -> Lift | None:
        """The lift of a variant over another: a description, not one of the tests."""
        higher, lower = self.scores[plus], self.scores[minus]
        pairs = [(_mean(lower[key]), _mean(higher[key])) for key in higher if key in lower]
        samples = (*higher.values(), *lower.values())
        runs = [len(values) for sample in samples for values in sample]
        return paired_lift(pairs, max(runs), level) if pairs else None

    @property
    def errored(self) -> int:
        """How many records have no answer."""
        return sum(record.outcome == "errored" for record in self._all_records)

    @property
    def most_common_error(self) -> str:
        errors = [record.error for record in self._all_records if record.outcome == "errored"]
        return next((error for error, _ in Counter(filter(None, errors)).most_common(1)), "")

    @property
    def _all_records(self) -> Iterable[Record]:
        return chain.from_iterable(self.records.values())


@dataclass(frozen=True)
class Study:
    """Contrasts of one subject that are judged together, with 5 % error for all of them."""

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


def differences(
    plus: Sequence[Scores],
    minus: Sequence[Scores],
    runs: int,
    margin: float | None = None,
) -> Differences | None:
    """The difference of every sample that all variants have; None if there is none."""
    common = [key for key in plus[0] if all(key in scores for scores in (*plus, *minus))]
    if not common:
        return None
    values = [
        sum(_mean(scores[key]) for scores in plus) - sum(_mean(scores[key]) for scores in minus)
        for key in common
    ]
    chance = fmean(sum(_chance(scores[key]) for scores in (*plus, *minus)) for key in common)
    return Differences(
        tuple(values), runs, chance, reach=float(max(len(plus), len(minus))), margin=margin
    )


def _mean(cases: Sequence[Sequence[float]]) -> float:
    return fmean(fmean(values) for values in cases)


def _chance(cases: Sequence[Sequence[float]]) -> float:
    """The variance of a run; cases of a sample share their answers, so they don't reduce it."""
    return fmean(variance(values) if len(values) > 1 else 0.0 for values in cases)
