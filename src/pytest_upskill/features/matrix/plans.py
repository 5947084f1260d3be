"""The matrix of skills as a study: every skill alone, beside each other one, and beside
all.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

from ..._util.texts import counted, one_line
from ...checks import CheckedCase
from ...errors import InputError, SettingsError, shown
from ...measure.arm_maker import ArmMaker, files_of_cases
from ...measure.evaluate import asked_cases
from ...measure.study_cases import SkillCases
from ...measure.study_runner import CasesInArms, StudyPlan
from ...results.comparison import Cases, compare, unit_of
from ...results.contrasts import Contrast, Study, gain_words, points_words
from ...skills.named_skill import named_once
from ...skills.skill import listing_tokens
from ...trials.arm import Arm, SkillCopy
from ...trials.subject import CHAT, Subject

_LEGEND: Final = (
    "By how many points the lift of a skill, on its own cases, changes when another is"
    " installed as well"
)
_MAX_SENTENCES: Final = 12


@dataclass(frozen=True)
class Pair:
    """A tested skill beside others: four arms, with and without it, beside them and
    alone.
    """

    tested: str
    others: tuple[str, ...] = ()

    @property
    def contrast(self) -> Contrast:
        """(with both - with the others) - (with the skill - with none)."""
        with_both, with_others = self.arms
        alone, none = Pair(self.tested).arms
        return Contrast(with_both, (with_both, none), (with_others, alone))

    @property
    def arms(self) -> tuple[str, str]:
        """The names of the arms with the skill and without."""
        name = _quote(self.tested)
        if not self.others:
            return f"{name} alone", f"no skill, cases of {name}"
        others = _quote(self.others[0]) if len(self.others) == 1 else "all others"
        return f"{name} with {others}", f"{others} without {name}"


def matrix_plans(
    sources: Sequence[SkillCases], subjects: Mapping[Subject, str], maker: ArmMaker
) -> list[StudyPlan]:
    """A study for each agent on a model; ``subjects`` have the ids of their models.

    InputError if there is nothing to compare.
    """
    if any(subject.agent == CHAT for subject in subjects):
        problem = (
            "a plain completion sees one skill only, so no other can change its answers"
        )
        hint = "Choose an agent, for example loop."
        raise SettingsError("agents", problem, hint, value=CHAT)

    skills = distinct(sources)
    if not any(source.cases for source in skills):
        names = ", ".join(one_line(source.skill.name, 60) for source in skills[:5])
        hint = "Write some: at least one of the skills is tested on its own cases."
        raise InputError(names, "none of these skills has cases", hint)
    return [
        Matrix(skills, subject, model_id, maker).plan()
        for subject, model_id in subjects.items()
    ]


@dataclass(frozen=True)
class Matrix:
    """Skills side by side, for an agent on a model."""

    skills: Sequence[SkillCases]
    subject: Subject
    model_id: str
    maker: ArmMaker

    @cached_property
    def cases(self) -> dict[str, tuple[CheckedCase, ...]]:
        """By skill; one without cases is only a neighbour of others."""
        return {
            source.skill.name: asked_cases(source.cases, self.subject, self.model_id)
            for source in self.skills
        }

    @cached_property
    def copies(self) -> dict[str, SkillCopy]:
        """The skills as neighbours of others."""
        copies = {}
        for source in self.skills:
            skill = source.skill
            without = files_of_cases(skill, [case for case, _ in source.cases])
            folder = skill.file.parent
            copies[skill.name] = SkillCopy.of(skill.name, folder, None, without)
        return copies

    def plan(self) -> StudyPlan:
        groups = []
        beside = {}
        for source in self.skills:
            if self.cases[source.skill.name]:
                pairs = self._pair(source.skill.name)
                groups.append(self._put_in_arms(source, pairs))
                beside.update({pair.contrast.name: pair for pair in pairs[1:]})
        return StudyPlan(
            title="What skills do to each other",
            legend=_LEGEND,
            subject=self.subject,
            groups=tuple(groups),
            contrasts=tuple(pair.contrast for pair in beside.values()),
            conclude=partial(self._conclude, beside),
        )

    def _pair(self, tested: str) -> list[Pair]:
        """Alone, beside each other skill, and beside all others if there are
        several.
        """
        others = sorted(name for name in self.cases if name != tested)
        pairs = [Pair(tested)]
        pairs += [Pair(tested, (name,)) for name in others]
        if len(others) > 1:
            pairs.append(Pair(tested, tuple(others)))
        return pairs

    def _put_in_arms(self, source: SkillCases, pairs: Sequence[Pair]) -> CasesInArms:
        cases = [case for case, _ in source.cases]
        arms: list[Arm] = []
        for pair in pairs:
            beside = tuple(
                copy for name, copy in self.copies.items() if name in pair.others
            )
            baseline, skill = self.maker.arms(source.skill, cases, beside, agents=True)
            with_skill, without = pair.arms
            arms.append(replace(skill, name=with_skill))
            arms.append(replace(baseline, name=without))
        tested = self.cases[source.skill.name]
        return CasesInArms(source.skill, tested, tuple(arms), source.score)

    def _conclude(
        self, pairs: Mapping[str, Pair], study: Study, arms: Mapping[str, Cases]
    ) -> Study:
        """The worst pair first."""
        contrasts = sorted(
            study.contrasts, key=lambda each: each.lift.lift if each.lift else 0.0
        )
        changed = [each for each in contrasts if each.word in ("hurts", "helps")]
        conclusions = []
        for contrast in changed[:_MAX_SENTENCES]:
            conclusions.append(_describe_pair(study, pairs[contrast.name], contrast))
        tested = [source for source in self.skills if self.cases[source.skill.name]]
        for source in tested:
            conclusions.append(_describe_alone(source, arms))
        if study.errored:
            reason = f": {one_line(study.error, 200)}" if study.error else ""
            trials = counted(study.errored, "trial")
            conclusions.append(f"{trials} without an answer{reason}")
        for source in self.skills:
            if source not in tested:
                why = f"no cases for {study.label}" if source.cases else "no cases"
                name = one_line(source.skill.name, 60)
                conclusions.append(f"{name} is only a neighbour: {why}")

        tokens = sum(listing_tokens(source.skill) for source in self.skills)
        skills = counted(len(self.skills), "skill")
        conclusions.append(
            f"The list of {skills} costs every request about {counted(tokens, 'token')}"
        )
        conclusions.append(_sum_up(contrasts))
        hurting = sum(contrast.word == "hurts" for contrast in contrasts)
        return replace(
            study,
            contrasts=tuple(contrasts),
            conclusions=tuple(conclusions),
            failure=f"{counted(hurting, 'pair')} shown to hurt" if hurting else "",
        )


def distinct(sources: Iterable[SkillCases]) -> list[SkillCases]:
    """Each skill once; InputError if two have the same name, or there are not two."""
    sources = list(sources)
    named_once(source.skill for source in sources)
    by_name: dict[str, SkillCases] = {}
    for source in sources:
        by_name.setdefault(source.skill.name, source)

    if len(by_name) < 2:
        folder = shown(sources[0].skill.file.parent) if sources else "skills"
        problem = "a matrix needs at least two skills"
        raise InputError(folder, problem, "Name more skills.")
    return list(by_name.values())


def _quote(name: str) -> str:
    """A name in the name of an arm: quoted if it could be taken for more than a
    name.
    """
    if re.fullmatch(r"[^\s\"]+", name):
        return name
    return json.dumps(name, ensure_ascii=False)


def _describe_alone(source: SkillCases, arms: Mapping[str, Cases]) -> str:
    """The lift of a skill without neighbours: a description,
    which is no test of the family.
    """
    alone, none = Pair(source.skill.name).arms
    lift = compare([arms[none]], [arms[alone]])
    words = points_words(lift.lift, unit_of(source.score)) if lift else "not known"
    return f"{one_line(source.skill.name, 60)} alone: {words}"


def _describe_pair(study: Study, pair: Pair, contrast: Contrast) -> str:
    """What changes, and which skills were opened, which may explain it."""
    assert contrast.lift
    name = one_line(pair.tested, 60)
    count = len(pair.others)
    others = f"{one_line(pair.others[0], 60)} is"
    if count > 1:
        others = "both others are" if count == 2 else f"all {count} others are"
    text = f"{name} {gain_words(contrast.lift)} when {others} installed"

    arm = study.arm(contrast.plus[0])
    if not arm.trials:
        return text
    rivals = Counter(arm.opened_first)
    del rivals[pair.tested]
    for rival, number in rivals.most_common(1):
        who = "it" if count == 1 else one_line(rival, 60)
        return f"{text}: {who} is opened first in {number:,} of {arm.trials:,}"

    text += f"; {name} is opened in {arm.opened_in(pair.tested)} trials"
    alone = study.arm(contrast.minus[1])
    if alone.trials:
        text += f", and in {alone.opened_in(pair.tested)} alone"
    return text


def _sum_up(contrasts: Sequence[Contrast]) -> str:
    """What all pairs come to, for those who read one line."""
    total = counted(len(contrasts), "pair")
    counts = Counter[str](contrast.word for contrast in contrasts)
    if counts["hurts"] or counts["helps"]:
        words = []
        for word in ("hurts", "helps", "no change shown", "incomplete"):
            if number := counts[word]:
                verb = word.removesuffix("s") if number > 1 else word
                words.append(f"{number:,} {verb}")
        return f"Of {total}: {', '.join(words)}"

    caveat = "which does not mean that nothing happens"
    if missing := counts["incomplete"]:
        caveat = f"but answers are missing for {missing:,}"
    none = "The only pair is not" if len(contrasts) == 1 else f"None of {total} is"
    return f"{none} shown to hurt or to help, {caveat}"
