"""Versions of agents in results: where they are kept,
and that a change of them is told.
"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_upskill.reports.terminal.layout import UNICODE_MARKS, TerminalLook
from pytest_upskill.reports.terminal.run_lines import comparison_lines
from pytest_upskill.reports.terminal.trend import history_lines
from pytest_upskill.results.history import keep, read_head
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_comparison import compare_runs
from pytest_upskill.results.run_file import read_run
from pytest_upskill.results.run_notes import run_notes
from support.agent_runs import agent_run
from support.made import accepted_count, kept_rows

LOOK = TerminalLook(80, UNICODE_MARKS)


def run_of(version: str, agent: str = "claude") -> RunResults:
    made = agent_run(agent=agent)
    records = tuple(
        replace(
            one,
            activity=one.activity and replace(one.activity, agents=((agent, version),)),
        )
        for one in made.records
    )
    return replace(made, records=records, bundled={agent: ("init",)})


def accepted_with(run: RunResults, version: str) -> RunResults:
    was = replace(accepted_count(1), version=version)
    return replace(run, tests=tuple(replace(test, expected=was) for test in run.tests))


def test_a_kept_run_knows_them(tmp_path: Path) -> None:
    file = keep(run_of("2.1.325"), tmp_path, 10**9)
    assert [row.agent_version for row in read_head(file).summary] == ["2.1.325"]
    again = read_run(file)
    assert (again.agents, again.bundled) == (
        {"claude": "2.1.325"},
        {"claude": ("init",)},
    )
    assert [row.agent_version for row in again.rows] == ["2.1.325"]


def test_accepted_results_of_another_version_are_told_once() -> None:
    run = accepted_with(run_of("2.1.325"), "2.1.320")
    told = "claude was 2.1.320 when results were accepted, and is now 2.1.325."
    assert run_notes(run).count(told) == 1
    for other in (accepted_with(run, "2.1.325"), accepted_with(run, "")):
        assert not [note for note in run_notes(other) if "accepted" in note]


def test_accepted_results_of_another_model_id_are_told_once() -> None:
    run = run_of("2.1.325")
    (label,) = run.model_ids
    was = replace(accepted_count(1), model_id="older")
    tests = tuple(replace(test, expected=was) for test in run.tests)
    told = f"{label} was older when results were accepted, and is now id-of-haiku."
    assert run_notes(replace(run, tests=tests)).count(told) == 1


def test_two_runs_of_different_versions_say_so() -> None:
    before, after = run_of("2.1.320"), run_of("2.1.325")
    found = compare_runs(before, after)
    lines = comparison_lines([("a", before), ("b", after)], found, LOOK)
    assert "  claude was 2.1.320 and is now 2.1.325" in lines


def test_the_list_of_runs_says_where_a_version_changed(tmp_path: Path) -> None:
    (before,), (after,) = (
        kept_rows(
            replace(run_of(version), started=datetime(2026, 1, day, tzinfo=UTC)),
            tmp_path,
        )
        for day, version in enumerate(("2.1.320", "2.1.325"), start=2)
    )
    lines = history_lines([after, before], LOOK, datetime(2026, 1, 5, tzinfo=UTC))
    where = f"in {before.run.short} and 2.1.325 in {after.run.short}"
    assert lines[-1] == f"claude was 2.1.320 {where}"
