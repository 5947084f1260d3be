"""Parts of a skill as a study: the whole skill, the skill without each part, and no skill."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import log
from pathlib import Path
from statistics import fmean, median
from typing import Final

from ..checks import CheckedCase
from ..errors import InputError, shown
from ..results.losses import MARGIN
from ..results.parts import PartEffect, Parts, Saved, Version
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
from .outfits import files_of_cases
from .study import Contrast, SkillCases, Studied, Study, Variant

_WHOLE: Final = "whole"
_BASELINE: Final = "baseline"
_SHORT: Final = "short"
_FEWEST: Final = 3  # cases, for an interval of tokens
NOT_IN_CONTEXT: Final = "a plain completion does not see it, so it neither costs nor gains anything"
_ONLY_PART: Final = "it is all there is, so leaving it out is the baseline"


@dataclass(frozen=True)
class Ablation:
    """A skill to be studied part by part, on an agent and model, with some of its cases."""

    source: SkillCases
    subject: Subject
    cases: tuple[CheckedCase, ...]
    folder: Path  # for the skills without a part
    settings: Settings
    by: By = "section"
    margin: float = MARGIN

    @cached_property
    def parted(self) -> PartedSkill:
        return PartedSkill.of(self.source.skill, self.by, self._files)

    @cached_property
    def _files(self) -> list[str]:
        """Those that a model may see; in a plain completion, only what is put in context."""
        skill = self.source.skill
        if self.subject.agent == CHAT:
            return [path for path, _ in skill.references]
        return text_files(skill, self._of_cases)

    @cached_property
    def _of_cases(self) -> tuple[str, ...]:
        return files_of_cases(self.source.skill, [case for case, _ in self.source.cases])

    @cached_property
    def parts(self) -> list[Part]:
        """Those that can be left out with something left."""
        parts = self.parted.parts
        return [one for one in parts if one.kind == "file" or self.leaves_text([one])]

    def leaves_text(self, parts: Iterable[Part]) -> bool:
        """Whether SKILL.md says anything without these parts."""
        return bool(body_of(self.parted.without(parts)[0].encode("utf-8")))

    @property
    def _not_measured(self) -> dict[str, str]:
        told = {one.name: _ONLY_PART for one in self.parted.parts if one not in self.parts}
        if self.subject.agent == CHAT:
            seen = set(self._files)
            named = text_files(self.source.skill, self._of_cases)
            told |= {path: NOT_IN_CONTEXT for path in named if path not in seen}
        return told

    @property
    def why_not(self) -> str:
        """Why it can't be studied; empty if it can."""
        if not self.cases:
            return f"there are no cases for {self.subject.label}"
        if not self.parts:
            return f"it has only one {self.by}, and leaving that out is the baseline"
        return ""

    def study(self) -> Study:
        """The whole skill, no skill, and the skill without each part; InputError if `why_not`."""
        if self.why_not:
            hint = "Write more of them."
            if self.cases and self.by == "section":
                hint = "Cut it by paragraph, not by section."
            raise InputError(shown(self.source.skill.file), self.why_not, hint)
        variants = [self._variant(_WHOLE), self._variant(_BASELINE, arm="baseline")]
        variants += [
            self._variant(_name(number), self.without([part]))
            for number, part in enumerate(self.parts)
        ]
        contrasts = [
            Contrast(_name(number), (_name(number),), (_WHOLE,), self.margin)
            for number, _ in enumerate(self.parts)
        ]
        lift = Contrast(_BASELINE, (_WHOLE,), (_BASELINE,))
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
        """The skill without some parts, as a folder of its own with the same name."""
        taken = len(list(self.folder.iterdir())) if self.folder.exists() else 0
        target = self.folder / str(taken) / self.source.skill.file.parent.resolve().name
        file = self.parted.write(target, parts, self._of_cases)
        return load_for_run(file, replace(self.settings, against=None))

    def concluded(self, studied: Studied) -> Parts:
        lift = studied.effects[_BASELINE].lift
        helps = lift is not None and lift.low > 0 and studied.effects[_BASELINE].state == "shown"
        records = list(chain.from_iterable(studied.records.values()))
        errors = Counter(one.error for one in records if one.outcome == "errored" and one.error)
        return replace(
            self.unknown,
            lift=lift,
            parts=tuple(
                self._effect(number, studied, helps=helps) for number in range(len(self.parts))
            ),
            trials=studied.trials,
            cost=studied.cost,
            not_measured=self._not_measured,
            errored=sum(one.outcome == "errored" for one in records),
            error=errors.most_common(1)[0][0] if errors else "",
        )

    @property
    def unknown(self) -> Parts:
        """What is known before anything is asked."""
        return Parts(
            self.source.label,
            self.subject.label,
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
        whole, own = (studied.records[name] for name in (_WHOLE, _name(number)))
        found = PartEffect(
            part.name,
            part.kind,
            part.line,
            self._tokens(part, whole, own),
            effect,
            saved=saved_tokens(whole, own),
        )
        could_go = helps and found.standing(self.margin) == "no loss shown"
        return replace(found, could_go=could_go)

    def _tokens(self, part: Part, whole: Sequence[Record], own: Sequence[Record]) -> int:
        """What a part costs where it is in context, as the model counts if that is known.

        An agent reads a file or not, so there it is the size of the part.
        """
        if self.subject.agent == CHAT and (counted := _counted(whole, own)) is not None:
            return counted
        text, gone = self.parted.without([part])
        if gone:
            files = [self.source.skill.file.parent / path for path in gone]
            return sum(max(1, round(file.stat().st_size / 4)) for file in files)
        left = body_of(text.encode("utf-8"))
        return max(0, estimated_tokens(self.source.skill.body) - estimated_tokens(left))

    # A shorter skill, on other cases.

    def shorter_study(
        self, parts: Sequence[Part], short: Skill, cases: tuple[CheckedCase, ...], about: Parts
    ) -> Study:
        """What a skill without several parts loses; its version is added to what is known."""
        held = replace(self, cases=cases)
        variants = (
            held._variant(_WHOLE),
            held._variant(_BASELINE, arm="baseline"),
            held._variant(_SHORT, short),
        )
        contrast = Contrast(_SHORT, (_SHORT,), (_WHOLE,), self.margin)

        def concluded(studied: Studied) -> Parts:
            effect = studied.effects[_SHORT]
            complete = effect.state != "incomplete"
            version = Version(
                short.tokens,
                studied.lift(_SHORT, _BASELINE),
                effect.lift if complete else None,
                tuple(part.name for part in parts),
                cases=effect.cases,
                cases_needed=effect.cases_needed,
            )
            costs = (about.cost, studied.cost)
            return replace(
                about,
                versions=(version,),
                held_out=studied.lift(_WHOLE, _BASELINE),
                trials=about.trials + studied.trials,
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
    """One for each skill, agent and model (with the ids of models); some can only say why not."""
    found = list[Study]()
    for source in sources:
        for subject, model_id in subjects.items():
            cases = source.cases_for(subject, model_id)
            place = folder / f"{len(found)}"
            one = Ablation(source, subject, cases, place, settings, by)
            found.append(_silent(one) if one.why_not else one.study())
    return found


def _silent(one: Ablation) -> Study:
    note = f"{one.source.label}: its parts can't be studied, as {one.why_not}"
    told = replace(one.unknown, notes=(note,))
    return Study(one.subject, (), (), lambda _: told)


def fewest_cases_within(margin: float, effects: int, looks: tuple[int, ...]) -> int:
    """How many cases can show that less than a margin is lost, if nothing is lost in any."""
    error = (1 - family_level(effects, looks)) / 2
    return int(log(error) / log(1 - margin)) + 1


def _name(number: int) -> str:
    return f"without {number}"


def _counted(whole: Iterable[Record], own: Iterable[Record]) -> int | None:
    """The tokens of the question that are saved, by the model's count; None if it has none."""
    sizes = [{(one.case, one.run): one.input_tokens for one in some} for some in (whole, own)]
    pairs = [(size, sizes[1].get(key)) for key, size in sizes[0].items()]
    known = [one - two for one, two in pairs if one is not None and two is not None]
    return max(0, round(median(known))) if known else None


def saved_tokens(whole: Iterable[Record], own: Iterable[Record]) -> Saved | None:
    """Paired by case; None if the tokens of no case are known."""
    means = [_by_case(some) for some in (whole, own)]
    saved = [tokens - means[1][case] for case, tokens in means[0].items() if case in means[1]]
    if not saved:
        return None
    mean, spread = mean_and_spread(saved)
    if len(saved) < _FEWEST:
        return Saved(mean, None, None)
    half = half_width(spread, len(saved), LEVEL)
    return Saved(mean, mean - half, mean + half)


def _by_case(records: Iterable[Record]) -> dict[str, float]:
    found: dict[str, list[int]] = {}
    for one in records:
        if one.outcome != "errored" and one.tokens is not None:
            found.setdefault(one.case, []).append(one.tokens)
    return {case: fmean(tokens) for case, tokens in found.items()}
