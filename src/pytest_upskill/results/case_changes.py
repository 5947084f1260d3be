"""What became of each case since another run: how often it passes,
its checks and its answers.

A case is worse or better where a test shows it, as for accepted results; everything
else is just what was counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ..trials.plan import Count, Group, PlannedCase
from ..trials.records import Record
from ..trials.subject import SkillOnSubject
from .outcomes import reaches
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
    # How much passed with the skill in the last runs, the oldest first, by skill and
    # model
    rates: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class ChangedCase:
    """A case on a model that is not as it was."""

    kind: ChangeKind
    was: Count | None = None  # of the answered runs with the skill
    now: Count | None = None
    shown: bool = False  # better or worse by more than chance explains
    records: tuple[Record, ...] = ()  # of the earlier run


@dataclass(frozen=True)
class Changes:
    """All that changed from an earlier run to a later one."""

    comparison: RunComparison
    cases: Mapping[Place, ChangedCase]
    gone: tuple[PlannedCase, ...]
    compared: int  # cases that were answered in both, and not edited


def find_changes(earlier: Earlier, later: RunResults) -> Changes:
    """The cases of the later run compared with the earlier one, in its order."""
    before = earlier.results
    old_tests = {_place(test): test for test in before.tests}
    old_pairs = {test.pair for test in before.tests}
    comparison = compare_runs(before, later)
    evident = set(_find_evident(comparison))
    old_groups = _find_whole_groups(before)
    changed: dict[Place, ChangedCase] = {}
    compared = 0
    for test in later.tests:
        if test.pair not in old_pairs:
            continue

        place = _place(test)
        records = later.planned_records_of(test)
        old_test = old_tests.get(place)
        if old_test is None:
            if test.group in old_groups:
                changed[place] = ChangedCase("new", now=passes_of(records))
            continue

        old_records = before.planned_records_of(old_test)
        if not _is_edited(old_test, test):
            compared += bool(passes_of(old_records) and passes_of(records))
        if change := _find_change(old_test, test, old_records, records):
            changed[place] = replace(change, shown=place in evident)

    return Changes(comparison, changed, _find_gone(before, later), compared)


def _find_gone(before: RunResults, later: RunResults) -> tuple[PlannedCase, ...]:
    new_places = {_place(test) for test in later.tests}
    new_groups = _find_whole_groups(later)
    return tuple(
        test
        for test in before.tests
        if test.group in new_groups and _place(test) not in new_places
    )


def _find_whole_groups(results: RunResults) -> set[Group]:
    """Where all cases were asked; of others, nothing is new or gone."""
    of_files = {test.group for test in results.tests if test.of}
    return of_files - incomplete(results.tests).keys()


def _is_edited(before: PlannedCase, after: PlannedCase) -> bool:
    return bool(before.digest and after.digest) and before.digest != after.digest


def _find_change(
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
    old = _answered(before)
    new = _answered(after)
    pairs = [(old[run], new[run]) for run in old.keys() & new.keys()]
    if any(_passed_checks(was) != _passed_checks(now) for was, now in pairs):
        return "checks"
    if test.kind.until_opened or all(
        _visible(was) == _visible(now) for was, now in pairs
    ):
        return None
    return "answer"


def _answered(records: Sequence[Record]) -> dict[int, Record]:
    """The answers with the skill, by run."""
    return {r.run: r for r in records if r.arm == "skill" and r.outcome != "errored"}


def _passed_checks(record: Record) -> list[tuple[str, bool]]:
    return [(grade.check, grade.passed) for grade in record.checks]


def _visible(record: Record) -> tuple[object, ...]:
    """What can be seen of an answer."""
    return (record.output, *((file.path, file.digest) for file in record.files))


def _find_evident(comparison: RunComparison) -> Iterator[Place]:
    """The cases that changed by more than chance explains."""
    for compared in comparison.pairs:
        fallen = compared.change.fallen if compared.change else None
        for change in (fallen, compared.risen):
            if change:
                for case in change.alone:
                    yield compared.pair, case.case
