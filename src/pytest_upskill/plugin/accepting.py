"""Accepted results: those without a test, notes on the comparison, and --skill-accept."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

from .._util.texts import counted, harmless, one_line
from ..errors import InputError, shown
from ..reports.writers import Writer
from ..results.accepted import (
    DIGITS,
    NOTHING_ACCEPTED,
    RESULTS_NAME,
    AcceptedResults,
    CaseResult,
    ModelResults,
    case_digest,
    case_result,
    read_results,
    trigger_digest,
    write_results,
)
from ..results.regressions import AcceptedComparison, CaseState, Compared, Present, unmatched_in
from ..results.run import RunResults, judged
from ..results.run_notes import run_notes
from ..settings import Settings
from ..trials.plan import PlannedCase, Unmatched
from ..trials.subject import SkillOnSubject, Subject
from .items import is_skipped
from .ledger import Ledger
from .paths import SkillSource
from .planning import accepted_of, planned_of
from .pytest_options import spell
from .skill_files import SkillFile

_MOST_NAMES: Final = 10


@dataclass(frozen=True)
class _Group:
    """The cases of a skill on a model, or its queries, and their results."""

    pair: SkillOnSubject
    trigger: bool
    folder: Path
    tests: tuple[PlannedCase, ...]
    results: dict[str, CaseResult]  # by node id; only of cases that were answered
    dropped: tuple[str, ...]  # accepted cases that are gone or skipped

    @property
    def existing(self) -> tuple[str, ...]:
        """The ids of all cases in the skill's file, if they come from there."""
        return max((test.siblings for test in self.tests), key=len, default=())


_Place = tuple[SkillOnSubject, bool]  # and whether it is of queries


def _place(test: PlannedCase) -> _Place:
    return test.pair, test.should_trigger is not None


def _groups(ledger: Ledger) -> list[_Group]:
    groups: dict[_Place, list[PlannedCase]] = {}
    tests = [*ledger.planned, *ledger.queries]
    for test in tests:
        groups.setdefault(_place(test), []).append(test)
    folders = {place: tests_of_place[0].folder for place, tests_of_place in groups.items()}
    dropped: dict[_Place, list[str]] = {}
    for result in judged(ledger.unmatched, tests):
        if result.why != "changed":
            place = (result.pair, result.trigger)
            dropped.setdefault(place, []).append(result.case)
            folders.setdefault(place, result.folder)
    for test in ledger.skipped:
        dropped.setdefault(_place(test), []).append(test.case)
    return [
        _Group(
            *place,
            Path(folder),
            tuple(groups.get(place, ())),
            _results(ledger, groups.get(place, ())),
            tuple(dropped.get(place, ())),
        )
        for place, folder in folders.items()
    ]


