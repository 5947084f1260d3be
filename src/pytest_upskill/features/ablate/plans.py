"""The parts of a skill as a study: the whole skill, without each part, and no skill.

The parts of a bundle are its skills.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final

from ..._util.texts import counted, one_line, points, span
from ...checks import CheckedCase
from ...errors import InputError, shown
from ...measure.arm_maker import ArmMaker, files_of_cases
from ...measure.study_cases import SkillCases
from ...measure.study_runner import CasesInArms, StudyPlan
from ...results.contrasts import MARGIN, Contrast, Study, size_of
from ...settings import Settings
from ...skills.bundle import Bundle, without_skills
from ...skills.context import load_for_run
from ...skills.copies import PartedSkill, text_files
from ...skills.skill import Skill, body_of, estimated_tokens
from ...skills.skill_parts import By, Part
from ...trials.subject import CHAT, Subject
from ...trials.trial import lift_sample_of

WHOLE: Final = "the whole skill"
ALL_SKILLS: Final = "all skills"
SHORTER: Final = "the shorter skill"
_NO_SKILL: Final = "no skill"
NOT_IN_CONTEXT: Final = (
    "a plain completion does not see it, so it neither costs nor gains anything"
)
_ONLY_PART: Final = "it is all there is, so leaving it out is the baseline"
_MAX_NAME_LENGTH: Final = 80
_MAX_NAMES: Final = 6
_LEAST_LOSS: Final = 0.001  # below that, tokens per point mean nothing


@dataclass(frozen=True)
class Ablation:
    """A skill to be studied part by part, on an agent and model, with some of its
    cases.
    """

    source: SkillCases
    subject: Subject
    cases: tuple[CheckedCase, ...]
    folder: Path  # for copies of the skill without a part
    settings: Settings
    maker: ArmMaker
    by: By = "section"
    margin: float = MARGIN
    held_out: tuple[CheckedCase, ...] = ()

    whole: ClassVar = WHOLE  # what the arm and the contrast of all of it are called
    noun: ClassVar = "part"
    subject_noun: ClassVar = "skill"

    @cached_property
    def parted(self) -> PartedSkill:
        return PartedSkill.of(self.source.skill, self.by, self._files)

    @cached_property
    def _files(self) -> list[str]:
        """The files that a model may see; in a plain completion, only those in
        context.
        """
        skill = self.source.skill
        if self.subject.agent == CHAT:
            return [path for path, _ in skill.references]
        return text_files(skill, self._files_of_cases)

    @cached_property
    def _files_of_cases(self) -> tuple[str, ...]:
        return files_of_cases(
            self.source.skill, [case for case, _ in self.source.cases]
        )

    @cached_property
    def parts(self) -> dict[str, Part]:
        """The parts that can be left out without leaving SKILL.md empty, by
        contrast.
        """
        return {
            f"without {part.name}": part
            for part in self.parted.parts
            if part.kind == "file" or self.leaves_text([part])
        }

    def leaves_text(self, parts: Iterable[Part]) -> bool:
        """Whether SKILL.md says anything without these parts."""
        return bool(body_of(self.parted.without(parts)[0].encode("utf-8")))

    @property
    def not_measured(self) -> dict[str, str]:
        """Parts that are not left out, and why."""
        measured = self.parts.values()
        reasons = {}
        for part in self.parted.parts:
            if part not in measured:
                reasons[part.name] = _ONLY_PART
        if self.subject.agent == CHAT:
            for path in text_files(self.source.skill, self._files_of_cases):
                if path not in self._files:
                    reasons[path] = NOT_IN_CONTEXT
        return reasons

    def plan(self) -> StudyPlan:
        """The study; InputError if there is nothing to leave out, or no case."""
        hint = "Write more of them."
        if not self.cases:
            problem = f"there are no cases for {self.subject.label}"
            raise InputError(shown(self.source.skill.file), problem, hint)
        if not self.parts:
            problem = f"it has only one {self.by}, and leaving that out is the baseline"
            if self.by == "section":
                hint = "Cut it by paragraph, not by section."
            raise InputError(shown(self.source.skill.file), problem, hint)

        without = {name: self.without([part]) for name, part in self.parts.items()}
        contrasts = [Contrast(self.whole, (self.whole,), (_NO_SKILL,))]
        for name in without:
            contrasts.append(Contrast(name, (name,), (self.whole,), self.margin))
        tokens = counted(self.source.skill.tokens, "token")
        return StudyPlan(
            title=f"{self.noun.capitalize()}s of {self.source.label} (about {tokens})",
            legend=(
                f"By how many points the results change with the {self.subject_noun},"
                f" and without one of its {self.noun}s"
            ),
            subject=self.subject,
            groups=(self._put_in_arms(without, self.cases, baseline=True),),
            contrasts=tuple(contrasts),
            conclude=lambda study, _: self._conclude(study),
        )

    def shorter_plan(self, parts: Sequence[Part]) -> StudyPlan:
        """What the skill without several parts loses, on held-out cases."""
        short = self.without(parts) if parts else self.source.skill
        tokens = counted(self.source.skill.tokens, "token")
        return StudyPlan(
            title=f"{self.source.label}, shorter ({short.tokens:,} of {tokens})",
            legend=(
                "By how many points the results change with the shorter skill, on"
                " held-out cases"
            ),
            subject=self.subject,
            groups=(
                self._put_in_arms({SHORTER: short}, self.held_out, baseline=False),
            ),
            contrasts=(Contrast(SHORTER, (SHORTER,), (WHOLE,), self.margin),),
        )

    def _put_in_arms(
        self,
        changed: dict[str, Skill],
        cases: tuple[CheckedCase, ...],
        *,
        baseline: bool,
    ) -> CasesInArms:
        """With the whole skill, perhaps with none, and with changed ones by their
        names.
        """
        agents = self.subject.agent != CHAT
        whole = self.source.skill
        no_skill, skill = self.maker.arms(whole, agents=agents)
        arms = [replace(skill, name=self.whole)]
        if baseline:
            arms.append(replace(no_skill, name=_NO_SKILL))
        for name, copy in changed.items():
            arms.append(replace(self.maker.arms(copy, agents=agents)[-1], name=name))
        return CasesInArms(whole, cases, tuple(arms), self.source.score)

    def without(self, parts: Sequence[Part]) -> Skill:
        """A copy of the skill without some parts, in a folder of the same name."""
        copies = len(list(self.folder.iterdir())) if self.folder.exists() else 0
        target = (
            self.folder / str(copies) / self.source.skill.file.parent.resolve().name
        )
        file = self.parted.write(target, parts, self._files_of_cases)
        return load_for_run(file, self.settings)

    # What follows from the contrasts.

    def could_go(self, study: Study) -> list[Part]:
        """Parts without which a loss that counts is ruled out, the largest first.

        None if the whole skill is not shown to help: then no part could be shown to be
        missed.
        """
        if study.contrast(self.whole).word != "helps":
            return []

        words = {contrast.name: contrast.word for contrast in study.contrasts}
        free = ("no loss shown", "helps")
        going = [part for name, part in self.parts.items() if words.get(name) in free]
        return sorted(going, key=lambda part: -self.tokens_of([part]))

    def tokens_of(self, parts: Sequence[Part]) -> int:
        """An estimate of what leaving out these parts saves whoever reads all of the
        skill.
        """
        text, removed = self.parted.without(parts)
        body = body_of(text.encode("utf-8"))
        saved = estimated_tokens(self.source.skill.body) - estimated_tokens(body)
        total = max(0, saved)
        for path in removed:
            size = (self.source.skill.file.parent / path).stat().st_size
            total += max(1, round(size / 4))
        return total

    def _conclude(self, study: Study) -> Study:
        """The whole skill, then the parts, the dearest points first."""
        whole, *parts = study.contrasts
        parts.sort(key=_dearness)
        conclusions = [
            f"{one_line(name, _MAX_NAME_LENGTH)} was not left out: {reason}"
            for name, reason in self.not_measured.items()
        ]
        if not study.complete:
            reason = f": {one_line(study.error, 200)}" if study.error else ""
            trials = counted(study.errored, "trial")
            conclusions.append(f"Incomplete: {trials} without an answer{reason}")
        if study.complete or self.could_go(study):
            conclusions.append(self._outcome(study))
        return replace(study, contrasts=(whole, *parts), conclusions=tuple(conclusions))

    def _outcome(self, study: Study) -> str:
        whole, *parts = study.contrasts
        if whole.word != "helps":
            verdict = "hurts" if whole.word == "hurts" else "is not shown to help"
            number = ""
            if lift := whole.lift:
                number = f" ({points(lift.lift)} points, {span(lift.low, lift.high)})"
            return (
                f"The {self.subject_noun} itself {verdict} on these cases{number}, so"
                f" they can't tell which {self.noun}s are missed"
            )

        margin = size_of(self.margin)
        if going := self.could_go(study):
            each = " (each by itself)" if len(going) > 1 else ""
            return (
                f"Could go{each}: {self._names(going)}. A loss of {margin} or more is"
                " ruled out, a smaller one is not"
            )
        cases = counted(max(contrast.cases for contrast in parts), "case")
        return (
            f"Nothing is shown to be free to go: no {self.noun} rules out a loss of"
            f" {margin} with {cases}"
        )

    def _names(self, parts: Sequence[Part]) -> str:
        """With the sizes of parts; paragraphs have commas of their own."""
        listed = []
        for part in parts[:_MAX_NAMES]:
            name = one_line(part.name, _MAX_NAME_LENGTH)
            if part.kind == "paragraph":
                name = f'"{name}"'
            listed.append(f"{name} ({counted(self.tokens_of([part]), 'token')})")
        if len(parts) > _MAX_NAMES:
            listed.append(f"{len(parts) - _MAX_NAMES:,} more")
        return ", ".join(listed)


def _dearness(contrast: Contrast) -> tuple[int, float]:
    """The tokens that a point costs; before them, what costs nothing but tokens."""
    saved = -(contrast.tokens or 0.0)
    if contrast.lift is None:
        return 2, 0.0

    loss = -contrast.lift.lift
    if loss < _LEAST_LOSS:
        return 0, -saved
    return 1, -saved / loss


def count_samples(cases: Iterable[CheckedCase]) -> int:
    """Cases that ask the same count as one."""
    return len({lift_sample_of(case) for case, _ in cases})


class BundleAblation(Ablation):
    """A bundle to be studied skill by skill."""

    whole = ALL_SKILLS
    noun = "skill"
    subject_noun = "bundle"

    @property
    def bundle(self) -> Bundle:
        assert isinstance(self.source.skill, Bundle)
        return self.source.skill

    @cached_property
    def parts(self) -> dict[str, Part]:
        names = (member.name for member in self.bundle.members)
        return {f"without {name}": Part(name, "skill") for name in names}

    @property
    def not_measured(self) -> dict[str, str]:
        return {}

    def leaves_text(self, parts: Iterable[Part]) -> bool:
        return len(set(parts)) < len(self.parts)

    def without(self, parts: Sequence[Part]) -> Skill:
        return without_skills(self.bundle, {part.name for part in parts})

    def tokens_of(self, parts: Sequence[Part]) -> int:
        names = {part.name for part in parts}
        texts = (member.text for member in self.bundle.members if member.name in names)
        return sum(map(estimated_tokens, texts))
