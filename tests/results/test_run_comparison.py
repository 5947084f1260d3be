"""Two runs side by side: the same statistics as against a git ref,
over cases that are the same.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

import pytest

from pytest_upskill.results.arm_comparison import CaseChange
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_comparison import UnpairedCases, compare_runs
from pytest_upskill.stats import holm, paired_lift
from support.made import made_record, made_run, pair_of


def passing(numbers: Collection[int]) -> Callable[..., bool]:
    """With the skill just these cases pass."""
    return lambda number, _model, arm, _run: arm == "skill" and number in numbers


def run(numbers: Collection[int], cases: int = 12, **more: object) -> RunResults:
    return made_run(cases=cases, passes=passing(numbers), **more)  # type: ignore[arg-type]


def test_a_change_has_the_statistics_of_a_lift() -> None:
    found = compare_runs(run(range(3)), run(range(1, 12)))
    (pair,) = found.pairs
    pairs = [(float(n < 3), float(n >= 1)) for n in range(12)]
    assert pair.change
    assert pair.change.lift == paired_lift(pairs, 1)
    assert (pair.before, pair.cases) == (0.25, 12)
    assert pair.after == pytest.approx(11 / 12)
    assert pair.change.word == "better"
    assert pair.fell == (CaseChange("case-0", 1.0, 0.0),)
    assert [case.case for case in pair.rose] == [f"case-{n}" for n in range(3, 12)]
    assert pair.same_skill
    assert not found.reasons
    assert compare_runs(run(range(1, 12)), run(range(3))).reasons


def test_a_drop_that_could_be_chance_is_not_worse() -> None:
    found = compare_runs(run(range(12)), run(range(10)))
    assert [pair.change and pair.change.word for pair in found.pairs] == [
        "no change shown"
    ]
    assert not found.reasons


def some_broke(
    broken: int, models: tuple[str, ...] = ("haiku",), runs: int = 10
) -> RunResults:
    """Forty cases, of which the first few never pass with the skill on the first
    model.
    """
    return made_run(
        cases=40,
        runs=runs,
        models=models,
        passes=lambda number, model, *_: number >= broken or model != models[0],
    )


def test_four_of_forty_cases_that_broke_are_worse() -> None:
    """By their runs; over cases, four of forty could be chance."""
    found = compare_runs(some_broke(0), some_broke(4))
    (pair,) = found.pairs
    assert pair.change
    assert pair.change.word == "worse"
    assert (pair.change.lift.low, pair.change.lift.high) < (0, 0)
    assert not pair.change.lift.shown
    assert pair.change.versions
    assert pair.change.versions.worse_cases == tuple(f"case-{n}" for n in range(4))
    (reason,) = found.reasons
    assert "case-3: 0 of 10 runs passed (before: 10 of 10)" in reason
    back = compare_runs(some_broke(4), some_broke(0))
    assert back.reasons == []
    assert back.pairs[0].change
    assert back.pairs[0].change.versions
    assert (
        back.pairs[0].change.versions.better_cases == pair.change.versions.worse_cases
    )


def test_cases_of_a_group_are_separate_and_those_that_ask_the_same_are_not() -> None:
    """The lift counts both as one case."""
    before, after = some_broke(0, runs=1), some_broke(6, runs=1)
    for keys, reasons in (({"case_group": "gates"}, 1), ({"sample": "same"}, 0)):
        old, new = (
            replace(run, tests=tuple(replace(test, **keys) for test in run.tests))  # type: ignore[arg-type]
            for run in (before, after)
        )
        found = compare_runs(old, new)
        assert len(found.reasons) == reasons
        assert found.pairs[0].before == 1


def test_single_runs_show_that_all_together_got_worse() -> None:
    chance = compare_runs(some_broke(0, runs=1), some_broke(5, runs=1))
    assert chance.reasons == []
    assert chance.pairs[0].change
    assert chance.pairs[0].change.lift.high == 0  # which includes no change
    (reason,) = compare_runs(some_broke(0, runs=1), some_broke(6, runs=1)).reasons
    assert "all together: 34 of 40 runs passed (before: 40 of 40, p = 0.016)" in reason


def test_all_models_of_a_run_are_one_family() -> None:
    """Six cases fall on one model: enough by itself,
    but not beside one where six changed.
    """

    def run_of(*models: str, later: bool) -> RunResults:
        def passes(number: int, model: str, _arm: str, _run: int) -> bool:
            changed = later and number < 6
            return not changed if model == "haiku" else (number % 2 == 0) != changed

        return made_run(cases=8, models=models, passes=passes)

    for models, reasons in ((("haiku",), 1), (("haiku", "opus"), 0)):
        found = compare_runs(run_of(*models, later=False), run_of(*models, later=True))
        assert len(found.reasons) == reasons


def test_p_values_are_adjusted_for_several_models() -> None:
    models = ("haiku", "opus", "local")
    one, two = run(range(4), models=models), run(range(10), models=models)
    alone = paired_lift([(float(n < 4), float(n < 10)) for n in range(12)], 1).p_value
    changes = [pair.change for pair in compare_runs(one, two).pairs]
    assert [change and change.lift.p_value for change in changes] == holm([alone] * 3)


def test_only_unchanged_cases_with_answers_are_paired() -> None:
    one, two = run(range(12)), run(range(12), cases=14)
    edited = replace(two.tests[3], digest="another")
    lost = made_record(
        "gate", "case-5", "haiku", "skill", 1, outcome="errored", error="busy"
    )
    two = replace(
        two,
        tests=(*two.tests[1:3], edited, *two.tests[4:]),  # without case-0
        records=(*(r for r in two.records if r.case not in ("case-0", "case-5")), lost),
    )
    (pair,) = compare_runs(one, two).pairs
    assert pair.left_out == UnpairedCases(
        only_before=1, only_after=2, edited=1, unanswered=1
    )
    assert pair.cases == 9


def test_a_missing_baseline_answer_removes_no_case() -> None:
    one, two = run(range(12)), run(range(12), arms=("skill",))
    one = replace(
        one,
        records=tuple(r for r in one.records if r.arm == "skill" or r.case > "case-4"),
    )
    (pair,) = compare_runs(one, two).pairs
    assert pair.cases == 12


def test_tokens_are_compared_too() -> None:
    one = run(range(12))
    doubled = tuple(replace(record, output_tokens=180) for record in one.records)
    (pair,) = compare_runs(one, replace(one, records=doubled)).pairs
    assert pair.change
    assert pair.change.tokens
    assert pair.change.tokens.change == pytest.approx(1.0)


def test_skills_and_models_in_one_run_only_are_not_compared() -> None:
    one = run(range(3), skills=("gate", "door"), models=("haiku",))
    two = run(range(3), skills=("gate",), models=("haiku", "opus"))
    found = compare_runs(one, two)
    assert [pair.pair for pair in found.pairs] == [pair_of("gate", "haiku")]
    assert found.only_before == (pair_of("door", "haiku"),)
    assert found.only_after == (pair_of("gate", "opus"),)


def test_an_edited_skill_and_a_new_model_version_are_detected() -> None:
    one = run(range(3))
    two = replace(
        one,
        skills=tuple(replace(skill, digest="1" * 64) for skill in one.skills),
        model_ids={"haiku": "newer"},
    )
    (pair,) = compare_runs(one, two).pairs
    assert not pair.same_skill
    assert pair.model_ids == ("id-of-haiku", "newer")


@pytest.mark.parametrize("baseline_falls", [True, False])
def test_a_model_that_got_worse_is_told_from_the_skill(baseline_falls: bool) -> None:
    """Both arms fall by 30 points in three days, or just the one with the skill."""

    def run_of(day: int) -> RunResults:
        def passes(number: int, _model: str, arm: str, _run: int) -> bool:
            best = {"skill": 9, "baseline": 7}[arm]
            fell = day and (arm == "skill" or baseline_falls)
            return number % 10 < best - (3 if fell else 0)

        made = made_run(cases=20, runs=3, passes=passes)
        asked_at = int(made.started.timestamp()) + day * 86_400
        records = tuple(replace(record, asked_at=asked_at) for record in made.records)
        return replace(made, records=records)

    found = compare_runs(run_of(0), run_of(3))
    (pair,) = found.pairs
    assert pair.fallen_baseline == ((0.7, 0.4) if baseline_falls else None)
    (reason,) = found.reasons  # both are worse; one says that the model is, too
    assert ("(baseline 70% → 40%)" in reason) == baseline_falls
    assert pair.days_apart == 3
    assert len(pair.differences) == 1 + baseline_falls
    (same_day,) = compare_runs(run_of(3), run_of(3)).pairs
    assert same_day.differences == []


def test_no_case_in_common_is_no_change() -> None:
    one, two = run(range(3)), run(range(3))
    others = tuple(replace(t, digest=f"new {t.case}") for t in two.tests)
    (pair,) = compare_runs(one, replace(two, tests=others)).pairs
    assert (pair.cases, pair.change, pair.before) == (0, None, None)
    assert pair.left_out.edited == 12
