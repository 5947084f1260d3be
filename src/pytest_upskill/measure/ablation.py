"""The parts of a skill as a study: the full skill, without each part, and no skill."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from pathlib import Path
from statistics import fmean, median
from typing import Final

from ..checks import CheckedCase
from ..errors import InputError, shown
from ..results.effects import MARGIN
from ..results.part_effects import PartEffect, Parts, SavedTokens, ShorterVersion
from ..settings import Settings
from ..skills.context import load_for_run
from ..skills.copies import PartedSkill, text_files
from ..skills.skill import Skill, body_of, estimated_tokens
from ..skills.skill_parts import By, Part
from ..stats import LEVEL, family_level
from ..stats.descriptive import mean_and_spread
from ..stats.intervals import half_width
from ..trials.records import Record
from ..trials.subject import CHAT, Subject
from .arm_maker import files_of_cases
from .study import Contrast, SkillCases, Studied, Study, Variant

_FULL: Final = "full"
_BASELINE: Final = "baseline"
_SHORT: Final = "short"
_MIN_CASES: Final = 3  # for an interval of tokens
NOT_IN_CONTEXT: Final = "a plain completion does not see it, so it neither costs nor gains anything"
_ONLY_PART: Final = "it is all there is, so leaving it out is the baseline"


@dataclass(frozen=True)
class Ablation:
    """A skill to be studied part by part, on an agent and model, with some of its cases."""

    source: SkillCases
    subject: Subject
    cases: tuple[CheckedCase, ...]
    folder: Path  # for copies of the skill without a part
    settings: Settings
    by: By = "section"
    margin: float = MARGIN

    @cached_property
    def parted(self) -> PartedSkill:
        return PartedSkill.of(self.source.skill, self.by, self._files)

    @cached_property
    def _files(self) -> list[str]:
        """The files that a model may see; in a plain completion, only those in context."""
        skill = self.source.skill
        if self.subject.agent == CHAT:
            return [path for path, _ in skill.references]
        return text_files(skill, self._files_of_cases)

    @cached_property
    def _files_of_cases(self) -> tuple[str, ...]:
        return files_of_cases(self.source.skill, [case for case, _ in self.source.cases])

    @cached_property
    def parts(self) -> list[Part]:
        """The parts that can be left out without leaving SKILL.md empty."""
        parts = self.parted.parts
        return [part for part in parts if part.kind == "file" or self.leaves_text([part])]

    def leaves_text(self, parts: Iterable[Part]) -> bool:
        """Whether SKILL.md says anything without these parts."""
        return bool(body_of(self.parted.without(parts)[0].encode("utf-8")))

    @property
    def _not_measured(self) -> dict[str, str]:
        parts = self.parted.parts
        reasons = {part.name: _ONLY_PART for part in parts if part not in self.parts}
        if self.subject.agent == CHAT:
            files = text_files(self.source.skill, self._files_of_cases)
            reasons |= {path: NOT_IN_CONTEXT for path in files if path not in self._files}
        return reasons

    @property
    def problem(self) -> str:
        """Why it can't be studied; empty if it can."""
        if not self.cases:
            return f"there are no cases for {self.subject.label}"
        if not self.parts:
            return f"it has only one {self.by}, and leaving that out is the baseline"
        return ""

    def study(self) -> Study:
        """The study; InputError if there is a `problem`."""
        if self.problem:
            hint = "Write more of them."
            if self.cases and self.by == "section":
                hint = "Cut it by paragraph, not by section."
            raise InputError(shown(self.source.skill.file), self.problem, hint)
        variants = [self._variant(_FULL), self._variant(_BASELINE, arm="baseline")]
        variants += [
            self._variant(_name(number), self.without([part]))
            for number, part in enumerate(self.parts)
        ]
        contrasts = [
            Contrast(_name(number), (_name(number),), (_FULL,), self.margin)
            for number, _ in enumerate(self.parts)
        ]
        lift = Contrast(_BASELINE, (_FULL,), (_BASELINE,))
        return Study(self.subject, tuple(variants), (lift, *contrasts), self.concluded)

    def _variant(self, name: str, skill: Skill | None = None, arm: str = "skill") -> Variant:
        return Variant(
            name,
            skill or self.source.skill,
            self.cases,
            "baseline" if arm == "baseline" else "skill",
            score=self.source.score,
            prompt=self.source.prompt,
        )

    def without(self, parts: Sequence[Part]) -> Skill:
        """A copy of the skill without some parts, in a folder of the same name."""
        copies = len(list(self.folder.iterdir())) if self.folder.exists() else 0
        target = self.folder / str(copies) / self.source.skill.file.parent.resolve().name
        file = self.parted.write(target, parts, self._files_of_cases)
        return load_for_run(file, replace(self.settings, against=None))

    def concluded(self, studied: Studied) -> Parts:
        lift = studied.effects[_BASELINE].lift
        helps = lift is not None and lift.low > 0 and studied.effects[_BASELINE].state == "shown"
        return replace(
            self.unmeasured,
            lift=lift,
            parts=tuple(
                self._effect(number, studied, helps=helps) for number in range(len(self.parts))
            ),
            trials=studied.trials,
            cost=studied.cost,
            not_measured=self._not_measured,
            errored=studied.errored,
            error=studied.most_common_error,
        )

    @property
    def unmeasured(self) -> Parts:
        """The results before anything is asked."""
        return Parts(
            self.source.label,
            self.subject.model,
            self.source.skill.tokens,
            None,
            (),
            margin=self.margin,
            agent=self.subject.agent,
            by=self.by,
        )

    def _effect(self, number: int, studied: Studied, *, helps: bool) -> PartEffect:
        part = self.parts[number]
        effect = replace(studied.effects[_name(number)], name=part.name)
        full, without = studied.records[_FULL], studied.records[_name(number)]
        part_effect = PartEffect(
            part.name,
            part.kind,
            part.line,
            self._tokens(part, full, without),
            effect,
            saved=saved_tokens(full, without),
        )
        could_go = helps and part_effect.standing(self.margin) == "no loss shown"
        return replace(part_effect, could_go=could_go)

    def _tokens(self, part: Part, full: Sequence[Record], without: Sequence[Record]) -> int:
        """The tokens of a part, by the model's own count if there is one.

        An agent may read a file or not, so there the size of the part is estimated.
        """
        if self.subject.agent == CHAT and (counted := _counted(full, without)) is not None:
            return counted
        text, removed = self.parted.without([part])
        if removed:
            files = [self.source.skill.file.parent / path for path in removed]
            return sum(max(1, round(file.stat().st_size / 4)) for file in files)
        body = body_of(text.encode("utf-8"))
        return max(0, estimated_tokens(self.source.skill.body) - estimated_tokens(body))

    # A shorter skill, on other cases.

    def shorter_study(
        self, parts: Sequence[Part], short: Skill, cases: tuple[CheckedCase, ...], before: Parts
    ) -> Study:
        """What a skill without several parts loses; its version is added to ``before``."""
        held = replace(self, cases=cases)
        variants = (
            held._variant(_FULL),
            held._variant(_BASELINE, arm="baseline"),
            held._variant(_SHORT, short),
        )
        contrast = Contrast(_SHORT, (_SHORT,), (_FULL,), self.margin)

        def concluded(studied: Studied) -> Parts:
            effect = studied.effects[_SHORT]
            complete = effect.state != "incomplete"
            version = ShorterVersion(
                short.tokens,
                studied.lift(_SHORT, _BASELINE),
                effect.lift if complete else None,
                tuple(part.name for part in parts),
                cases=effect.cases,
                cases_needed=effect.cases_needed,
            )
            costs = (before.cost, studied.cost)
            return replace(
                before,
                versions=(version,),
                held_out=studied.lift(_FULL, _BASELINE),
                trials=before.trials + studied.trials,
                cost=None if None in costs else sum(cost or 0.0 for cost in costs),
            )

        return Study(self.subject, variants, (contrast,), concluded)


