"""A version of a description: asked for, checked, and measured on queries as a real skill.

Its score is the share of right decisions, where each kind of query weighs the same.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

from .._util.files import read_file, replace_file
from .._util.texts import digest, one_line, visible
from ..errors import InputError, spelled
from ..lint.skill_rules import lint_skill_file
from ..results.trigger_summary import QueryRate
from ..skills.case import Case
from ..skills.folder import read_text
from ..skills.frontmatter import with_description
from ..skills.skill import LONGEST_DESCRIPTION, Skill, load_skill
from ..stats import LEVEL, Lift, holm, paired_lift
from ..trials.records import Record
from .drafts import copy_taught
from .replies import (
    Loose,
    NotUsable,
    no_answer,
    read_reply,
)
from .secrets import masked
from .teach_models import TeachModels

MOST_BODY: Final = 8_000  # characters of the skill that the teacher is shown

HELD_OUT: Final = 0.4  # of the queries of each kind

_MOST_QUERY: Final = 400  # characters that the teacher is shown
_MOST_NEIGHBOURS: Final = 20_000


@dataclass(frozen=True)
class Scores:
    """What students did with queries, by the label of the student."""

    by_student: Mapping[str, tuple[QueryRate, ...]]

    @property
    def right(self) -> float:
        """Right decisions, as a mean over students: 0.5 for a skill that is always opened."""
        return fmean(_balanced(_right_by_query(rates)) for rates in self.by_student.values())

    @property
    def worst(self) -> float:
        """Of the weakest student."""
        return min(_balanced(_right_by_query(rates)) for rates in self.by_student.values())

    def right_of(self, student: str) -> float:
        return _balanced(_right_by_query(self.by_student[student]))

    def opened(self, should_trigger: bool) -> float:
        """How often the skill was opened for queries of a kind: recall, or false alarms."""
        return fmean(
            rate.rate or 0.0
            for rates in self.by_student.values()
            for rate in rates
            if rate.should_open == should_trigger
        )

    @property
    def by_query(self) -> dict[str, tuple[bool, float]]:
        """The kind of each query, and its share of right decisions over all students."""
        by_query: dict[str, list[tuple[bool, float]]] = {}
        for rates in self.by_student.values():
            for query, pair in _right_by_query(rates).items():
                by_query.setdefault(query, []).append(pair)
        return {
            query: (pairs[0][0], fmean(right for _, right in pairs))
            for query, pairs in by_query.items()
        }


def scores_of(decided: Iterable[tuple[Case, Record]], skill: str) -> Scores:
    """The rates of all queries; the records must not have errors."""
    by_query: dict[tuple[str, str], list[tuple[Case, Record]]] = {}
    for trigger, record in decided:
        by_query.setdefault((record.label, trigger.id), []).append((trigger, record))
    rates: dict[str, list[QueryRate]] = {}
    for (student, _), runs in by_query.items():
        rates.setdefault(student, []).append(_rate(runs, skill))
    return Scores({student: tuple(rates[student]) for student in rates})


def _rate(runs: Sequence[tuple[Case, Record]], skill: str) -> QueryRate:
    trigger, opened, instead = runs[0][0], 0, Counter[str]()
    for _, record in runs:
        activity = record.activity
        if activity and activity.activated:
            opened += 1
        elif activity:
            instead.update(name for name in activity.opened if name != skill)
    return QueryRate(
        trigger.id, trigger.input, trigger.should_open, opened, len(runs), 0, dict(instead)
    )


def _right_by_query(rates: Iterable[QueryRate]) -> dict[str, tuple[bool, float]]:
    return {
        query.case: (
            query.should_open,
            (query.rate or 0.0) if query.should_open else 1 - (query.rate or 0.0),
        )
        for query in rates
    }


def _balanced(right: Mapping[str, tuple[bool, float]]) -> float:
    """The mean of both kinds, so that a set with few of one kind does not hide them."""
    kinds = {should for should, _ in right.values()}
    return fmean(fmean(rate for kind, rate in right.values() if kind == should) for should in kinds)


def split_queries(triggers: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Queries to learn from, and those that are held out: the same share of each kind.

    Only their texts decide, so the same queries are always split the same way.
    """
    held = set[str]()
    for should in (True, False):
        kind = [trigger for trigger in triggers if trigger.should_open == should]
        number = min(max(1, round(HELD_OUT * len(kind))), len(kind) - 1)
        held |= {trigger.id for trigger in sorted(kind, key=_by_text)[: max(0, number)]}
    return (
        [trigger for trigger in triggers if trigger.id not in held],
        [trigger for trigger in triggers if trigger.id in held],
    )


def _by_text(trigger: Case) -> str:
    return digest(trigger.input)


