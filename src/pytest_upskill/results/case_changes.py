"""What became of each case since another run: how often it passes,
its checks and its answers.

A case is worse or better where a test shows it, as for accepted results; everything
else is just what was counted.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from ..trials.plan import Count, Group, PlannedCase
from ..trials.records import Record
from ..trials.subject import SkillOnSubject
from .regressions import reaches
from .run import RunResults, incomplete
from .run_comparison import RunComparison, compare_runs, passes_of

Place = tuple[SkillOnSubject, str]  # and the id of a case
# checks: passes as often, but other checks do; answer: only the answer differs.
ChangeKind = Literal[
    "broke", "fixed", "fell", "rose", "checks", "answer", "edited", "new"
]


@dataclass(frozen=True)
class Earlier:
    """A run that another one is compared with."""

    id: str  # of the history, or the name of a file
    results: RunResults
    later_id: str = ""  # of the other, if it has one


@dataclass(frozen=True)
class ChangedCase:
    """A case on a model that is not as it was."""

    kind: ChangeKind
    was: Count | None = None  # of the answered runs with the skill
    now: Count | None = None
    scores: tuple[float | None, float | None] = (
        None,
        None,
    )  # the share of checks that passed, then and now
    shown: bool = False  # better or worse by more than chance explains
    thresholds: tuple[float | None, float | None] = (None, None)
    records: tuple[Record, ...] = ()  # of the earlier run


@dataclass(frozen=True)
class Changes:
    """All that changed from an earlier run to a later one."""

    earlier: Earlier
    comparison: RunComparison
    cases: Mapping[Place, ChangedCase]
    gone: tuple[PlannedCase, ...]
    compared: int  # cases that were answered in both, and not edited
    not_asked: Mapping[Group, int]  # in one of them, by -k, -m or --lf

    def of(self, test: PlannedCase) -> ChangedCase | None:
        return self.cases.get(_place(test))

    def of_kind(self, kind: ChangeKind) -> list[Place]:
        return [place for place, change in self.cases.items() if change.kind == kind]


def changes(earlier: Earlier, later: RunResults) -> Changes:
    """The cases of the later run compared with the earlier one,
    in the order of the later.
    """
    before = earlier.results
    old, new = ({_place(test): test for test in run.tests} for run in (before, later))
    pairs = {test.pair for test in old.values()} & {test.pair for test in new.values()}
    # Where all cases of a kind were asked; of a kind without any, say by -m,
    # nothing is known.
    whole = [
        {test.group for test in run.tests} - incomplete(run.tests).keys()
        for run in (before, later)
    ]
    changed: dict[Place, ChangedCase] = {}
    compared = 0
    not_asked = Counter[Group]()
    gone: list[PlannedCase] = []
    for place, test in new.items():
        if test.pair not in pairs:
            continue
        records = later.planned_records_of(test)
        if old_test := old.get(place):
            old_records = before.planned_records_of(old_test)
            answered = passes_of(old_records) and passes_of(records)
            compared += bool(answered and not _is_edited(old_test, test))
            if change := _change(old_test, test, old_records, records):
                changed[place] = change
        elif test.of and test.group in whole[0]:
            changed[place] = ChangedCase("new", now=passes_of(records))
        else:
            not_asked[test.group] += 1
    for place, test in old.items():
        if test.pair in pairs and place not in new:
            if test.of and test.group in whole[1]:
                gone.append(test)
            else:
                not_asked[test.group] += 1
    comparison = compare_runs(before, later)
    evident = set(_evident(comparison))
    return Changes(
        earlier,
        comparison,
        {
            place: replace(change, shown=place in evident)
            for place, change in changed.items()
        },
        tuple(gone),
        compared,
        not_asked,
    )


def _is_edited(before: PlannedCase, after: PlannedCase) -> bool:
    return bool(before.digest and after.digest) and before.digest != after.digest


def _change(
    old_test: PlannedCase,
    test: PlannedCase,
    old_records: Sequence[Record],
    records: Sequence[Record],
) -> ChangedCase | None:
    """What became of a case that is in both runs; None if it is the same."""
    was = passes_of(old_records)
    now = passes_of(records)
    kind: ChangeKind | None = None
    if _is_edited(old_test, test):
        kind = "edited"
    elif was and now:
        kind = _kind(old_test, test, was, now)
        kind = kind or _kind_of_answers(test, old_records, records)
    if not kind:
        return None

    return ChangedCase(
        kind,
        was,
        now,
        (_score(old_records), _score(records)),
        thresholds=(old_test.threshold, test.threshold),
        records=tuple(old_records),
    )


def _place(test: PlannedCase) -> Place:
    return test.pair, test.case


def _kind(
    old: PlannedCase, new: PlannedCase, was: Count, now: Count
) -> ChangeKind | None:
    """What became of how often a case passes."""
    good = (reaches(was, old.threshold), reaches(now, new.threshold))
    if good[0] != good[1]:
        return "fixed" if good[1] else "broke"
    if was.share != now.share:
        return "rose" if now.share > was.share else "fell"
    return None


def _kind_of_answers(
    test: PlannedCase, before: Sequence[Record], after: Sequence[Record]
) -> ChangeKind | None:
    """What differs in a run that both have; of a query, only what it opens counts."""
    old, new = _answered(before), _answered(after)
    pairs = [(old[run], new[run]) for run in old.keys() & new.keys()]
    if any(_passed_checks(was) != _passed_checks(now) for was, now in pairs):
        return "checks"
    differs = not all(same_answer(was, now) for was, now in pairs)
    return "answer" if differs and not test.is_trigger else None


def _answered(records: Sequence[Record]) -> dict[int, Record]:
    """The answers with the skill, by run."""
    return {r.run: r for r in records if r.arm == "skill" and r.outcome != "errored"}


def _passed_checks(record: Record) -> list[tuple[str, bool]]:
    return [(grade.check, grade.passed) for grade in record.checks]


def same_answer(record: Record, other: Record) -> bool:
    """By what can be seen of them."""
    return _visible(record) == _visible(other)


def _visible(record: Record) -> tuple[object, ...]:
    return (record.output, *((file.path, file.digest) for file in record.files))


def _score(records: Sequence[Record]) -> float | None:
    scores = [
        record.score
        for record in _answered(records).values()
        if record.score is not None
    ]
    return fmean(scores) if scores else None


def _evident(comparison: RunComparison) -> Iterator[Place]:
    """The cases that changed by more than chance explains."""
    for row in comparison.pairs:
        if row.change and (versions := row.change.versions):
            yield from (
                (row.pair, c) for c in (*versions.worse_cases, *versions.better_cases)
            )
