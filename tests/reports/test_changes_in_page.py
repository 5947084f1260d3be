"""The page of a run that is compared with an earlier one."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape

import pytest

from pytest_upskill._util.git import Commit
from pytest_upskill.reports.html import html_report
from pytest_upskill.results.case_changes import Earlier
from pytest_upskill.results.contrasts import points_words
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_comparison import compare_runs
from pytest_upskill.trials.records import Record
from support.made import STARTED, made_run, made_triggers
from support.pages import PAYLOADS, Elements, data_of, hostile_run, large_run, readable_run

ID = "20260102T030405Z-abcdef"


def words_of(page: str) -> str:
    """The words between the tags of the body, without its script."""
    body = page.partition("<body>")[2].partition("<script")[0]
    return " ".join(unescape(re.sub("<[^>]*>", " ", body)).split()).replace(" ,", ",")


def broken(case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill" and case not in (1, 2)


def fixed(case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill" and case not in (2, 3)


def both(**more: object) -> tuple[RunResults, RunResults]:
    before = made_run(passes=broken, commit=Commit("b" * 40, True), **more)  # type: ignore[arg-type]
    return before, made_run(passes=fixed, started=STARTED + timedelta(days=1), **more)  # type: ignore[arg-type]


def test_without_an_earlier_run_the_page_says_nothing_of_one() -> None:
    page = html_report(made_run())
    assert "run before" not in words_of(page)
    data = data_of(page)
    assert data["before"] is None
    assert {test["change"] for test in data["tests"]} == {None}


def test_the_section_names_the_run_and_lists_what_changed_with_links() -> None:
    before, after = both()
    page = html_report(after, earlier=Earlier(ID, before))
    words = words_of(page)
    assert f"compared with {ID} · 2 January 2026, 03:04 UTC · commit bbbbbbbbb with unc" in words
    change = compare_runs(before, after).pairs[0].change
    assert change
    assert f"{change.word} haiku 67% → 67%, {points_words(change.lift)}" in words
    assert (
        "Broke 1 passed in the run before, and fail now case-3 on haiku passed 1/1 → 0/1" in words
    )
    assert (
        "Fixed 1 failed in the run before, and pass now case-1 on haiku passed 0/1 → 1/1" in words
    )
    links = [a["href"] for a in Elements(page).all("a")]
    assert "#changed" in links
    data = data_of(page)
    assert data["before"]["id"] == ID
    kinds = {test["id"]: test["change"] for test in data["tests"]}
    assert [kind for kind in kinds.values() if kind] == ["fixed", "broke"]
    assert all(f"#{place}" in links for place, kind in kinds.items() if kind)


def test_nothing_changed_is_said() -> None:
    before, _ = both()
    words = words_of(html_report(before, earlier=Earlier(ID, before)))
    assert "Nothing changed: 6 tests with the same results" in words
    assert "no change shown" not in words  # of each model: one line says it


def test_what_can_not_be_compared_is_said() -> None:
    before, after = both(runs=2)
    other = made_run(
        passes=fixed,
        runs=3,
        model_ids={"haiku": "id-2"},
        judge="opus",
        with_skills=("skills/b",),
        skills=("gate",),
    )
    tests = [replace(test, digest="x") if test.case == "case-0" else test for test in other.tests]
    after = replace(other, tests=tuple(tests))
    words = words_of(html_report(after, earlier=Earlier(ID, replace(before, judge="sonnet"))))
    assert "the model was id-of-haiku and is now id-2" in words
    assert "each case had 2 runs and now has 3" in words
    assert "1 case edited, so not compared" in words
    assert "The judge was sonnet and is now opus." in words
    assert "Other skills installed: none, and now skills/b." in words
    assert "Edited 1 another question or other checks" in words


def all_pass(_case: int, _model: str, _arm: str, _run: int) -> bool:
    return True


def none_pass(_case: int, _model: str, _arm: str, _run: int) -> bool:
    return False


def test_better_and_worse_need_evidence() -> None:
    before, after = made_run(passes=all_pass, runs=9), made_run(passes=none_pass, runs=9)
    words = words_of(html_report(after, earlier=Earlier(ID, before)))
    assert "passed 9/9 → 0/9, worse" in words
    assert "worse haiku 100% → 0%" in words
    before, after = (made_run(passes=some, runs=2, cases=1) for some in (all_pass, none_pass))
    words = words_of(html_report(after, earlier=Earlier(ID, before)))
    assert "passed 2/2 → 0/2, could be chance" in words
    assert "no change shown haiku 100% → 0%" in words


def test_unchanged_answers_are_not_repeated() -> None:
    before, after = both()
    page = html_report(after, earlier=Earlier(ID, before))
    tests = data_of(page)["tests"]
    assert "was" not in tests[0]
    was = tests[3]["was"]
    assert (was["passed"], was["now"]) == ([1, 1], [0, 1])
    trials = {trial["arm"]: trial for trial in was["trials"]}
    assert trials["skill"]["answer"] == ["Type gate up."]
    assert not trials["skill"]["same"]
    assert (trials["baseline"]["answer"], trials["baseline"]["same"]) == (None, True)


def shuffled(results: RunResults) -> RunResults:
    """Every answer is another one."""

    def other(record: Record) -> Record:
        return replace(record, output=" ".join(reversed((record.output or "").split())))

    return replace(results, records=tuple(map(other, results.records)))


@pytest.mark.nightly
def test_a_large_run_with_all_answers_changed_stays_below_the_limit() -> None:
    results = large_run()
    page = html_report(results, earlier=Earlier(ID, shuffled(results)))
    assert len(page.encode()) < 1_000_000
    tests = data_of(page)["tests"]
    shown = [test for test in tests if test["change"] and test["was"]["trials"]]
    assert len(shown) == 300
    assert len(tests) == 600
    assert "Only the answer changed 600" in words_of(page)
    assert "and 575 more" in words_of(page)


def test_hostile_names_do_no_harm() -> None:
    results = hostile_run()
    page = html_report(results, earlier=Earlier(PAYLOADS[0], shuffled(results)))
    found = Elements(page)
    assert {tag for tag, _ in found.found if tag in ("img", "iframe", "base")} == set()
    assert len(found.all("script")) == 2
    assert "</script><script>" not in unescape(page).split('id="data"')[1]


def test_triggers_are_compared_as_cases_are() -> None:
    before, after = made_triggers(["ooo", "ooo"]), made_triggers(["ooo", "---"])
    page = words_of(html_report(after, earlier=Earlier(ID, before)))
    assert "no change shown claude/haiku opens 100% → 50%" in page
    assert "trigger-needs-1" in page


def test_readable_run() -> None:
    results = readable_run()
    assert "Nothing changed" in words_of(html_report(results, earlier=Earlier(ID, results)))