def ablation_studies(
    sources: Iterable[SkillCases],
    subjects: Mapping[Subject, str],
    folder: Path,
    settings: Settings,
    by: By = "section",
) -> list[Study]:
    """A study for each skill and subject; ``subjects`` have the ids of their models."""
    studies = list[Study]()
    for source in sources:
        for subject, model_id in subjects.items():
            cases = source.cases_for(subject, model_id)
            copies = folder / f"{len(studies)}"
            ablation = Ablation(source, subject, cases, copies, settings, by)
            studies.append(_empty_study(ablation) if ablation.problem else ablation.study())
    return studies


def _empty_study(ablation: Ablation) -> Study:
    """A study that asks nothing and says why."""
    note = f"{ablation.source.label}: its parts can't be studied, as {ablation.problem}"
    parts = replace(ablation.unmeasured, notes=(note,))
    return Study(ablation.subject, (), (), lambda _: parts)


def fewest_cases_within(margin: float, effects: int, looks: tuple[int, ...]) -> int:
    """How many cases can show that less than a margin is lost, if nothing is lost in any."""
    error = (1 - family_level(effects, looks)) / 2
    return int(log(error) / log(1 - margin)) + 1


def _name(number: int) -> str:
    return f"without {number}"


def _counted(full: Iterable[Record], without: Iterable[Record]) -> int | None:
    """The input tokens that are saved, by the model's count; None if it has none."""
    shorter = {(record.case, record.run): record.input_tokens for record in without}
    saved = [
        record.input_tokens - tokens
        for record in full
        if record.input_tokens is not None
        and (tokens := shorter.get((record.case, record.run))) is not None
    ]
    return max(0, round(median(saved))) if saved else None


def saved_tokens(full: Iterable[Record], without: Iterable[Record]) -> SavedTokens | None:
    """Paired by case; None if the tokens of no case are known."""
    longer, shorter = _by_case(full), _by_case(without)
    saved = [tokens - shorter[case] for case, tokens in longer.items() if case in shorter]
    if not saved:
        return None
    mean, spread = mean_and_spread(saved)
    if len(saved) < _MIN_CASES:
        return SavedTokens(mean, None, None)
    half = half_width(spread, len(saved), LEVEL)
    return SavedTokens(mean, mean - half, mean + half)


def _by_case(records: Iterable[Record]) -> dict[str, float]:
    by_case: dict[str, list[int]] = {}
    for record in records:
        if record.outcome != "errored" and record.tokens is not None:
            by_case.setdefault(record.case, []).append(record.tokens)
    return {case: fmean(tokens) for case, tokens in by_case.items()}