def unmatched_of(
    items: Iterable[pytest.Item],
    files: Iterable[SkillFile],
    without_cases: Iterable[SkillSource],
    subjects: Mapping[str, Subject],
    asked_queries: Collection[str],
) -> tuple[Unmatched, ...]:
    """The accepted results on these models that no selected test is compared with.

    Those of queries only on models that are asked queries.
    """
    by_place: dict[_Place, _AcceptedOfModel] = {}
    for file in files:
        for model in asked_queries:
            if entry := _known_queries(file, model):
                by_place[SkillOnSubject(file.source.label, subjects[model]), True] = entry
        for model in file.accepted.models.keys() & subjects.keys():
            listed = bool(file.siblings)
            runnable = file.runnable.get(model, 0)  # none if only triggers are tested
            accepted = file.accepted.models[model]
            entry = _AcceptedOfModel(accepted, file.source.folder, runnable, listed)
            by_place[SkillOnSubject(file.source.label, subjects[model]), False] = entry
            for case in file.cases:
                state: CaseState = "left out" if file.fits(case, model) else "for other models"
                entry.present[case.id] = Present(case_digest(case, file.source.folder), state)
            for name in set(file.siblings) - entry.present.keys():
                entry.present[name] = Present("", "left out")  # broken, which is reported
    for item in items:
        if not (planned := planned_of(item)):
            continue
        place = _place(planned)
        if found := accepted_of(item).by_model(trigger=place[1]).get(planned.label):
            entry = by_place.setdefault(place, _AcceptedOfModel(found, Path(planned.folder)))
            state = "tested" if planned.compared else "marked xfail"
            state = "skipped" if is_skipped(item) else state
            entry.present[planned.case] = Present(planned.digest, state)
    for source in without_cases:
        there = _read_if_good(source.folder)
        for trigger, asked in ((False, subjects), (True, asked_queries)):
            for model, accepted in there.by_model(trigger=trigger).items():
                if model in asked:
                    place = (SkillOnSubject(source.label, subjects[model]), trigger)
                    entry = by_place.setdefault(place, _AcceptedOfModel(accepted, source.folder))
                    entry.all_listed = True
    return tuple(
        Unmatched(
            pair.skill,
            pair.subject.model,
            name,
            was.count,
            entry.accepted.date,
            why,
            entry.of,
            str(entry.folder),
            trigger,
            pair.subject.agent,
        )
        for (pair, trigger), entry in by_place.items()
        for name, why in unmatched_in(entry.accepted, entry.present, all_listed=entry.all_listed)
        if (was := entry.accepted.cases[name])
    )


@dataclass
class _AcceptedOfModel:
    """The accepted results of a skill on a model, and the cases that it has now."""

    accepted: ModelResults
    folder: Path
    of: int = 0
    all_listed: bool = False
    present: dict[str, Present] = field(default_factory=dict)


def _known_queries(file: SkillFile, model: str) -> _AcceptedOfModel | None:
    """The accepted results of queries on a model, and the queries that there are now."""
    if not (accepted := file.accepted.triggers.get(model)):
        return None
    queries = file.queries
    of = len(queries.triggers) + len(queries.broken)
    queries_of_model = _AcceptedOfModel(accepted, file.source.folder, of, all_listed=True)
    for trigger in queries.triggers:
        queries_of_model.present[trigger.id] = Present(trigger_digest(trigger), "left out")
    for broken in queries.broken:
        queries_of_model.present[broken.name] = Present("", "left out")  # which is reported
    return queries_of_model


def _read_if_good(folder: Path) -> AcceptedResults:
    """The accepted results of a skill that is not tested; errors are reported once it is."""
    try:
        return read_results(folder)
    except InputError:
        return NOTHING_ACCEPTED


def _results(ledger: Ledger, tests: Sequence[PlannedCase]) -> dict[str, CaseResult]:
    by_nodeid = {
        test.nodeid: case_result(ledger.records_of(test.nodeid), test.digest)
        for test in tests
        if test.compared
    }
    return {nodeid: result for nodeid, result in by_nodeid.items() if result}


def acceptance_writer(settings: Settings, ledger: Ledger, notes: list[str]) -> Iterator[Writer]:
    """Accept the results, if --skill-accept is given, and add a note for each skill."""

    def write() -> list[Path]:
        notes.extend(accept(ledger))
        return []

    if settings.accept:
        yield "accept", write


def accept(ledger: Ledger) -> list[str]:
    """Write the results beside the skills; a note for each skill and model."""
    lines = []
    digests = {skill.name: skill.digest for skill in ledger.skills}
    by_folder = sorted(_groups(ledger), key=lambda group: str(group.folder))
    for folder, groups in groupby(by_folder, key=lambda group: group.folder):
        before = results = read_results(folder)
        for group in groups:
            present = {
                test.case: group.results[test.nodeid]
                for test in group.tests
                if test.nodeid in group.results
            }
            label = group.pair.subject.label
            accepted = results.by_model(trigger=group.trigger).get(label)
            dropped = tuple(case for case in group.dropped if accepted and case in accepted.cases)
            if present:
                model_id = ledger.model_ids[label]
                skill = digests[group.pair.skill]
                version = ledger.version_of(group.tests)
                now = ModelResults(model_id, ledger.date, skill[:DIGITS], present, version)
                results = results.updated(
                    label, now, group.existing, dropped, trigger=group.trigger
                )
            elif dropped:
                results = results.without(label, dropped, trigger=group.trigger)
            lines.append(f"{group.pair}: {_accepted(group, folder, dropped)}")
        if results is not before:
            write_results(folder, results)
    return lines


