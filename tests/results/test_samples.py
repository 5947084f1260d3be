"""Cases that ask the same, or are of one group, are one sample."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.results.planned_cases import planned_case
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_file import read_run, results_text
from pytest_upskill.results.run_notes import run_notes
from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case
from pytest_upskill.trials.trial import Question, Trial, sample_of
from support.made import by_count, made_run

CASE = Case("a", "How?\n", expected={"contains": ["x"]}, files=(("a.txt", "text"),))


def test_cases_that_ask_the_same_are_one_sample() -> None:
    same = [
        replace(CASE, id="b"),
        replace(CASE, input=" How?  "),
        replace(CASE, input="how?"),
        replace(CASE, input="H\u200bow?\u2060"),  # with characters that nobody sees
        replace(CASE, expected={"contains": ["y"]}),  # another check of the same answer
    ]
    assert {sample_of(case) for case in same} == {sample_of(CASE)}
    others = [
        replace(CASE, input="Why?"),
        replace(CASE, system="Be brief."),
        replace(CASE, files=()),
        replace(CASE, earlier=(("user", "Hi"), ("assistant", "Hello"))),
    ]
    assert len({sample_of(case) for case in [CASE, *others]}) == len(others) + 1


def test_a_test_in_python_has_no_question_yet() -> None:
    asks = Question("m", "", (("user", "How?"),), 9, 1)
    trials = [
        Trial("gate", "a", "m", "skill", 1, asked)
        for asked in (asks, replace(asks, messages=()))
    ]
    tests = [planned_case("n", CASE, [trial], Settings()) for trial in trials]
    assert [test.sample for test in tests] == [sample_of(CASE), ""]


def repeated(run: RunResults, *samples: str) -> RunResults:
    """The same run, but its cases ask these questions."""
    tests = [
        replace(test, sample=sample)
        for test, sample in zip(run.tests, samples, strict=True)
    ]
    return replace(run, tests=tuple(tests))


def test_ten_ids_of_one_question_show_nothing() -> None:
    run = repeated(made_run(cases=10, passes=by_count(*[(0, 1)] * 10)), *["q"] * 10)
    (row,) = run.rows
    assert (row.verdict, row.cases, row.samples) == (None, 10, 1)
    assert row.lift_low is not None
    assert row.lift_low < 0
    interval = row.arm("skill").interval
    assert interval
    assert interval.low < 0.25


def test_each_question_has_the_same_weight() -> None:
    """Nine copies of a case that the skill helps with, and one case that it breaks."""
    run = made_run(cases=10, passes=by_count(*[(0, 1)] * 9, (1, 0)))
    (row,) = repeated(run, *["q"] * 9, "other").rows
    assert (row.skill_rate, row.lift) == (0.5, 0.0)
    over = row.over("baseline")
    assert over
    assert sorted(over.differences) == [-1.0, 1.0]


def test_groups_are_averaged_and_kept_in_the_file(tmp_path: Path) -> None:
    run = made_run(cases=6, passes=by_count((0, 1), (0, 1), *[(0, 0)] * 4))
    tests = [replace(test, case_group=f"t{n // 3}") for n, test in enumerate(run.tests)]
    file = tmp_path / "run.json"
    file.write_text(results_text(replace(run, tests=tuple(tests))))
    again = read_run(file)
    (row,) = again.rows
    over = row.over("baseline")
    assert over
    assert over.differences == pytest.approx([2 / 3, 0])
    assert (row.cases, row.samples) == (6, 2)
    assert [note for note in run_notes(again) if "6 cases in 2 groups" in note]
    assert not [note for note in run_notes(run) if "groups" in note]
