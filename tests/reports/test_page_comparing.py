"""What the page says of an earlier run."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from pytest_upskill._util.git import Commit
from pytest_upskill.reports.page import run_page
from pytest_upskill.results.case_changes import Earlier
from pytest_upskill.results.contrasts import span_words
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_comparison import compare_runs
from support.made import STARTED, made_run, made_triggers
from support.pages import data_of, readable_run

ID = "20260102T030405Z-abcdef"


def changes_of(before: RunResults, after: RunResults) -> dict[str, Any]:
    found: dict[str, Any] = data_of(run_page(after, earlier=Earlier(ID, before)))[
        "changes"
    ]
    return found


def broken(case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill" and case not in (1, 2)


def fixed(case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill" and case not in (2, 3)


def both(**more: object) -> tuple[RunResults, RunResults]:
    before = made_run(passes=broken, commit=Commit("b" * 40, dirty=True), **more)  # type: ignore[arg-type]
    return before, made_run(passes=fixed, started=STARTED + timedelta(days=1), **more)  # type: ignore[arg-type]


def test_without_an_earlier_run_the_page_says_nothing_of_one() -> None:
    assert data_of(run_page(made_run()))["changes"] is None


def test_the_run_is_named_and_what_changed_is_listed() -> None:
    before, after = both()
    changes = changes_of(before, after)
    assert changes["id"] == ID
    assert changes["started"].startswith("2026-01-02T03:04:05")
    assert (changes["commit"]["id"], changes["commit"]["dirty"]) == ("b" * 40, True)
    (pair,) = compare_runs(before, after).pairs
    assert pair.change
    assert changes["pairs"][0]["text"] == span_words(pair.change.lift)
    found = [
        (case["case"], case["kind"], case["was"], case["now"])
        for case in changes["cases"]
    ]
    assert found == [
        ("case-1", "fixed", [0, 1], [1, 1]),
        ("case-3", "broke", [1, 1], [0, 1]),
    ]


def test_nothing_changed() -> None:
    for run in (both()[0], readable_run()):
        changes = changes_of(run, run)
        assert not changes["cases"]
        assert changes["compared"]


def test_what_can_not_be_compared_is_said() -> None:
    before = replace(both(runs=2)[0], judge="sonnet")
    other = made_run(
        passes=fixed,
        runs=3,
        model_ids={"haiku": "id-2"},
        judge="opus",
        with_skills=("skills/b",),
    )
    tests = [
        replace(test, digest="x") if test.case == "case-0" else test
        for test in other.tests
    ]
    changes = changes_of(before, replace(other, tests=tuple(tests)))
    assert {
        "the model was id-of-haiku and is now id-2",
        "each case had 2 runs and now has 3",
        "1 case edited, so not compared",
    } <= set(changes["pairs"][0]["about"])
    assert changes["notes"] == [
        "the judge was sonnet and is now opus",
        "other skills installed: none, and now skills/b",
    ]
    assert "edited" in [case["kind"] for case in changes["cases"]]


def all_pass(_case: int, _model: str, _arm: str, _run: int) -> bool:
    return True


def none_pass(_case: int, _model: str, _arm: str, _run: int) -> bool:
    return False


def test_better_and_worse_need_evidence() -> None:
    changes = changes_of(
        made_run(passes=all_pass, runs=9), made_run(passes=none_pass, runs=9)
    )
    assert all(case["shown"] for case in changes["cases"])
    few = (made_run(passes=passes, runs=2, cases=1) for passes in (all_pass, none_pass))
    assert [case["shown"] for case in changes_of(*few)["cases"]] == [False]


def test_unchanged_answers_are_not_repeated() -> None:
    _, broke = changes_of(*both())["cases"]
    records = {record["arm"]: record for record in broke["records"]}
    assert (records["skill"]["output"], records["skill"]["same"]) == (
        "Type gate up.",
        False,
    )
    assert (records["baseline"]["output"], records["baseline"]["same"]) == (None, True)


def test_triggers_are_compared_as_cases_are() -> None:
    changes = changes_of(made_triggers(["ooo", "ooo"]), made_triggers(["ooo", "---"]))
    assert [case["case"] for case in changes["cases"]] == ["trigger-needs-1"]