def _accepted(group: _Group, folder: Path, dropped: Sequence[str]) -> str:
    not_accepted = [test.case for test in group.tests if test.nodeid not in group.results]
    count = counted(len(group.results), "query" if group.trigger else "case")
    text = f"accepted {count} in {shown(folder / RESULTS_NAME)}"
    text += f"; not accepted: {_names(not_accepted)}" if not_accepted else ""
    return text + (f"; dropped: {_names(dropped)}" if dropped else "")


def acceptance_notes(results: RunResults) -> list[str]:
    """How the results compare with the accepted ones."""
    lines = run_notes(results, spell)
    for comparison in results.comparisons:
        place = (comparison.pair, comparison.of_triggers)
        changed = {
            result.case for result in results.unmatched if (result.pair, result.trigger) == place
        }
        better = comparison.of_kind("better")
        unknown = [case for case in comparison.unknown if case.test.case not in changed]
        if better:
            lines.append(f"{comparison.pair}: better than accepted: {_descriptions(better)}.")
        lines += worse_notes([comparison])
        if unknown:
            names = _names([case.test.case for case in unknown])
            lines.append(f"{comparison.pair}: no accepted result yet: {names}.")
    return lines


def something_to_accept(results: RunResults) -> bool:
    """Whether results are new or better, and none regressed."""
    comparisons = results.comparisons
    news = any(comparison.of_kind("better") or comparison.unknown for comparison in comparisons)
    unmatched = judged(results.unmatched, results.all_tests)
    return bool(news or unmatched) and not any(comparison.reasons for comparison in comparisons)


def worse_notes(comparisons: Sequence[AcceptedComparison]) -> list[str]:
    """Cases that did worse, which could be chance."""
    lines = []
    for comparison in comparisons:
        if chance := comparison.of_kind("could be chance"):
            lines.append(
                f"{comparison.pair}: below accepted; could be chance: {_descriptions(chance)}."
            )
    return lines


def _descriptions(cases: Sequence[Compared]) -> str:
    others_note = [f"and {len(cases) - _MOST_NAMES} more"] if len(cases) > _MOST_NAMES else []
    return "; ".join([*(case.numbers for case in cases[:_MOST_NAMES]), *others_note])


def _names(cases: Sequence[str]) -> str:
    others_note = [f"and {len(cases) - _MOST_NAMES} more"] if len(cases) > _MOST_NAMES else []
    return ", ".join([*(one_line(case, 60) for case in cases[:_MOST_NAMES]), *others_note])


def fail_late(ledger: Ledger, config: pytest.Config) -> None:
    """Report tests as failed that passed or xfailed before their regression was known.

    These are tests in Python, and cases next to them. A second report of a test is what pytest
    makes of a teardown that fails: terminal, JUnit, IDEs and --lf know it.
    """
    late = [
        (report, comparison.standing(case).reason)
        for comparison in ledger.comparisons()
        for case in comparison.regressed
        if (report := ledger.report_to_fail(case.test.nodeid))
    ]
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if late and reporter:
        reporter.ensure_newline()
    for report, reason in late:
        report.longrepr = report.longrepr or harmless(reason)
        report.sections.append(("upskill", harmless(reason)))
        config.hook.pytest_runtest_logreport(report=report)
