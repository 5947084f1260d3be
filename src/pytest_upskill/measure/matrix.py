"""The matrix of neighbours as a study: every skill alone, beside each other one, beside all."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from statistics import median
from typing import Final

from .._util.files import resolved
from .._util.texts import one_line
from ..checks import CheckedCase
from ..errors import InputError, SettingsError, shown
from ..results.neighbours import MATTERS, Alone, Matrix, Neighbour, Openings, pair_name
from ..skills.skill import Skill, estimated_tokens
from ..stats import Lift, cases_to_tell, family_level
from ..trials.records import Record
from ..trials.subject import CHAT, Arm, Subject
from ..trials.task import Installed, installed
from .outfits import files_of_cases
from .study import Contrast, SkillCases, Studied, Study, Variant, differences

_ARMS: Final[tuple[Arm, ...]] = ("baseline", "skill")

NO_CASES: Final = "no cases"


@dataclass(frozen=True)
class Member:
    """A skill of the matrix; without cases it is only a neighbour of others."""

    source: SkillCases
    installed: Installed  # as a neighbour
    cases: tuple[CheckedCase, ...] = ()
    why: str = NO_CASES  # it has none for this subject

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
    own = distinct(sources)
    if not any(one.cases for one in own):
        names = ", ".join(one_line(one.skill.name, 60) for one in own[:5])
        hint = "Write some: at least one of the skills is tested on its own cases."
        raise InputError(names, "none of these skills has cases", hint)
    studies = []
    for subject, model_id in subjects.items():
        members = [_member(one, subject, model_id) for one in own]
        variants, contrasts = study_of(members)
        conclude = partial(_concluded, members, subject, looks)
        studies.append(Study(subject, tuple(variants), tuple(contrasts), conclude))
    return studies


def _member(source: SkillCases, subject: Subject, model_id: str) -> Member:
    skill, cases = source.skill, source.cases_for(subject, model_id)
    without = files_of_cases(skill, [case for case, _ in source.cases])
    why = f"no cases for {subject.label}" if source.cases else NO_CASES
    return Member(source, installed(skill.name, skill.file.parent, None, without), cases, why)


def _concluded(
    members: Sequence[Member], subject: Subject, looks: tuple[int, ...], studied: Studied
) -> Matrix:
    return matrix_of(members, subject, studied, looks)


def distinct(sources: Iterable[SkillCases]) -> list[SkillCases]:
    """Each skill once; InputError if two have the same name, or there are not two."""
    found: dict[str, SkillCases] = {}
    for one in sources:
        known, name = found.setdefault(one.skill.name, one), one.skill.name
        here, there = one.skill.file.parent, known.skill.file.parent
        if resolved(here) != resolved(there):
            problem = f"{shown(there)} has the same name ({one_line(name, 60)})"
            hint = "Agents know skills by their names, so rename one, or leave it out."
            raise InputError(shown(here), problem, hint)
    if len(found) < 2:
        where = shown(next(iter(found.values())).skill.file.parent) if found else "skills"
        raise InputError(where, "a matrix needs at least two skills", "Name more skills.")
    return list(found.values())


def require_agents(subjects: Iterable[Subject]) -> None:
    """SettingsError if a subject is a plain completion, which no other skill can reach."""
    if any(one.agent == CHAT for one in subjects):
        problem = "a plain completion sees one skill only, so no other can change its answers"
        raise SettingsError("agents", problem, "Choose an agent, for example loop.", value=CHAT)


def study_of(members: Sequence[Member]) -> tuple[list[Variant], list[Contrast]]:
    """All ways to ask, and the contrasts: the lift with others, less the lift alone."""
    variants, contrasts = list[Variant](), list[Contrast]()
    for tested in members:
        if not tested.cases:
            continue
        for other in (_ALONE, *_neighbours(tested, members)):
            beside = _installed(tested, other, members)
            variants += [
                Variant(
                    _variant(tested.name, other, arm),
                    tested.source.skill,
                    tested.cases,
                    arm,
                    beside,
                    tested.source.score,
                    tested.source.prompt,
                )
                for arm in _ARMS
            ]
        contrasts += [_contrast(tested.name, one) for one in _neighbours(tested, members)]
    return variants, contrasts


def matrix_of(
    members: Sequence[Member],
    subject: Subject,
    studied: Studied,
    looks: tuple[int, ...],
) -> Matrix:
    """What came of the study."""
    found = _Found(studied, looks)
    tested = [one for one in members if one.cases]
    records = list(chain.from_iterable(studied.records.values()))
    errors = Counter(one.error for one in records if one.outcome == "errored" and one.error)
    return Matrix(
        agent=subject.agent,
        model=subject.label,
        skills=tuple(one.name for one in members),
        alone=tuple(found.alone(one.name) for one in tested),
        pairs=tuple(
            found.pair(one.name, other) for one in tested for other in _neighbours(one, members)
        ),
        listing={one.name: listing_tokens(one.source.skill) for one in members},
        listing_seen=_seen(studied.records, members),
        not_measured={one.name: one.why for one in members if not one.cases},
        trials=studied.trials,
        errored=sum(one.outcome == "errored" for one in records),
        error=errors.most_common(1)[0][0] if errors else "",
        most_runs=looks[-1],
        cost=studied.cost,
    )


def listing_tokens(skill: Skill) -> int:
    """An estimate of what a skill's entry in the list of skills costs every request."""
    return estimated_tokens(f"{skill.name}: {skill.description}")


