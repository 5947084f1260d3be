"""What the page says of an earlier run."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from pytest_upskill.reports.page import run_page
from pytest_upskill.results.case_changes import Earlier
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_comparison import compare_runs
from support.made import STARTED, made_run, made_triggers
from support.pages import data_of

ID = "20260102T030405Z-abcdef"


def changes_of(before: RunResults, after: RunResults) -> dict[str, Any]:
    changes: dict[str, Any]
    changes = data_of(run_page(after, earlier=Earlier(ID, before)))["changes"]
    return changes


def broken(case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill" and case not in (1, 2)


def fixed(case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill" and case not in (2, 3)


def test_without_an_earlier_run_the_page_says_nothing_of_one() -> None:
    assert data_of(run_page(made_run()))["changes"] is None


def test_changed_cases_have_their_old_answers() -> None:
    before = made_run(passes=broken, judge="sonnet")
    after = made_run(passes=fixed, started=STARTED + timedelta(days=1), judge="opus")
    changes = changes_of(before, after)
    assert changes["id"] == ID
    assert changes["started"].startswith("2026-01-02T03:04:05")
    (pair,) = compare_runs(before, after).pairs
    assert changes["sentences"] == [
        "the judge was sonnet and is now opus",
        f"gate on haiku: {pair.words}",
    ]
    first, second = changes["cases"]
    assert (first["case"], first["kind"], first["was"]) == ("case-1", "fixed", [0, 1])
    assert (second["case"], second["kind"], second["now"]) == (
        "case-3",
        "broke",
        [0, 1],
    )
    assert not first["shown"]
    answers = {record["arm"]: record["output"] for record in second["records"]}
    assert answers == {"baseline": "No idea.", "skill": "Type gate up."}


def test_worse_is_shown_only_with_evidence() -> None:
    def all_pass(_case: int, _model: str, _arm: str, _run: int) -> bool:
        return True

    def none_pass(_case: int, _model: str, arm: str, _run: int) -> bool:
        return arm == "baseline"

    runs = (made_run(passes=passes, runs=9) for passes in (all_pass, none_pass))
    assert all(case["shown"] for case in changes_of(*runs)["cases"])


def test_runs_that_share_nothing_say_so() -> None:
    changes = changes_of(made_run(models=("haiku",)), made_run(models=("opus",)))
    assert changes["sentences"] == [
        "the runs share no tests of a skill on the same model"
    ]
    assert changes["compared"] == 0


def test_edited_cases_are_no_better_and_no_worse() -> None:
    run = made_run(passes=fixed)
    tests = [
        replace(test, digest="x") if test.case == "case-0" else test
        for test in run.tests
    ]
    changes = changes_of(run, replace(run, tests=tuple(tests)))
    assert [case["kind"] for case in changes["cases"]] == ["edited"]


def test_triggers_are_compared_as_cases_are() -> None:
    changes = changes_of(made_triggers(["ooo", "ooo"]), made_triggers(["ooo", "---"]))
    assert [case["case"] for case in changes["cases"]] == ["trigger-needs-1"]
