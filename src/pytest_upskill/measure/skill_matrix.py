"""The matrix of skills as a study: every skill alone, beside each other one,
and beside all.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from .._util.texts import counted, one_line
from ..checks import CheckedCase
from ..errors import InputError, SettingsError, shown
from ..results.arm_comparison import unit_of
from ..results.contrasts import Contrast, Study, gain_words, points_words
from ..skills.named_skill import named_once
from ..skills.skill import Skill, estimated_tokens
from ..trials.arm import Arm, SkillCopy
from ..trials.subject import CHAT, Subject
from .arm_maker import ArmMaker, files_of_cases
from .study_runner import CasesInArms, Scores, SkillCases, StudyPlan, lift_between

_LEGEND: Final = (
    "By how many points the lift of a skill, on its own cases, changes when another is"
    " installed as well"
)
_MOST_SENTENCES: Final = 12


@dataclass(frozen=True)
class Member:
    """A skill of the matrix; without cases it is only a neighbour of others."""

    source: SkillCases
    as_neighbour: SkillCopy
    cases: tuple[CheckedCase, ...] = ()

    @property
    def name(self) -> str:
        return self.source.skill.name


@dataclass(frozen=True)
class Pair:
    """A tested skill beside others: four arms, with and without it,
    beside them and alone.
    """

    tested: str
    others: tuple[str, ...]

    @property
    def contrast(self) -> Contrast:
        """(with both - with the others) - (with the skill - with none)."""
        with_both, with_others = self.arms
        alone, none = Pair(self.tested, ()).arms
        return Contrast(with_both, (with_both, none), (with_others, alone))

    @property
    def arms(self) -> tuple[str, str]:
        """The names of the arms with the skill and without."""
        name = _quoted(self.tested)
        if not self.others:
            return f"{name} alone", f"no skill, cases of {name}"
        others = _quoted(self.others[0]) if len(self.others) == 1 else "all others"
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
        raise SettingsError(
            "agents", problem, "Choose an agent, for example loop.", value=CHAT
        )
    skills = distinct(sources)
    if not any(source.cases for source in skills):
        names = ", ".join(one_line(source.skill.name, 60) for source in skills[:5])
        hint = "Write some: at least one of the skills is tested on its own cases."
        raise InputError(names, "none of these skills has cases", hint)
    plans = []
    for subject, model_id in subjects.items():
        members = [
            _member(source, source.cases_for(subject, model_id)) for source in skills
        ]
        pairs = {
            member.name: _pairs(member, members) for member in members if member.cases
        }
        groups = [
            _in_arms(member, pairs[member.name], members, maker)
            for member in members
            if member.cases
        ]
        beside = {
            pair.contrast.name: pair
            for row in pairs.values()
            for pair in row
            if pair.others
        }
        contrasts = tuple(pair.contrast for pair in beside.values())
        conclude = partial(_concluded, members, beside)
        title = "What skills do to each other"
        plans.append(
            StudyPlan(title, _LEGEND, subject, tuple(groups), contrasts, conclude)
        )
    return plans


def _member(source: SkillCases, cases: tuple[CheckedCase, ...]) -> Member:
    skill = source.skill
    without = files_of_cases(skill, [case for case, _ in source.cases])
    return Member(
        source, SkillCopy.of(skill.name, skill.file.parent, None, without), cases
    )


def _pairs(tested: Member, members: Sequence[Member]) -> list[Pair]:
    """Alone, beside each other skill, and beside all others if there are several."""
    others = tuple(sorted(member.name for member in members if member is not tested))
    pairs = [Pair(tested.name, ()), *(Pair(tested.name, (name,)) for name in others)]
    return [*pairs, Pair(tested.name, others)] if len(others) > 1 else pairs


def _in_arms(
    tested: Member, pairs: Sequence[Pair], members: Sequence[Member], maker: ArmMaker
) -> CasesInArms:
    source, arms = tested.source, list[Arm]()
    for pair in pairs:
        beside = tuple(
            member.as_neighbour for member in members if member.name in pair.others
        )
        cases = [case for case, _ in source.cases]
        baseline, skill = maker.arms(source.skill, cases, beside, agents=True)
        with_skill, without = pair.arms
        arms += [replace(skill, name=with_skill), replace(baseline, name=without)]
    return CasesInArms(source.skill, tested.cases, tuple(arms), source.score)


def distinct(sources: Iterable[SkillCases]) -> list[SkillCases]:
    """Each skill once; InputError if two have the same name, or there are not two."""
    every, by_name = list(sources), dict[str, SkillCases]()
    named_once(source.skill for source in every)
    for source in every:
        by_name.setdefault(source.skill.name, source)
    if len(by_name) < 2:
        folders = [shown(source.skill.file.parent) for source in by_name.values()] or [
            "skills"
        ]
        raise InputError(
            folders[0], "a matrix needs at least two skills", "Name more skills."
        )
    return list(by_name.values())


def _quoted(name: str) -> str:
    """A name in the name of an arm: quoted if it could be taken for more than a
    name.
    """
    return (
        name
        if re.fullmatch(r"[^\s\"]+", name)
        else json.dumps(name, ensure_ascii=False)
    )


def _concluded(
    members: Sequence[Member],
    pairs: Mapping[str, Pair],
    study: Study,
    scores: Mapping[str, Scores],
) -> Study:
    """The worst pair first."""
    contrasts = sorted(study.contrasts, key=lambda c: c.lift.lift if c.lift else 0.0)
    of_shown = [c for c in contrasts if c.word in ("hurts", "helps")]
    conclusions = [
        _shown_sentence(study, pairs[c.name], c) for c in of_shown[:_MOST_SENTENCES]
    ]
    conclusions += [
        _alone_sentence(member, scores) for member in members if member.cases
    ]
    if study.errored:
        reason = f": {one_line(study.error, 200)}" if study.error else ""
        conclusions.append(
            f"{counted(study.errored, 'trial')} without an answer{reason}"
        )
    for member in (member for member in members if not member.cases):
        why = f"no cases for {study.label}" if member.source.cases else "no cases"
        conclusions.append(f"{one_line(member.name, 60)} is only a neighbour: {why}")
    entries = sum(listing_tokens(member.source.skill) for member in members)
    conclusions.append(
        f"The list of {counted(len(members), 'skill')} costs every request about "
        f"{counted(entries, 'token')}"
    )
    conclusions.append(_outcome(study.contrasts))
    hurting = sum(contrast.word == "hurts" for contrast in contrasts)
    return replace(
        study,
        contrasts=tuple(contrasts),
        conclusions=tuple(conclusions),
        failure=f"{counted(hurting, 'pair')} shown to hurt" if hurting else "",
    )


def listing_tokens(skill: Skill) -> int:
    """An estimate of what a skill's entry in the list of skills costs every request."""
    return estimated_tokens(f"{skill.name}: {skill.description}")


