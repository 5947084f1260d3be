"""Accepted results: which a run has no test for, notes on the comparison, and --skill-accept."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

from .._util.credentials import shown_command
from .._util.texts import counted, harmless, one_line
from ..errors import InputError, shown
from ..reports.writers import Writer
from ..results.accepted import (
    DIGITS,
    RESULTS_NAME,
    CaseResult,
    ModelResults,
    Results,
    case_digest,
    case_result,
    of_triggers,
    read_results,
    trigger_digest,
    updated,
    without,
    write_results,
)
from ..results.regressions import AcceptedComparison, Compared
from ..results.run import RunResults, judged
from ..results.unmatched import Present, State, unmatched_in
from ..settings import Settings
from ..trials.plan import PlannedCase, Unmatched
from ..trials.subject import Subject
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

    skill: str
    model: str
    trigger: bool
    folder: Path
    tests: tuple[PlannedCase, ...]
    results: dict[str, CaseResult]  # by node id; only of cases that were answered
    dropped: tuple[str, ...]  # accepted cases that are gone or skipped

    @property
    def existing(self) -> tuple[str, ...]:
        """The ids of all cases in the skill's file, if they come from there."""
        return max((test.siblings for test in self.tests), key=len, default=())

    @property
    def name(self) -> str:
        """Of the model in the accepted results."""
        return of_triggers(self.model) if self.trigger else self.model


_Place = tuple[str, str, bool]  # skill, model, and whether it is of queries


def _place(test: PlannedCase) -> _Place:
    return (*test.pair, test.should_trigger is not None)