_ALONE: Final = ""  # in place of a neighbour; no skill has an empty name


def _neighbours(tested: Member, members: Sequence[Member]) -> list[str | None]:
    """By name; None is all together, if there are several."""
    others = [one.name for one in members if one.name != tested.name]
    return [*others, None] if len(others) > 1 else [*others]


def _installed(
    tested: Member, other: str | None, members: Sequence[Member]
) -> tuple[Installed, ...]:
    wanted = [
        one.installed
        for one in members
        if one.name != tested.name and (other is None or one.name == other)
    ]
    return tuple(sorted(wanted, key=lambda one: one.name))


def _contrast(skill: str, other: str | None) -> Contrast:
    """(with the skill and the other - with the other) - (with the skill - without)."""
    return Contrast(
        pair_name(skill, other),
        (_variant(skill, other, "skill"), _variant(skill, _ALONE, "baseline")),
        (_variant(skill, other, "baseline"), _variant(skill, _ALONE, "skill")),
    )


def _variant(skill: str, other: str | None, arm: Arm) -> str:
    return f"{pair_name(skill, other)}, {arm}"


@dataclass(frozen=True)
class _Found:
    """Numbers of a study, by pair."""

    studied: Studied
    looks: tuple[int, ...]

    def alone(self, skill: str) -> Alone:
        records = self._records(skill, _ALONE, "skill")
        runs = max((one.run for one in records), default=0)
        cases = len({one.case for one in records})
        return Alone(skill, self._lift(skill, _ALONE), cases, runs, _openings(records))

    def pair(self, skill: str, other: str | None) -> Neighbour:
        return Neighbour(
            skill,
            other,
            self.studied.effects[pair_name(skill, other)],
            self._lift(skill, other),
            _openings(self._records(skill, other, "skill")),
            self._cases_to_tell(_contrast(skill, other)),
        )

    def _cases_to_tell(self, contrast: Contrast) -> int | None:
        scores = self.studied.scores
        plus, minus = ([scores[one] for one in own] for own in (contrast.plus, contrast.minus))
        found = differences(plus, minus, self.looks[-1])
        if found is None:
            return None
        level = family_level(len(self.studied.effects), self.looks)
        return cases_to_tell(found.values, MATTERS, level, found.reach)

    def _lift(self, skill: str, other: str | None) -> Lift | None:
        plus, minus = (_variant(skill, other, arm) for arm in ("skill", "baseline"))
        return self.studied.lift(plus, minus)

    def _records(self, skill: str, other: str | None, arm: Arm) -> Sequence[Record]:
        return self.studied.records.get(_variant(skill, other, arm), ())


def _openings(records: Iterable[Record]) -> Openings:
    """Of the trials with an answer whose agent tells."""
    told = [one.activity for one in records if one.outcome != "errored" and one.activity]
    return Openings(
        len(told),
        Counter(name for one in told for name in dict.fromkeys(one.opened)),
        Counter(one.opened[0] for one in told if one.opened),
    )


def _seen(records: Mapping[str, Sequence[Record]], members: Sequence[Member]) -> dict[str, int]:
    """What a skill's entry costs by the model's count of the first request, with it and without.

    Only where another skill is installed on both sides: what agents say about skills in general
    comes with the first one.
    """
    first = {
        (name, one.case, one.run): tokens
        for name, own in records.items()
        for one in own
        if (tokens := _first_request(one)) is not None
    }
    keys = {(case, run) for _, case, run in first}
    found: dict[str, list[int]] = {}
    for skill, more, less in _comparable(members):
        pairs = [(first.get((more, *key)), first.get((less, *key))) for key in keys]
        own = [one - two for one, two in pairs if one is not None and two is not None]
        found.setdefault(skill, []).extend(own)
    middle = {name: round(median(own)) for name, own in found.items() if own}
    return {one.name: middle[one.name] for one in members if middle.get(one.name, 0) > 0}


def _comparable(members: Sequence[Member]) -> Iterator[tuple[str, str, str]]:
    """A skill, and two variants of which only one has it."""
    for tested in (one for one in members if one.cases):
        for other in _neighbours(tested, members):
            with_both = _variant(tested.name, other, "skill")
            yield tested.name, with_both, _variant(tested.name, other, "baseline")
            if other is not None:
                yield other, with_both, _variant(tested.name, _ALONE, "skill")


def _first_request(record: Record) -> int | None:
    return next((turn.input_tokens for turn in record.transcript if turn.reply == 1), None)
