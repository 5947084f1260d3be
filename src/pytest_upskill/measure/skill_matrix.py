"""The matrix of skills as a study: every skill alone, beside each other one, and beside
all.
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
from ..results.comparison import Cases, compare, unit_of
from ..results.contrasts import Contrast, Study, gain_words, points_words
from ..skills.named_skill import named_once
from ..skills.skill import Skill, estimated_tokens
from ..trials.arm import Arm, SkillCopy
from ..trials.subject import CHAT, Subject
from .arm_maker import ArmMaker, files_of_cases
from .study_runner import CasesInArms, SkillCases, StudyPlan

_LEGEND: Final = (
    "By how many points the lift of a skill, on its own cases, changes when another is"
    " installed as well"
)
_MAX_SENTENCES: Final = 12


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
    """A tested skill beside others: four arms, with and without it, beside them and
    alone.
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
        members = []
        for source in skills:
            cases = source.cases_for(subject, model_id)
            members.append(_make_member(source, cases))

        groups = []
        beside: dict[str, Pair] = {}
        for member in members:
            if member.cases:
                pairs = _pair_with_others(member, members)
                groups.append(_put_in_arms(member, pairs, members=members, maker=maker))
                for pair in pairs:
                    if pair.others:
                        beside[pair.contrast.name] = pair

        plans.append(
            StudyPlan(
                title="What skills do to each other",
                legend=_LEGEND,
                subject=subject,
                groups=tuple(groups),
                contrasts=tuple(pair.contrast for pair in beside.values()),
                conclude=partial(_conclude, members, beside),
            )
        )
    return plans


def _make_member(source: SkillCases, cases: tuple[CheckedCase, ...]) -> Member:
    skill = source.skill
    without = files_of_cases(skill, [case for case, _ in source.cases])
    copy = SkillCopy.of(skill.name, skill.file.parent, None, without)
    return Member(source, copy, cases)


def _pair_with_others(tested: Member, members: Sequence[Member]) -> list[Pair]:
    """Alone, beside each other skill, and beside all others if there are several."""
    others = sorted(member.name for member in members if member is not tested)
    pairs = [Pair(tested.name, ())]
    pairs += [Pair(tested.name, (name,)) for name in others]
    if len(others) > 1:
        pairs.append(Pair(tested.name, tuple(others)))
    return pairs


def _put_in_arms(
    tested: Member, pairs: Sequence[Pair], *, members: Sequence[Member], maker: ArmMaker
) -> CasesInArms:
    source = tested.source
    cases = [case for case, _ in source.cases]
    arms: list[Arm] = []
    for pair in pairs:
        beside = tuple(
            member.as_neighbour for member in members if member.name in pair.others
        )
        baseline, skill = maker.arms(source.skill, cases, beside, agents=True)
        with_skill, without = pair.arms
        arms.append(replace(skill, name=with_skill))
        arms.append(replace(baseline, name=without))
    return CasesInArms(source.skill, tested.cases, tuple(arms), source.score)


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


def _quoted(name: str) -> str:
    """A name in the name of an arm: quoted if it could be taken for more than a
    name.
    """
    if re.fullmatch(r"[^\s\"]+", name):
        return name
    return json.dumps(name, ensure_ascii=False)


def _conclude(
    members: Sequence[Member],
    pairs: Mapping[str, Pair],
    study: Study,
    arms: Mapping[str, Cases],
) -> Study:
    """The worst pair first."""
    contrasts = sorted(study.contrasts, key=lambda c: c.lift.lift if c.lift else 0.0)
    shown_ones = [each for each in contrasts if each.word in ("hurts", "helps")]
    conclusions = []
    for contrast in shown_ones[:_MAX_SENTENCES]:
        conclusions.append(_shown_sentence(study, pairs[contrast.name], contrast))
    for member in members:
        if member.cases:
            conclusions.append(_alone_sentence(member, arms))
    if study.errored:
        reason = f": {one_line(study.error, 200)}" if study.error else ""
        trials = counted(study.errored, "trial")
        conclusions.append(f"{trials} without an answer{reason}")
    for member in members:
        if not member.cases:
            why = f"no cases for {study.label}" if member.source.cases else "no cases"
            name = one_line(member.name, 60)
            conclusions.append(f"{name} is only a neighbour: {why}")

    tokens = sum(listing_tokens(member.source.skill) for member in members)
    skills = counted(len(members), "skill")
    conclusions.append(
        f"The list of {skills} costs every request about {counted(tokens, 'token')}"
    )
    conclusions.append(_sum_up(study.contrasts))
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


def _alone_sentence(member: Member, arms: Mapping[str, Cases]) -> str:
    """The lift of a skill without neighbours: a description,
    which is no test of the family.
    """
    alone, none = Pair(member.name, ()).arms
    lift = compare([arms[none]], [arms[alone]])
    words = "not known"
    if lift:
        words = points_words(lift.lift, unit_of(member.source.score))
    return f"{one_line(member.name, 60)} alone: {words}"


def _shown_sentence(study: Study, pair: Pair, contrast: Contrast) -> str:
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
        for word, several in (
            ("hurts", "hurt"),
            ("helps", "help"),
            ("no change shown", "no change shown"),
            ("incomplete", "incomplete"),
        ):
            if number := counts[word]:
                words.append(f"{number:,} {word if number == 1 else several}")
        return f"Of {total}: {', '.join(words)}"

    caveat = "which does not mean that nothing happens"
    if missing := counts["incomplete"]:
        caveat = f"but answers are missing for {missing:,}"
    none = "The only pair is not" if len(contrasts) == 1 else f"None of {total} is"
    return f"{none} shown to hurt or to help, {caveat}"