def changes(before: Scores, after: Sequence[Scores], runs: int) -> list[Lift]:
    """How much better each is than before, paired by query, adjusted for their number.

    The best of several is too good by chance, so each interval has the level at which all of them
    hold together, and p values are adjusted (Holm).
    """
    level = 1 - (1 - LEVEL) / max(1, len(after))
    lifts = [paired_lift(_pairs(before, scores), runs, level) for scores in after]
    adjusted = holm([lift.p_value for lift in lifts])
    return [lift._replace(p_value=p) for lift, p in zip(lifts, adjusted, strict=True)]


def _pairs(before: Scores, after: Scores) -> list[tuple[float, float]]:
    """Both values of each query, weighted so that both kinds have the same weight."""
    old, new = before.by_query, after.by_query
    kinds = Counter(should for should, _ in old.values())
    weight = {should: len(old) / (len(kinds) * number) for should, number in kinds.items()}
    return [
        (weight[should] * right, weight[should] * new[query][1])
        for query, (should, right) in old.items()
    ]


class DescriptionForm(Loose):
    description: str


@dataclass(frozen=True)
class Wording:
    """A SKILL.md with a description; all versions differ in nothing else."""

    description: str
    text: str
    base: Skill
    scratch: Path

    def with_description(self, description: str) -> "Wording":
        text = with_description(self.text, description)
        if text is None:
            raise InputError(
                self.base.file,
                "the description can't be changed without changing more",
                "Fix what pytest-upskill lint finds in the frontmatter first.",
            )
        return Wording(description, text, self.base, self.scratch)

    @contextmanager
    def loaded(self) -> Iterator[Skill]:
        """The skill with this description, in a temporary folder."""
        folder = self.base.file.parent
        with tempfile.TemporaryDirectory(prefix="tmp-", dir=self.scratch) as temporary:
            copy = Path(temporary, folder.absolute().name)
            copy.mkdir()
            copy_taught(folder, copy)
            file = copy / self.base.file.name
            replace_file(file, self.text.encode())
            yield load_skill(file)


def wording_of(skill: Skill, scratch: Path) -> Wording:
    """The skill as it is; InputError if its description can't be changed."""
    read_text(skill.file)  # a SkillError if it is no text, or lies elsewhere
    exact = read_file(skill.file).decode()  # with its own line ends
    now = Wording(skill.description.strip(), exact, skill, scratch)
    now.with_description("Do something else.")
    return now


def read_description(text: str, current: Wording) -> Wording:
    """The description of a reply, never shortened; NotUsable says what is wrong with it."""
    description = " ".join(read_reply(text, DescriptionForm).description.split())
    if not description:
        raise NotUsable(["the description is empty"])
    if (length := len(description)) > LONGEST_DESCRIPTION:
        problem = f"the description has {length:,} characters (limit {LONGEST_DESCRIPTION:,})"
        raise NotUsable([f"{problem}: say it in fewer words"])
    if visible(description) != description or "<" in description or ">" in description:
        raise NotUsable(["the description has markup, or characters that can't be seen"])
    if masked(description) != description:
        raise NotUsable(["the description has something that looks like a secret or an address"])
    new, old_errors = current.with_description(description), _errors(current)
    if problems := [error for error in _errors(new) if error not in old_errors]:
        raise NotUsable(problems)
    return new


def _errors(wording: Wording) -> list[str]:
    with wording.loaded() as skill:
        errors = [finding for finding in lint_skill_file(skill.file) if finding.level == "error"]
    return [one_line(f"{error.message}. {spelled(error.hint)}", 300) for error in errors]


def measure_queries(models: TeachModels, wording: Wording, triggers: Sequence[Case]) -> Scores:
    """All queries on all students; TeachError if one could not be decided."""
    with wording.loaded() as skill:
        decided = models.decide(skill, triggers)
        name = skill.name
    for _, record in decided:
        if record.outcome == "errored":
            raise no_answer(models, record.error or "no answer")
    return scores_of(decided, name)


def neighbours_text(models: TeachModels, skill: Skill) -> str:
    """The skills that are installed beside it, as a list for the teacher."""
    neighbours = models.neighbours(skill)
    lines = [f"- {entry.name}: {one_line(entry.description, 300)}" for entry in neighbours]
    return masked("\n".join(lines)[:_MOST_NEIGHBOURS])


def query_report(scores: Scores) -> str:
    """What students did with each query, the worst first: part of a prompt."""
    rows = list[tuple[float, str]]()
    students = list(scores.by_student.values())
    for number, (query, (should, right)) in enumerate(scores.by_query.items()):
        by_student = [rate for rates in students for rate in rates if rate.case == query]
        opened = sum(rate.opened for rate in by_student)
        runs = sum(rate.runs for rate in by_student)
        instead = Counter[str]()
        for rate in by_student:
            instead.update(rate.instead)
        wish = "should open the skill" if should else "should not open the skill"
        opened_instead = "".join(
            f"; {name} was opened instead {instead[name]}x" for name in instead
        )
        text = one_line(by_student[0].query, _MOST_QUERY)
        line = f"- {wish}; opened in {opened} of {runs}{opened_instead}: {text}"
        rows.append((right + number / 1e6, line))
    return "\n".join(line for _, line in sorted(rows))
