"""The matrix of neighbours as a study: every skill alone, beside each other one, beside all."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Final

from .._util.files import resolved
from .._util.texts import one_line
from ..checks import CheckedCase
from ..errors import InputError, SettingsError, shown
from ..results.neighbours import MATTERS, Alone, Matrix, Neighbour, Openings, pair_name
from ..skills.skill import Skill, estimated_tokens
from ..stats import Lift, cases_to_tell, family_level
from ..trials.arm import SkillCopy
from ..trials.records import Record
from ..trials.subject import CHAT, Subject
from .arm_maker import files_of_cases
from .study import Contrast, SkillCases, Studied, Study, Variant

_ARMS: Final[tuple[str, ...]] = ("baseline", "skill")

NO_CASES: Final = "no cases"


@dataclass(frozen=True)
class Member:
    """A skill of the matrix; without cases it is only a neighbour of others."""

    source: SkillCases
    as_neighbour: SkillCopy
    cases: tuple[CheckedCase, ...] = ()
    why_unmeasured: str = NO_CASES

    @property
    def name(self) -> str:
        return self.source.skill.name


def matrix_studies(
    sources: Sequence[SkillCases], subjects: Mapping[Subject, str], looks: tuple[int, ...]
) -> list[Study]:
    """A study for each agent on a model; ``subjects`` have the ids of their models.

    InputError if there is nothing to compare.
    """
    require_agents(subjects)
    skills = distinct(sources)
    if not any(source.cases for source in skills):
        names = ", ".join(one_line(source.skill.name, 60) for source in skills[:5])
        hint = "Write some: at least one of the skills is tested on its own cases."
        raise InputError(names, "none of these skills has cases", hint)
    studies = []
    for subject, model_id in subjects.items():
        members = [_member(source, subject, model_id) for source in skills]
        variants, contrasts = study_of(members)
        conclude = partial(matrix_of, members, subject, looks)
        studies.append(Study(subject, tuple(variants), tuple(contrasts), conclude))
    return studies


def _member(source: SkillCases, subject: Subject, model_id: str) -> Member:
    skill, cases = source.skill, source.cases_for(subject, model_id)
    without = files_of_cases(skill, [case for case, _ in source.cases])
    reason = f"no cases for {subject.label}" if source.cases else NO_CASES
    return Member(source, SkillCopy.of(skill.name, skill.file.parent, None, without), cases, reason)


def distinct(sources: Iterable[SkillCases]) -> list[SkillCases]:
    """Each skill once; InputError if two have the same name, or there are not two."""
    by_name: dict[str, SkillCases] = {}
    for source in sources:
        name, folder = source.skill.name, source.skill.file.parent
        same_name = by_name.setdefault(name, source).skill.file.parent
        if resolved(folder) != resolved(same_name):
            problem = f"{shown(same_name)} has the same name ({one_line(name, 60)})"
            hint = "Agents know skills by their names, so rename one, or leave it out."
            raise InputError(shown(folder), problem, hint)
    if len(by_name) < 2:
        folders = [shown(source.skill.file.parent) for source in by_name.values()] or ["skills"]
        raise InputError(folders[0], "a matrix needs at least two skills", "Name more skills.")
    return list(by_name.values())


def require_agents(subjects: Iterable[Subject]) -> None:
    """SettingsError if a subject is a plain completion, which no other skill can reach."""
    if any(subject.agent == CHAT for subject in subjects):
        problem = "a plain completion sees one skill only, so no other can change its answers"
        raise SettingsError("agents", problem, "Choose an agent, for example loop.", value=CHAT)


def study_of(members: Sequence[Member]) -> tuple[list[Variant], list[Contrast]]:
    """All ways to ask, and the contrasts: the lift with others, less the lift alone."""
    variants, contrasts = list[Variant](), list[Contrast]()
    for tested in members:
        if not tested.cases:
            continue
        neighbours = _neighbours(tested, members)
        for neighbour in (_ALONE, *neighbours):
            beside = _installed(tested, neighbour, members)
            variants += [
                Variant(
                    _variant(tested.name, neighbour, arm),
                    tested.source.skill,
                    tested.cases,
                    arm,
                    beside,
                    tested.source.score,
                    tested.source.prompt,
                )
                for arm in _ARMS
            ]
        contrasts += [_contrast(tested.name, neighbour) for neighbour in neighbours]
    return variants, contrasts


def matrix_of(
    members: Sequence[Member], subject: Subject, looks: tuple[int, ...], studied: Studied
) -> Matrix:
    """What came of the study."""
    numbers = _PairNumbers(studied, looks)
    tested = [member for member in members if member.cases]
    return Matrix(
        agent=subject.agent,
        model=subject.model,
        skills=tuple(member.name for member in members),
        alone=tuple(numbers.alone(member.name) for member in tested),
        pairs=tuple(
            numbers.pair(member.name, neighbour)
            for member in tested
            for neighbour in _neighbours(member, members)
        ),
        listing={member.name: listing_tokens(member.source.skill) for member in members},
        listing_seen=_counted_listing(studied.records, members),
        not_measured={member.name: member.why_unmeasured for member in members if not member.cases},
        trials=studied.trials,
        errored=studied.errored,
        error=studied.most_common_error,
        most_runs=looks[-1],
        cost=studied.cost,
    )


def listing_tokens(skill: Skill) -> int:
    """An estimate of what a skill's entry in the list of skills costs every request."""
    return estimated_tokens(f"{skill.name}: {skill.description}")


