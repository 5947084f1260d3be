"""What became of each case since another run."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pytest_upskill.results.case_changes import Changes, Earlier, find_changes
from pytest_upskill.results.run import RunResults
from pytest_upskill.trials.answer import AnswerFile
from pytest_upskill.trials.plan import Count
from support.made import STARTED, checked_run, made_run, made_triggers, pair_of

SAME = ("case-0", "case-1", "case-2", "case-3")


def run(
    passes: dict[int, int], runs: int = 1, cases: int = 4, **more: object
) -> RunResults:
    """So many of its runs pass of each case; all of those that are not named."""

    def passed(case: int, _model: str, _arm: str, number: int) -> bool:
        return number <= passes.get(case, runs)

    return made_run(cases=cases, runs=runs, passes=passed, **more)  # type: ignore[arg-type]


def compared(before: RunResults, after: RunResults) -> Changes:
    return find_changes(Earlier("20260102T030405Z-abcdef", before), after)


def kinds(found: Changes) -> dict[str, str]:
    return {case: change.kind for (_, case), change in found.cases.items()}


def test_the_same_run_twice_has_no_changes() -> None:
    found = compared(run({1: 0}), run({1: 0}, started=STARTED + timedelta(hours=1)))
    assert (found.cases, found.gone, found.compared) == ({}, (), 4)


def test_what_broke_was_fixed_fell_and_rose() -> None:
    found = compared(
        run({0: 5, 1: 1, 2: 5, 3: 1}, runs=5), run({0: 1, 1: 5, 2: 4, 3: 2}, runs=5)
    )
    assert kinds(found) == {
        "case-0": "broke",
        "case-1": "fixed",
        "case-2": "fell",
        "case-3": "rose",
    }
    broke = found.cases[pair_of("gate", "haiku"), "case-0"]
    assert (broke.was, broke.now) == (Count(5, 5), Count(1, 5))
    assert len(broke.records) == 10


def test_only_what_more_than_chance_explains_is_shown_to_be_better_or_worse() -> None:
    found = compared(
        run({0: 20, 1: 0, 2: 12}, runs=20), run({0: 0, 1: 20, 2: 8}, runs=20)
    )
    shown = {case: change.shown for (_, case), change in found.cases.items()}
    assert kinds(found)["case-2"] == "broke"
    assert shown == {"case-0": True, "case-1": True, "case-2": False}


def test_a_single_run_shows_nothing_by_itself() -> None:
    (change,) = compared(run({}), run({2: 0})).cases.values()
    assert (change.kind, change.shown) == ("broke", False)


def test_another_answer_or_another_file_is_a_change_too() -> None:
    before = run({})
    records = list(before.records)
    number = next(
        n for n, r in enumerate(records) if (r.case, r.arm) == ("case-1", "skill")
    )
    records[number] = replace(records[number], output="Type gate up, please.")
    number = next(
        n for n, r in enumerate(records) if (r.case, r.arm) == ("case-2", "skill")
    )
    records[number] = replace(
        records[number], files=(AnswerFile("a.txt", "x", 1, "1"),)
    )
    number = next(
        n for n, r in enumerate(records) if (r.case, r.arm) == ("case-3", "baseline")
    )
    records[number] = replace(records[number], output="Another one without the skill.")
    assert kinds(compared(before, replace(before, records=tuple(records)))) == {
        "case-1": "answer",
        "case-2": "answer",
    }


def test_other_checks_are_more_than_another_answer() -> None:
    before, after = checked_run([(0, 3), (0, 3)]), checked_run([(0, 3), (0, 5)])
    changed = compared(before, after)
    assert kinds(changed) == {"case-1": "checks"}


def test_an_edited_case_is_not_compared() -> None:
    after = run({1: 0})
    tests = [replace(t, digest="new") if t.case == "case-1" else t for t in after.tests]
    found = compared(run({}), replace(after, tests=tuple(tests)))
    assert kinds(found) == {"case-1": "edited"}
    assert found.compared == 3


def test_new_and_gone_cases() -> None:
    found = compared(run({}, cases=3), run({}, cases=4))
    assert kinds(found) == {"case-3": "new"}
    found = compared(run({}, cases=4), run({}, cases=3))
    assert (found.cases, [test.case for test in found.gone]) == ({}, ["case-3"])


def selected(results: RunResults, *cases: str) -> RunResults:
    """As with -k: the tests know how many there are in the file."""
    return replace(
        results,
        tests=tuple(test for test in results.tests if test.case in cases),
        records=tuple(record for record in results.records if record.case in cases),
    )


@pytest.mark.parametrize("swap", [False, True])
def test_a_deselected_case_is_neither_new_nor_gone(swap: bool) -> None:
    both = [run({}), selected(run({}), "case-0", "case-2")]
    found = compared(*(reversed(both) if swap else both))
    assert (found.cases, found.gone, found.compared) == ({}, (), 2)


@pytest.mark.parametrize("swap", [False, True])
def test_cases_are_neither_new_nor_gone_beside_a_run_of_triggers_alone(
    swap: bool,
) -> None:
    both = [made_triggers(only=False), made_triggers()]
    found = compared(*(reversed(both) if swap else both))
    assert (found.cases, found.gone, found.compared) == ({}, (), 7)


def test_cases_of_other_models_and_unanswered_ones_are_no_changes() -> None:
    before = run({}, models=("haiku", "opus"))
    after = run({}, models=("haiku", "sonnet"))
    errored = [
        replace(r, outcome="errored", output=None) if r.case == "case-0" else r
        for r in after.records
    ]
    found = compared(before, replace(after, records=tuple(errored)))
    assert (found.cases, found.gone, found.compared) == ({}, (), 3)
    assert found.comparison.only_after == (pair_of("gate", "sonnet"),)


def test_each_threshold_is_that_of_its_run() -> None:
    after = run({0: 3}, runs=5)
    strict = tuple(replace(test, threshold=0.9) for test in after.tests)
    found = compared(run({0: 3}, runs=5), replace(after, tests=strict))
    (change,) = found.cases.values()
    assert change.kind == "broke"
