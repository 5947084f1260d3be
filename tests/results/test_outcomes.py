"""How each test ended: one word, and counts that are made of it."""

from dataclasses import replace

import pytest

from pytest_upskill.results.outcomes import (
    OutcomeWord,
    Reported,
    count_outcomes,
    count_words,
    failure_words,
)
from pytest_upskill.results.run import RunResults
from support.made import accepted_count, made_run


def fails_even(case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill" and case % 2 == 1


def words(results: RunResults) -> list[OutcomeWord]:
    return [outcome.outcome for outcome in results.outcomes]


def test_a_wrong_answer_fails_and_one_accepted_as_failing_does_not() -> None:
    results = made_run(cases=4, passes=fails_even, accepted={2: accepted_count(0)})
    assert words(results) == ["failed", "passed", "accepted", "passed"]
    assert results.outcome_counts == {"failed": 1, "passed": 2, "accepted": 1}
    assert [test.case for test in results.failed] == ["case-0"]
    assert results.outcomes[0].reason == '"gate up" is not in the answer'
    assert results.outcomes[2].reason.startswith(
        "accepted as failing on 2026-01-01 (0 of 1): "
    )


def test_a_regression_is_a_failure() -> None:
    accepted = {0: accepted_count(5, 5), 1: accepted_count(5, 5)}
    results = made_run(cases=2, runs=5, passes=fails_even, accepted=accepted)
    first, second = results.outcomes
    assert (first.outcome, first.regressed) == ("failed", True)
    assert (second.outcome, second.regressed, second.reason) == ("passed", False, "")


def test_a_missing_answer_is_an_error_and_a_test_that_never_ran_is_none() -> None:
    made = made_run(cases=3, passes=lambda *_: True)
    records = [
        (
            replace(record, outcome="errored", error="no server", checks=())
            if record.case == "case-1"
            else record
        )
        for record in made.records
        if record.case != "case-2"
    ]
    results = replace(
        made, records=tuple(records), broken={"x": "no such check"}, lost=("y",)
    )
    assert words(results) == ["passed", "error", "not run", "error", "not run"]
    reasons = [outcome.reason for outcome in results.outcomes]
    assert reasons == ["", "no server", "", "no such check", ""]


@pytest.mark.parametrize(
    ("reported", "word"),
    [
        *(("passed", "passed"), ("failed", "failed"), ("error", "error")),
        *(("xfailed", "accepted"), ("skipped", "not run")),
    ],
)
def test_where_pytest_ran_the_test_its_word_decides(
    reported: Reported, word: OutcomeWord
) -> None:
    made = made_run(cases=1, passes=lambda *_: False)
    results = replace(made, reported={made.tests[0].nodeid: reported})
    assert words(results) == [word]


def test_a_test_marked_xfail_is_an_accepted_failure() -> None:
    made = made_run(cases=2, passes=fails_even)
    results = replace(
        made, tests=tuple(replace(test, compared=False) for test in made.tests)
    )
    assert words(results) == ["accepted", "passed"]
    assert results.outcomes[0].reason.startswith("marked xfail: ")


def test_counts_are_listed_as_pytest_does() -> None:
    counts: dict[OutcomeWord, int] = {
        "failed": 18,
        "passed": 45,
        "accepted": 8,
        "error": 1,
    }
    assert count_words(counts) == "18 failed, 8 accepted, 1 error"
    assert count_words({"passed": 1200}) == "1,200 passed"
    assert count_words({"error": 2, "not run": 1}) == "2 errors, 1 not run"
    assert count_outcomes([]) == {}
    assert failure_words({"passed": 2, "accepted": 1}) == []
    both = failure_words({"failed": 1, "error": 1}, 3)
    assert both == ["1 failed, 1 error", "1 other test failed"]


def test_accepted_numbers_are_of_the_cases_that_were_accepted() -> None:
    accepted = {0: accepted_count(5, 5), 1: accepted_count(4, 5)}
    results = made_run(cases=4, runs=5, passes=fails_even, accepted=accepted)
    since = results.rows[0].accepted
    assert since
    assert (since.rate, since.now, since.worse) == pytest.approx((0.9, 0.5, 1))
    assert since.words == "fell 90 → 50 since 2026-01-01"
    assert made_run().rows[0].accepted is None
