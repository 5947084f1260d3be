"""Cases that ask the same are one sample for every interval and test."""

from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean

import pytest

from pytest_upskill.results.accepted import planned_case
from pytest_upskill.results.regressions import Compared, compare
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_file import read_run, results_text
from pytest_upskill.results.run_notes import run_notes
from pytest_upskill.results.summary import case_words
from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case
from pytest_upskill.stats import paired_lift
from pytest_upskill.trials.plan import Count, Expectation, Group, PlannedCase
from pytest_upskill.trials.trial import Question, Trial, sample_of
from support.made import made_run, pair_of
from support.simulated import ask, rates
from support.words import HELPS, TOO_FEW

GROUP = Group(pair_of("gate", "m"), of_triggers=False)
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
        replace(test, sample=one) for test, one in zip(run.tests, samples, strict=True)
    ]
    return replace(run, tests=tuple(tests))


def test_ten_ids_of_one_question_show_nothing() -> None:
    run = made_run(cases=10, passes=lambda _number, _model, arm, _run: arm == "skill")
    (ten,), (one,) = run.verdicts, repeated(run, *["q"] * 10).verdicts
    assert ten.word == HELPS
    assert one.word == TOO_FEW
    assert one.lift
    assert one.lift.low == pytest.approx(-0.95)
    assert (one.summary.cases, one.summary.samples, ten.summary.samples) == (10, 1, 10)
    skill = one.summary.arm("skill").interval
    assert skill
    assert skill.low < 0.25


def test_each_question_has_the_same_weight() -> None:
    """Nine copies of a case that the skill helps with, and one case that it breaks."""
    run = made_run(
        cases=10,
        passes=lambda number, _model, arm, _run: (arm == "skill") == (number < 9),
    )
    (row,) = repeated(run, *["q"] * 9, "other").summaries
    assert (row.arm("skill").rate, row.lift) == (0.5, 0.0)
    assert sorted(row.pairs("rate", "baseline")) == [(0.0, 1.0), (1.0, 0.0)]
    assert len(row.case_scores("baseline")) == 10


def test_other_checks_of_the_same_answer_are_averaged() -> None:
    run = made_run(
        cases=4, passes=lambda number, _model, arm, _run: arm == "skill" and number < 2
    )
    (row,) = repeated(run, "q", "p", "q", "p").summaries
    assert row.pairs("rate", "baseline") == [(0.0, 0.5), (0.0, 0.5)]


def test_every_report_says_so() -> None:
    run = made_run(cases=4)
    assert not [note for note in run_notes(run) if "count as one" in note]
    note = (
        "gate: 4 cases in 2 groups: cases of a group, or that ask the same, count as"
        " one."
    )
    assert note in run_notes(repeated(run, "q", "q", "q", "p"))


def grouped(run: RunResults, size: int) -> RunResults:
    """The same run, but each ``size`` cases are variants of one template."""
    tests = [
        replace(test, case_group=f"t{n // size}") for n, test in enumerate(run.tests)
    ]
    return replace(run, tests=tuple(tests))


def test_a_group_is_averaged_and_the_groups_are_kept_in_the_file(
    tmp_path: Path,
) -> None:
    run = made_run(
        cases=6, passes=lambda number, _model, arm, _run: arm == "skill" and number < 2
    )
    file = tmp_path / "run.json"
    file.write_text(results_text(grouped(run, 3)))
    (row,) = read_run(file).summaries
    assert row.pairs("rate", "baseline") == [(0.0, pytest.approx(2 / 3)), (0.0, 0.0)]
    assert (row.cases, row.samples, case_words([row])) == (6, 2, "6 cases (2 groups)")


@pytest.mark.parametrize("templates", [4, 8, 12])
def test_variants_of_few_templates_give_few_false_verdicts(templates: int) -> None:
    """The skill helps as many templates as it hurts, on average;
    five variants tell the same.
    """
    draw, draws, alone, by_group = Random(1), 600, 0, 0
    for _ in range(draws):
        effects = [draw.choice((-0.4, 0.4)) for _ in range(templates)]
        chances = [(0.5, 0.5 + effects[number // 5]) for number in range(5 * templates)]
        pairs = rates(ask(draw, chances, 1), 1)
        alone += paired_lift(pairs, 1).shown
        groups = [pairs[start : start + 5] for start in range(0, len(pairs), 5)]
        averages = [
            (fmean(p for p, _ in group), fmean(q for _, q in group)) for group in groups
        ]
        by_group += paired_lift(averages, 1).shown
    assert by_group <= 0.05 * draws
    assert alone > 0.15 * draws


def test_samples_are_kept_in_the_file(tmp_path: Path) -> None:
    run = repeated(made_run(cases=4), "q", "q", "p", "")
    file = tmp_path / "run.json"
    file.write_text(results_text(run))
    assert [row.samples for row in read_run(file).summaries] == [3]


def fallen(sample: str, number: int, was: int = 5, now: int = 3) -> Compared:
    expected = Expectation(Count(was, 5), "2026-01-02")
    test = PlannedCase(
        f"n{number}", "gate", f"c{number}", "m", expected=expected, sample=sample
    )
    return Compared(test, Count(now, 5))


def test_for_a_regression_the_cases_of_a_group_stay_apart() -> None:
    cases = [fallen(f"q{n}", n) for n in range(3)]
    cases = [replace(each, test=replace(each.test, case_group="one")) for each in cases]
    (comparison,) = compare({GROUP: cases})
    assert comparison.together


def test_copies_of_a_case_are_no_evidence_of_a_regression() -> None:
    """From 5 of 5 to 3 of 5 in three cases is a regression,
    in three copies of one it is not.
    """
    (others,) = compare({GROUP: [fallen(f"q{n}", n) for n in range(3)]})
    (copies,) = compare({GROUP: [fallen("q", n) for n in range(3)]})
    assert (bool(others.together), bool(copies.together)) == (True, False)
    # Among those that ask the same, one that always passes tells nothing,
    # and does not count.
    mixed = [fallen("q", 1), fallen("q", 0, now=5), fallen("p", 2), fallen("o", 3)]
    (found,) = compare({GROUP: mixed})
    assert found.together
    assert "9 of 15 runs passed (accepted: 15 of 15" in found.reasons[0]