def _alone_sentence(member: Member, scores: Mapping[str, Scores]) -> str:
    """The lift of a skill without neighbours: a description,
    which is no test of the family.
    """
    alone, none = Pair(member.name, ()).arms
    lift = lift_between(scores[none], scores[alone])
    words = points_words(lift, unit_of(member.source.score)) if lift else "not known"
    return f"{one_line(member.name, 60)} alone: {words}"


def _shown_sentence(study: Study, pair: Pair, contrast: Contrast) -> str:
    """What changes, and which skills were opened, which may explain it."""
    assert contrast.lift
    name, count = one_line(pair.tested, 60), len(pair.others)
    others = f"{one_line(pair.others[0], 60)} is"
    if count > 1:
        others = "both others are" if count == 2 else f"all {count} others are"
    text = f"{name} {gain_words(contrast.lift)} when {others} installed"
    arm, alone = study.arm(contrast.plus[0]), study.arm(contrast.minus[1])
    if not arm.trials:
        return text
    first = {
        skill: trials
        for skill, trials in arm.opened_first.items()
        if skill != pair.tested
    }
    if rival := max(first, key=lambda skill: first[skill], default=""):
        who = "it" if count == 1 else one_line(rival, 60)
        return f"{text}: {who} is opened first in {first[rival]:,} of {arm.trials:,}"
    text += f"; {name} is opened in {arm.opened_in(pair.tested)} trials"
    return (
        f"{text}, and in {alone.opened_in(pair.tested)} alone" if alone.trials else text
    )


def _outcome(contrasts: Sequence[Contrast]) -> str:
    """What all pairs come to, for those who read one line."""
    total, counts = counted(len(contrasts), "pair"), Counter(c.word for c in contrasts)
    if counts["hurts"] or counts["helps"]:
        plurals = {"hurts": "hurt", "helps": "help"}
        words = [
            f"{number:,} {plurals.get(word, word) if number > 1 else word}"
            for word in ("hurts", "helps", "no change shown", "incomplete")
            if (number := counts[word])
        ]
        return f"Of {total}: {', '.join(words)}"
    caveat = "which does not mean that nothing happens"
    if missing := counts["incomplete"]:
        caveat = f"but answers are missing for {missing:,}"
    none = "The only pair is not" if len(contrasts) == 1 else f"None of {total} is"
    return f"{none} shown to hurt or to help, {caveat}"
