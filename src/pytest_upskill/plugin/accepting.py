"""Accepted results in the controller: notes on the comparison, and --skill-accept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

from .._util.credentials import shown_command
from .._util.texts import counted, harmless, one_line
from ..errors import shown
from ..reports.writers import Writer
from ..results.accepted import (
    DIGITS,
    RESULTS_NAME,
    CaseResult,
    ModelResults,
    case_result,
    read_results,
    updated,
    write_results,
)
from ..results.regressions import AcceptedComparison, Compared
from ..results.run import RunResults
from ..settings import Settings
from ..trials.plan import PlannedCase
from .ledger import Ledger
from .options import spell

_MOST_NAMES: Final = 10


@dataclass(frozen=True)
class _Group:
    """The cases of a skill on a model, and their results."""

    skill: str
    model: str
    folder: Path
    tests: tuple[PlannedCase, ...]
    results: dict[str, CaseResult]  # by node id; only of cases that were answered

    @property
    def subset(self) -> bool:
        """Whether the run left out some cases."""
        from_file = [test.of for test in self.tests if test.of]
        return len(from_file) < max(from_file, default=0)

    @property
    def existing(self) -> tuple[str, ...]:
        """The ids of all cases in the skill's file, if they come from there."""
        return max((test.siblings for test in self.tests), key=len)


def _groups(ledger: Ledger) -> list[_Group]:
    groups: dict[tuple[str, str], list[PlannedCase]] = {}
    for test in ledger.planned:
        groups.setdefault(test.pair, []).append(test)
    return [
        _Group(skill, model, Path(tests[0].folder), tuple(tests), _results(ledger, tests))
        for (skill, model), tests in groups.items()
    ]


def _results(ledger: Ledger, tests: Sequence[PlannedCase]) -> dict[str, CaseResult]:
    found = {
        test.nodeid: case_result(ledger.records_of(test.nodeid), test.digest)
        for test in tests
        if test.compared
    }
    return {nodeid: result for nodeid, result in found.items() if result}


def writer(settings: Settings, ledger: Ledger, notes: list[str]) -> Iterator[Writer]:
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
            if present:
                model_id, skill = ledger.model_ids[group.model], digests[group.skill]
                now = ModelResults(model_id, ledger.date, skill[:DIGITS], present)
                whole = bool(group.existing) and not group.subset
                results = updated(results, group.model, now, group.existing, whole=whole)
            lines.append(f"{group.skill} on {group.model}: {_accepted(group, folder)}")
        if results is not before:
            write_results(folder, results)
    return lines


def _accepted(group: _Group, folder: Path) -> str:
    left = [test.case for test in group.tests if test.nodeid not in group.results]
    text = f"accepted {counted(len(group.results), 'case')} in {shown(folder / RESULTS_NAME)}"
    return f"{text}; not accepted: {_names(left)}" if left else text


def notes(results: RunResults, config: pytest.Config) -> list[str]:
    """How the results compare with the accepted ones, and how to accept them."""
    lines, found = results.notes(spell), results.comparisons
    to_accept = False
    for comparison in found:
        where = f"{comparison.skill} on {comparison.model}"
        better, unknown = comparison.of_kind("better"), comparison.unknown
        to_accept = to_accept or bool(better or unknown)
        if better:
            lines.append(f"{where}: better than accepted: {_descriptions(better)}.")
        lines += worse_notes([comparison])
        if unknown:
            names = _names([case.test.case for case in unknown])
            lines.append(f"{where}: no accepted result (new or changed): {names}.")
    if to_accept and not any(comparison.reasons for comparison in found):
        lines.append(f"To accept: {command_that_accepts(config)}")
    return lines


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
