"""How a description does on queries: the share of right decisions, each kind of query the same."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from .._util.texts import digest
from ..results.triggers import QueryRate
from ..skills.triggers import Trigger
from ..stats import LEVEL, Lift, holm, paired_lift
from ..trials.records import Record

HELD_OUT: Final = 0.4  # of the queries of each kind


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
            if rate.should_trigger == should_trigger
        )

    @property
    def by_query(self) -> dict[str, tuple[bool, float]]:
        """The kind of each query, and its share of right decisions over all students."""
        found: dict[str, list[tuple[bool, float]]] = {}
        for rates in self.by_student.values():
            for query, pair in _right_by_query(rates).items():
                found.setdefault(query, []).append(pair)
        return {query: (own[0][0], fmean(one for _, one in own)) for query, own in found.items()}


def scores_of(decided: Iterable[tuple[Trigger, Record]], skill: str) -> Scores:
    """The rates of all queries; the records must not have errors."""
    found: dict[tuple[str, str], list[tuple[Trigger, Record]]] = {}
    for trigger, record in decided:
        found.setdefault((record.model, trigger.id), []).append((trigger, record))
    rates: dict[str, list[QueryRate]] = {}
    for (student, _), own in found.items():
        rates.setdefault(student, []).append(_rate(own, skill))
    return Scores({student: tuple(own) for student, own in rates.items()})


def _rate(own: Sequence[tuple[Trigger, Record]], skill: str) -> QueryRate:
    trigger, opened, instead = own[0][0], 0, Counter[str]()
    for _, record in own:
        activity = record.activity
        if activity and activity.activated:
            opened += 1
        elif activity:
            instead.update(name for name in activity.opened if name != skill)
    return QueryRate(
        trigger.id, trigger.query, trigger.should_trigger, opened, len(own), 0, dict(instead)
    )


def _right_by_query(rates: Iterable[QueryRate]) -> dict[str, tuple[bool, float]]:
    return {
        one.case: (
            one.should_trigger,
            (one.rate or 0.0) if one.should_trigger else 1 - (one.rate or 0.0),
        )
        for one in rates
    }


def _balanced(right: Mapping[str, tuple[bool, float]]) -> float:
    """The mean of both kinds, so that a set with few of one kind does not hide them."""
    kinds = {should for should, _ in right.values()}
    return fmean(fmean(one for kind, one in right.values() if kind == should) for should in kinds)


def split_queries(triggers: Sequence[Trigger]) -> tuple[list[Trigger], list[Trigger]]:
    """Queries to learn from, and those that are held out: the same share of each kind.

    Only their texts decide, so the same queries are always split the same way.
    """
    held = set[str]()
    for should in (True, False):
        own = sorted((one for one in triggers if one.should_trigger == should), key=_by_text)
        number = min(max(1, round(HELD_OUT * len(own))), len(own) - 1)
        held |= {one.id for one in own[: max(0, number)]}
    return (
        [one for one in triggers if one.id not in held],
        [one for one in triggers if one.id in held],
    )


def _by_text(trigger: Trigger) -> str:
    return digest(trigger.query)


def changes(before: Scores, after: Sequence[Scores], runs: int) -> list[Lift]:
    """How much better each is than before, paired by query, adjusted for their number.

    The best of several is too good by chance, so each interval has the level at which all of them
    hold together, and p values are adjusted (Holm).
    """
    level = 1 - (1 - LEVEL) / max(1, len(after))
    lifts = [paired_lift(_pairs(before, one), runs, level) for one in after]
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
