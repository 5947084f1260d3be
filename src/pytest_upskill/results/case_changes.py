"""What became of each case since another run: how often it passes, and its answers.

Only answers with the skill count. A case is worse or better where a test shows it, as for accepted
results; everything else is just what was counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..stats import regressed
from ..trials.plan import Count, PlannedCase
from ..trials.records import Record
from ..trials.subject import SkillOnSubject
from .regressions import reaches
from .run import RunResults, incomplete
from .run_comparison import RunComparison, compare_runs

ChangeKind = Literal["broke", "fixed", "fell", "rose", "edited", "new", "answer"]
Place = tuple[SkillOnSubject, str]  # and the id of a case


@dataclass(frozen=True)
class Earlier:
    """A run that another one is compared with."""

    id: str  # of the history, or the name of a file
    results: RunResults


@dataclass(frozen=True)
class ChangedCase:
    """A case on a model that is not as it was."""

    kind: ChangeKind
    was: Count | None = None  # of the answered runs with the skill
    now: Count | None = None
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
    not_asked: Mapping[SkillOnSubject, int]  # in one of them, by -k or --lf

    def of(self, test: PlannedCase) -> ChangedCase | None:
        return self.cases.get(_place(test))

    def of_kind(self, kind: ChangeKind) -> list[Place]:
        return [place for place, change in self.cases.items() if change.kind == kind]


def changes(earlier: Earlier, later: RunResults) -> Changes:
    """The cases of the later run compared with the earlier one, in the order of the later."""
    return _Comparing(earlier, later).changes()


@dataclass(frozen=True)
class _Comparing:
    earlier: Earlier
    later: RunResults

    @property
    def _old(self) -> RunResults:
        return self.earlier.results

    def changes(self) -> Changes:
        old, new = (_by_place(run.tests) for run in (self._old, self.later))
        pairs = {test.pair for test in old.values()} & {test.pair for test in new.values()}
        parts = [incomplete(run.tests) for run in (self._old, self.later)]
        changed: dict[Place, ChangedCase] = {}
        compared: dict[Place, tuple[Count, Count]] = {}
        not_asked: dict[SkillOnSubject, int] = {}
        gone: list[PlannedCase] = []
        for place, test in new.items():
            if test.pair not in pairs:
                continue
            if before := old.get(place):
                if counts := self._counts(before, test):
                    compared[place] = counts
                if change := self._change(before, test, counts):
                    changed[place] = change
            elif test.of and test.group not in parts[0]:
                changed[place] = ChangedCase("new", now=_count(self.later.records_of(test)))
            else:
                not_asked[test.pair] = not_asked.get(test.pair, 0) + 1
        for place, test in old.items():
            if test.pair not in pairs or place in new:
                continue
            if test.of and test.group not in parts[1]:
                gone.append(test)
            else:
                not_asked[test.pair] = not_asked.get(test.pair, 0) + 1
        evident = _evident(compared)
        return Changes(
            self.earlier,
            compare_runs(self._old, self.later),
            {place: replace(change, shown=place in evident) for place, change in changed.items()},
            tuple(gone),
            len(compared),
            not_asked,
        )

    def _counts(self, old: PlannedCase, new: PlannedCase) -> tuple[Count, Count] | None:
        """None if they can't be compared: one was not answered, or the case was edited."""
        was, now = _count(self._old.records_of(old)), _count(self.later.records_of(new))
        return (was, now) if was and now and not _edited(old, new) else None

    def _change(
        self, old: PlannedCase, new: PlannedCase, counts: tuple[Count, Count] | None
    ) -> ChangedCase | None:
        records = self._old.records_of(old)
        if _edited(old, new):
            both = (_count(records), _count(self.later.records_of(new)))
            return ChangedCase("edited", *both, records=tuple(records))
        if counts is None:
            return None
        was, now = counts
        thresholds = (old.threshold, new.threshold)
        good = (reaches(was, old.threshold), reaches(now, new.threshold))
        kind: ChangeKind | None = None
        if good[0] != good[1]:
            kind = "fixed" if good[1] else "broke"
        elif was.share != now.share:
            kind = "rose" if now.share > was.share else "fell"
        elif _answers(records) != _answers(self.later.records_of(new)):
            kind = "answer"
        return kind and ChangedCase(kind, was, now, thresholds=thresholds, records=tuple(records))


def _place(test: PlannedCase) -> Place:
    return test.pair, test.case


def _by_place(tests: Sequence[PlannedCase]) -> dict[Place, PlannedCase]:
    return {_place(test): test for test in tests}


def _edited(old: PlannedCase, new: PlannedCase) -> bool:
    return bool(old.digest and new.digest and old.digest != new.digest)


def _count(records: Sequence[Record]) -> Count | None:
    runs = [record for record in records if record.arm == "skill" and record.outcome != "errored"]
    passed = sum(record.outcome == "passed" for record in runs)
    return Count(passed, len(runs)) if runs else None


def _answers(records: Sequence[Record]) -> dict[int, tuple[object, ...]]:
    """What can be seen of each answer with the skill, by run."""
    return {
        record.run: (record.output, *((file.path, file.digest) for file in record.files))
        for record in records
        if record.arm == "skill" and record.outcome != "errored"
    }


def _evident(counts: Mapping[Place, tuple[Count, Count]]) -> set[Place]:
    """The cases that changed by more than chance explains, among those of their skill and model."""
    groups: dict[SkillOnSubject, list[Place]] = {}
    for place in counts:
        groups.setdefault(place[0], []).append(place)
    evident = set[Place]()
    for places in groups.values():
        was, now = [counts[place][0] for place in places], [counts[place][1] for place in places]
        worse, better = regressed(was, now).cases, regressed(now, was).cases
        evident.update(places[index] for index in (*worse, *better))
    return evident