_ALONE: Final = ""  # in place of a neighbour; no skill has an empty name


def _neighbours(tested: Member, members: Sequence[Member]) -> list[str | None]:
    """By name; None is all together, if there are several."""
    names = [member.name for member in members if member.name != tested.name]
    return [*names, None] if len(names) > 1 else [*names]


def _installed(
    tested: Member, neighbour: str | None, members: Sequence[Member]
) -> tuple[SkillCopy, ...]:
    skills = [
        member.as_neighbour
        for member in members
        if member.name != tested.name and neighbour in (None, member.name)
    ]
    return tuple(sorted(skills, key=lambda skill: skill.name))


def _contrast(skill: str, neighbour: str | None) -> Contrast:
    """(with skill and neighbour - with the neighbour) - (with the skill - with none)."""
    return Contrast(
        pair_name(skill, neighbour),
        (_variant(skill, neighbour, "skill"), _variant(skill, _ALONE, "baseline")),
        (_variant(skill, neighbour, "baseline"), _variant(skill, _ALONE, "skill")),
    )


def _variant(skill: str, neighbour: str | None, arm: str) -> str:
    return f"{pair_name(skill, neighbour)}, {arm}"


@dataclass(frozen=True)
class _PairNumbers:
    """The numbers of a study, by pair."""

    studied: Studied
    looks: tuple[int, ...]

    def alone(self, skill: str) -> Alone:
        records = self._records(skill, _ALONE, "skill")
        runs = max((record.run for record in records), default=0)
        cases = len({record.case for record in records})
        return Alone(skill, self._lift(skill, _ALONE), cases, runs, _openings(records))

    def pair(self, skill: str, neighbour: str | None) -> Neighbour:
        return Neighbour(
            skill,
            neighbour,
            self.studied.effects[pair_name(skill, neighbour)],
            self._lift(skill, neighbour),
            _openings(self._records(skill, neighbour, "skill")),
            self._cases_to_tell(_contrast(skill, neighbour)),
        )

    def _cases_to_tell(self, contrast: Contrast) -> int | None:
        by_case = contrast.differences(self.studied.scores, self.looks[-1])
        if by_case is None:
            return None
        level = family_level(len(self.studied.effects), self.looks)
        return cases_to_tell(by_case.values, MATTERS, level, by_case.reach)

    def _lift(self, skill: str, neighbour: str | None) -> Lift | None:
        plus, minus = (_variant(skill, neighbour, arm) for arm in ("skill", "baseline"))
        return self.studied.lift(plus, minus)

    def _records(self, skill: str, neighbour: str | None, arm: str) -> Sequence[Record]:
        return self.studied.records.get(_variant(skill, neighbour, arm), ())


def _openings(records: Iterable[Record]) -> Openings:
    """Of trials that have an answer and an activity."""
    answered = (record for record in records if record.outcome != "errored")
    activities = [record.activity for record in answered if record.activity]
    return Openings(
        len(activities),
        Counter(name for activity in activities for name in dict.fromkeys(activity.opened)),
        Counter(activity.opened[0] for activity in activities if activity.opened),
    )


def _counted_listing(
    records: Mapping[str, Sequence[Record]], members: Sequence[Member]
) -> dict[str, int]:
    """What a skill's entry costs by the model's count of the first request, with it and without.

    Only where another skill is installed on both sides: the first skill also brings what agents
    say about skills in general.
    """
    first = {
        (variant, record.case, record.run): tokens
        for variant, of_variant in records.items()
        for record in of_variant
        if (tokens := _first_request(record)) is not None
    }
    keys = {(case, run) for _, case, run in first}
    by_skill: dict[str, list[int]] = {}
    for skill, with_skill, without in _comparable(members):
        by_skill.setdefault(skill, []).extend(
            first[with_skill, *key] - first[without, *key]
            for key in keys
            if (with_skill, *key) in first and (without, *key) in first
        )
    medians = {skill: round(median(tokens)) for skill, tokens in by_skill.items() if tokens}
    names = (member.name for member in members)
    return {name: medians[name] for name in names if medians.get(name, 0) > 0}


def _comparable(members: Sequence[Member]) -> Iterator[tuple[str, str, str]]:
    """A skill, and two variants of which only the first has it."""
    for tested in (member for member in members if member.cases):
        for neighbour in _neighbours(tested, members):
            with_both = _variant(tested.name, neighbour, "skill")
            yield tested.name, with_both, _variant(tested.name, neighbour, "baseline")
            if neighbour is not None:
                yield neighbour, with_both, _variant(tested.name, _ALONE, "skill")


def _first_request(record: Record) -> int | None:
    return next((turn.input_tokens for turn in record.transcript if turn.reply == 1), None)