def _groups(ledger: Ledger) -> list[_Group]:
    groups: dict[_Place, list[PlannedCase]] = {}
    tests = [*ledger.planned, *ledger.queries]
    for test in tests:
        groups.setdefault(_place(test), []).append(test)
    folders = {place: own[0].folder for place, own in groups.items()}
    dropped: dict[_Place, list[str]] = {}
    for one in judged(ledger.unmatched, tests):
        if one.why != "changed":
            place = (*one.pair, one.trigger)
            dropped.setdefault(place, []).append(one.case)
            folders.setdefault(place, one.folder)
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
    known: dict[_Place, _AcceptedOfModel] = {}
    for file in files:
        for model in asked_queries:
            if one := _known_queries(file, model):
                known[file.source.label, model, True] = one
        for model in file.accepted.keys() & subjects.keys():
            listed = bool(file.siblings)
            runnable = file.runnable.get(model, 0)  # none if only triggers are tested
            one = _AcceptedOfModel(file.accepted[model], file.source.folder, runnable, listed)
            known[file.source.label, model, False] = one
            for case in file.cases:
                state: State = "left out" if file.fits(case, model) else "for other models"
                one.present[case.id] = Present(case_digest(case, file.source.folder), state)
            for name in set(file.siblings) - one.present.keys():
                one.present[name] = Present("", "left out")  # broken, which is told
    for item in items:
        if not (planned := planned_of(item)):
            continue
        accepted, name = accepted_of(item), planned.label
        name = name if planned.should_trigger is None else of_triggers(name)
        if name in accepted:
            folder = Path(planned.folder)
            one = known.setdefault(_place(planned), _AcceptedOfModel(accepted[name], folder))
            state = "tested" if planned.compared else "marked xfail"
            state = "skipped" if is_skipped(item) else state
            one.present[planned.case] = Present(planned.digest, state)
    for source in without_cases:
        there = _read_if_good(source.folder)
        names = {(model, False): model for model in subjects}
        names |= {(model, True): of_triggers(model) for model in asked_queries}
        for (model, trigger), name in names.items():
            if name in there:
                place = (source.label, model, trigger)
                one = known.setdefault(place, _AcceptedOfModel(there[name], source.folder))
                one.all_listed = True
    return tuple(
        Unmatched(
            skill,
            subjects[label].model,
            name,
            was.count,
            one.accepted.date,
            why,
            one.of,
            str(one.folder),
            trigger,
            subjects[label].agent,
        )
        for (skill, label, trigger), one in known.items()
        for name, why in unmatched_in(one.accepted, one.present, all_listed=one.all_listed)
        if (was := one.accepted.cases[name])
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
    if not (accepted := file.accepted.get(of_triggers(model))):
        return None
    queries = file.queries
    of = len(queries.triggers) + len(queries.broken)
    found = _AcceptedOfModel(accepted, file.source.folder, of, all_listed=True)
    for trigger in queries.triggers:
        found.present[trigger.id] = Present(trigger_digest(trigger), "left out")
    for broken in queries.broken:
        found.present[broken.name] = Present("", "left out")  # which is told
    return found


def _read_if_good(folder: Path) -> Results:
    """Of a skill that is not tested: what is wrong with the file is told once it is."""
    try:
        return read_results(folder)
    except InputError:
        return {}


def _results(ledger: Ledger, tests: Sequence[PlannedCase]) -> dict[str, CaseResult]:
    found = {
        test.nodeid: case_result(ledger.records_of(test.nodeid), test.digest)
        for test in tests
        if test.compared
    }
    return {nodeid: result for nodeid, result in found.items() if result}


def acceptance_writer(settings: Settings, ledger: Ledger, notes: list[str]) -> Iterator[Writer]:
    """Accepts the results, if --skill-accept is given, and adds what it did to the notes."""

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
            known = results[group.name].cases if group.name in results else {}
            dropped = tuple(case for case in group.dropped if case in known)
            if present:
                model_id, skill = ledger.model_ids[group.model], digests[group.skill]
                version = ledger.version_of(group.tests)
                now = ModelResults(model_id, ledger.date, skill[:DIGITS], present, version)
                results = updated(results, group.name, now, group.existing, dropped)
            elif dropped:
                results = without(results, group.name, dropped)
            lines.append(f"{group.skill} on {group.model}: {_accepted(group, folder, dropped)}")
        if results is not before:
            write_results(folder, results)
    return lines


def _accepted(group: _Group, folder: Path, dropped: Sequence[str]) -> str:
    left = [test.case for test in group.tests if test.nodeid not in group.results]
    what = counted(len(group.results), "query" if group.trigger else "case")
    text = f"accepted {what} in {shown(folder / RESULTS_NAME)}"
    text += f"; not accepted: {_names(left)}" if left else ""
    return text + (f"; dropped: {_names(dropped)}" if dropped else "")


def acceptance_notes(results: RunResults, config: pytest.Config) -> list[str]:
    """How the results compare with the accepted ones, and how to accept them."""
    lines = results.notes(spell)
    for comparison in results.comparisons:
        where = f"{comparison.skill} on {comparison.model}"
        place = (comparison.pair, comparison.of_triggers)
        changed = {one.case for one in results.unmatched if (one.pair, one.trigger) == place}
        better = comparison.of_kind("better")
        unknown = [case for case in comparison.unknown if case.test.case not in changed]
        if better:
            lines.append(f"{where}: better than accepted: {_descriptions(better)}.")
        lines += worse_notes([comparison])
        if unknown:
            names = _names([case.test.case for case in unknown])
            lines.append(f"{where}: no accepted result yet: {names}.")
    return [*lines, *how_to_accept(results, config)]


def how_to_accept(results: RunResults, config: pytest.Config) -> list[str]:
    """The command, if there is something to accept and no regression."""
    found = results.comparisons
    news = any(one.of_kind("better") or one.unknown for one in found)
    unmatched = judged(results.unmatched, results.all_tests)
    if (not news and not unmatched) or any(one.reasons for one in found):
        return []
    return [f"To accept: {command_that_accepts(config)}"]


def worse_notes(found: Sequence[AcceptedComparison]) -> list[str]:
    """Cases that did worse, which could be chance."""
    lines = []
    for comparison in found:
        if chance := comparison.of_kind("could be chance"):
            where = f"{comparison.skill} on {comparison.model}"
            lines.append(f"{where}: below accepted; could be chance: {_descriptions(chance)}.")
    return lines


def _descriptions(cases: Sequence[Compared]) -> str:
    more = [f"and {len(cases) - _MOST_NAMES} more"] if len(cases) > _MOST_NAMES else []
    return "; ".join([*(case.numbers for case in cases[:_MOST_NAMES]), *more])


def _names(cases: Sequence[str]) -> str:
    more = [f"and {len(cases) - _MOST_NAMES} more"] if len(cases) > _MOST_NAMES else []
    return ", ".join([*(one_line(case, 60) for case in cases[:_MOST_NAMES]), *more])


def command_that_accepts(config: pytest.Config) -> str:
    return shown_command(["pytest", *map(str, config.invocation_params.args), "--skill-accept"])


def fail_late(ledger: Ledger, config: pytest.Config) -> None:
    """Report tests as failed that passed or xfailed before the others of a regression were known.

    These are tests in Python, and cases next to them. A second report of a test is what pytest
    makes of a teardown that fails: terminal, JUnit, IDEs and --lf know it.
    """
    late = [
        (report, found.standing(case).reason)
        for found in ledger.comparisons()
        for case in found.regressed
        if (report := ledger.report_to_fail(case.test.nodeid))
    ]
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if late and reporter:
        reporter.ensure_newline()
    for report, reason in late:
        report.longrepr = report.longrepr or harmless(reason)
        report.sections.append(("upskill", harmless(reason)))
        config.hook.pytest_runtest_logreport(report=report)
