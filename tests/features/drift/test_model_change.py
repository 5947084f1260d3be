"""Skills on an old model and on a new one: lifts, their change, what broke,
and what to do.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.features.drift.results import (
    ChangeWord,
    ModelAnswers,
    SkillChange,
    SkillOnModel,
)
from pytest_upskill.results.row import Word
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_file import read_run, results_text
from pytest_upskill.settings import Gates
from pytest_upskill.stats import Lift
from pytest_upskill.trials.records import Record
from support.made import made_run
from support.made_studies import made_model_change


def by(
    old_baseline: float, old_skill: float, new_baseline: float, new_skill: float
) -> Callable[..., bool]:
    """The share of 20 cases that pass in each arm, the first ones."""
    shares = {
        ("old", "baseline"): old_baseline,
        ("old", "skill"): old_skill,
        ("new", "baseline"): new_baseline,
        ("new", "skill"): new_skill,
    }
    return lambda case, model, arm, _run: case < 20 * shares[model, arm]


@pytest.mark.parametrize(
    ("shares", "word", "lifts"),
    [
        ((0, 1, 0, 1), "still helps", (100, 100, 0)),
        ((0, 1, 1, 1), "no longer needed", (100, 0, -100)),
        ((1, 1, 1, 1), "not needed", (0, 0, 0)),
        ((0.5, 0.5, 0, 1), "helps now", (0, 100, 100)),
        ((0, 0.2, 0, 0.35), "helps", (20, 35, 15)),
        ((0.5, 0.5, 1, 0), "hurts now", (0, -100, -100)),
        ((1, 0, 1, 0), "hurts", (-100, -100, 0)),
        ((0, 1, 0.5, 0.5), "no longer helps", (100, 0, -100)),
        ((0.5, 0.5, 0.5, 0.5), "no effect", (0, 0, 0)),
        ((0, 0.2, 0, 0.15), "unclear", (20, 15, -5)),
    ],
)
def test_a_skill_is_judged_on_the_new_model_and_by_the_change(
    shares: tuple[float, ...], word: ChangeWord, lifts: tuple[int, int, int]
) -> None:
    (skill,) = made_model_change(by(*shares)).skills
    assert skill.word == word
    measured = [skill.old.lift, skill.new.lift, skill.change]
    assert [round(100 * lift.lift) for lift in measured if lift] == [*lifts]


def test_the_change_is_paired_by_case_and_reaches_from_minus_to_plus_200() -> None:
    def swapped(_case: int, model: str, arm: str, _run: int) -> bool:
        return (arm == "skill") == (model == "old")

    (skill,) = made_model_change(swapped).skills
    assert skill.change
    assert skill.change.lift == -2
    assert skill.change.low == pytest.approx(-2)

    # The same lifts of 50 points: one by case, the other by other cases.
    def same(case: int, _model: str, arm: str, _run: int) -> bool:
        return arm == "skill" and case % 2 == 0

    def others(case: int, model: str, arm: str, _run: int) -> bool:
        return arm == "skill" and case % 2 == (model == "new")

    narrow, wide = (
        made_model_change(passes).skills[0].change for passes in (same, others)
    )
    assert narrow
    assert wide
    assert narrow.lift == wide.lift == 0
    assert wide.high - wide.low > narrow.high - narrow.low


def test_the_more_skills_the_more_evidence_a_change_takes() -> None:
    def less(case: int, model: str, arm: str, _run: int) -> bool:
        return arm == "skill" and (model == "old" or case >= 7)

    (alone,) = made_model_change(less).skills
    among = made_model_change(
        less, skills=[f"s{number}" for number in range(12)]
    ).skills
    assert alone.change
    assert alone.change.shown
    for skill in among:
        assert skill.change
        assert not skill.change.shown
        assert skill.change.p_value > alone.change.p_value
        assert skill.new.lift == alone.new.lift  # verdicts are those of each skill


LIFT = Lift(0.5, 0.2, 0.8, 0.01)
NO_CHANGE = Lift(0.1, -0.4, 0.6, 0.7)


@pytest.mark.parametrize(
    ("old", "new", "change", "word"),
    [
        ("helps", "not needed", NO_CHANGE, "not needed"),
        ("helps", "no effect", NO_CHANGE, "no effect"),
        ("no effect", "helps", NO_CHANGE, "helps"),
        ("no effect", "hurts", NO_CHANGE, "hurts"),
        ("helps", "unclear", Lift(-0.9, -1, -0.8, 0), "lift fell"),
        ("hurts", "unclear", Lift(0.9, 0.8, 1, 0), "lift rose"),
        ("helps", "unclear", NO_CHANGE, "unclear"),
        ("incomplete", "helps", None, "incomplete"),
        ("helps", "helps", None, "incomplete"),
    ],
)
def test_now_and_no_longer_need_a_change_that_is_shown(
    old: Word, new: Word, change: Lift | None, word: ChangeWord
) -> None:
    before, after = (SkillOnModel(each, "", 0.0, 0.5, LIFT) for each in (old, new))
    assert SkillChange("gate", 20, 3, "pass", before, after, change).word == word


def test_what_broke_takes_the_rule_for_cases_that_got_worse() -> None:
    def one_broke(case: int, model: str, arm: str, _run: int) -> bool:
        return arm == "skill" and not (model == "new" and case == 3)

    (skill,) = made_model_change(one_broke, runs=8).skills
    assert [(case.case, case.before, case.after) for case in skill.broken] == [
        ("case-3", 1.0, 0.0)
    ]
    assert not skill.fallen
    # Of 20 cases, that may be chance
    (skill,) = made_model_change(one_broke, runs=3).skills
    assert not skill.broken
    assert [case.case for case in skill.fallen] == ["case-3"]

    def many_broke(case: int, model: str, arm: str, _run: int) -> bool:
        return arm == "skill" and not (model == "new" and case < 8)

    # Together they are evidence
    (skill,) = made_model_change(many_broke, runs=1).skills
    assert [case.case for case in skill.broken] == [
        f"case-{number}" for number in range(8)
    ]


def test_the_last_sentence_says_what_to_do() -> None:
    change = made_model_change(by(0, 1, 1, 1), skills=("gate", "wick"))
    assert change.conclusions[-1] == "On new: can go: gate, wick"
    change = made_model_change(by(0, 1, 0, 0.5))
    assert change.conclusions[-1] == "On new: broke: gate (10 cases); helps: gate"
    assert change.conclusions[:2] == (
        "old: 0 of 120 answers stored, 120 new ($0.12)",
        "new: 0 of 120 answers stored, 120 new ($0.12)",
    )
    few = made_model_change(by(0, 1, 1, 1), cases=10)
    assert few.skills[0].word == "lift fell"
    assert few.conclusions[-2].endswith(
        "10 cases can't show that it is not needed: that takes 17"
    )


def test_missing_answers_are_told_of_the_model_that_lacks_them() -> None:
    change = made_model_change(by(0, 1, 0, 1))
    assert not change.problem(Gates())
    old, new = (replace(answers, errored=2) for answers in (change.old, change.new))
    assert replace(change, old=old).problem(Gates()) == "old: 2 answers missing"
    both = "old: 2 answers missing, new: 2 answers missing"
    assert replace(change, old=old, new=new).problem(Gates()) == both
    assert replace(change, skills=()).problem(Gates()) == "new: nothing was measured"


def test_a_sentence_names_the_model_that_is_incomplete() -> None:
    change = made_model_change(by(0, 1, 0, 1))
    (skill,) = change.skills
    incomplete = SkillOnModel("incomplete", "2 answers missing")
    for model, row in {
        "old": replace(skill, old=incomplete),
        "new": replace(skill, new=incomplete),
    }.items():
        lines = replace(change, skills=(row,)).conclusions
        assert f"gate: incomplete on {model}: 2 answers missing" in lines


def test_an_answer_without_a_grade_is_missing_though_it_is_stored() -> None:
    graded = Record("gate", "a", "m", "skill", 1, "passed", stored=True)
    answers = ModelAnswers.of(
        "m", "m", [graded, replace(graded, case="b", outcome="errored")]
    )
    assert (answers.stored, answers.errored, answers.bought) == (1, 1, 0)


def results(gates: Gates, shares: tuple[float, ...]) -> RunResults:
    changes = (made_model_change(by(*shares)),)
    return made_run(cases=0, sections=changes, gates=gates)


def test_only_a_gate_fails_a_run_in_which_something_got_worse() -> None:
    worse = (0, 1, 0, 0.5)
    assert not results(Gates(), worse).problems
    assert results(Gates(no_worse=True), worse).problems == [
        "gate on new: 10 cases broke"
    ]
    assert not results(Gates(no_worse=True), (0, 1, 0, 1)).problems
    hurts = results(Gates(no_worse=True), (0.5, 0.5, 1, 0.5)).problems
    assert hurts == ["gate on new: hurts now"]
    # There is no test that it could be of
    assert results(Gates(min_lift=0.1), worse).problems


def test_a_file_of_results_keeps_it(tmp_path: Path) -> None:
    run, file = results(Gates(no_worse=True), (0, 1, 0, 0.5)), tmp_path / "out.json"
    file.write_text(results_text(run), encoding="utf-8")
    assert read_run(file).sections == run.sections
