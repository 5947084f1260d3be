"""Two runs side by side: the lifts of the cases that are the same."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from pytest_upskill.results.comparison import CaseChange
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_comparison import (
    PairComparison,
    RunComparison,
    UnpairedCases,
    compare_runs,
)
from pytest_upskill.stats import holm, paired_lift
from support.made import (
    by_count,
    checked_run,
    made_record,
    made_run,
    made_triggers,
    pair_of,
)


def run(numbers: Collection[int], cases: int = 12, **more: Any) -> RunResults:
    """With the skill just these cases pass, and none without it."""
    counts = [(0, int(number in numbers)) for number in range(cases)]
    return made_run(cases=cases, passes=by_count(*counts), **more)


def only_pair(before: RunResults, after: RunResults) -> PairComparison:
    (pair,) = compare_runs(before, after).pairs
    return pair


def words(comparison: RunComparison) -> list[tuple[str, str]]:
    return [(pair.tag, pair.change.word) for pair in comparison.pairs if pair.change]


def test_change_has_the_statistics_of_a_lift() -> None:
    comparison = compare_runs(run(range(3)), run(range(1, 12)))
    (pair,) = comparison.pairs
    assert pair.change
    differences = [float(n >= 1) - float(n < 3) for n in range(12)]
    assert pair.change.lift == paired_lift(differences, reach=2.0)
    assert (pair.before, pair.cases, pair.of_lift) == (0.25, 12, True)
    assert pair.after == pytest.approx(11 / 12)
    assert pair.change.word == "better"
    assert pair.fell == (CaseChange("case-0", 1.0, 0.0),)
    assert [case.case for case in pair.rose] == [f"case-{n}" for n in range(3, 12)]
    assert not comparison.reasons
    assert len(compare_runs(run(range(1, 12)), run(range(3))).reasons) == 1


def drawn_run(
    draw: Random, chances: Collection[tuple[float, float]], runs: int = 3
) -> RunResults:
    """Cases with these chances to pass, without the skill and with it."""
    counts = []
    for pair in chances:
        passed = [sum(draw.random() < chance for _ in range(runs)) for chance in pair]
        counts.append((passed[0], passed[1]))
    return made_run(cases=len(counts), runs=runs, passes=by_count(*counts))


@pytest.mark.parametrize("number", [10, pytest.param(200, marks=pytest.mark.nightly)])
def test_model_that_changed_in_both_arms_is_no_claim_on_the_skill(number: int) -> None:
    """It rises, or falls, by 30 points in 20 cases, with the skill and without it."""
    draw = Random(number)
    claims = Counter[str]()
    with_skill_alone = 0
    for _ in range(number):
        worse = [(0.1 + 0.4 * draw.random(),) * 2 for _ in range(20)]
        better = [(low + 0.3, high + 0.3) for low, high in worse]
        before = drawn_run(draw, worse)
        after = drawn_run(draw, better)
        for name, sides in (("rise", (before, after)), ("fall", (after, before))):
            pair = only_pair(*sides)
            assert pair.change
            claims[name] += pair.change.word != "no change shown"
        alone = [
            replace(side, records=tuple(r for r in side.records if r.arm == "skill"))
            for side in (before, after)
        ]
        change = only_pair(alone[0], alone[1]).change
        assert change
        with_skill_alone += change.word == "better"
    assert max(claims.values(), default=0) <= 1 + 0.1 * number
    assert with_skill_alone > 0.9 * number


def test_model_that_fell_is_told_from_the_skill() -> None:
    """Both arms fall by 30 points in three days, or just the one with the skill."""

    def run_of(day: int, *, baseline_falls: bool) -> RunResults:
        def passes(number: int, _model: str, arm: str, _run: int) -> bool:
            passing = {"skill": 9, "baseline": 7}[arm]
            if day and (arm == "skill" or baseline_falls):
                passing -= 3
            return number % 10 < passing

        made = made_run(cases=20, runs=3, passes=passes)
        asked_at = int(made.started.timestamp()) + day * 86_400
        records = [replace(record, asked_at=asked_at) for record in made.records]
        return replace(made, records=tuple(records))

    both = only_pair(
        run_of(0, baseline_falls=True), after := run_of(3, baseline_falls=True)
    )
    assert both.change
    assert (both.change.word, both.without) == ("no change shown", (0.7, 0.4))
    assert (both.baseline_fell, both.days_apart) == (True, 3)
    assert "the model got worse without the skill, too" in both.differences[0]

    comparison = compare_runs(
        run_of(0, baseline_falls=False), run_of(3, baseline_falls=False)
    )
    assert words(comparison) == [("", "worse")]
    assert not comparison.pairs[0].baseline_fell
    assert only_pair(after, after).differences == []


def test_without_a_baseline_in_both_the_answers_with_the_skill_are_compared() -> None:
    one = run(range(12))
    lost = [r for r in one.records if r.arm == "skill" or r.case > "case-4"]
    pair = only_pair(replace(one, records=tuple(lost)), run(range(12), arms=("skill",)))
    assert (pair.cases, pair.of_lift, pair.without) == (12, False, None)


def some_broke(broken: int, models: tuple[str, ...] = ("haiku",)) -> RunResults:
    """Forty cases, of which the first few never pass with the skill on the first
    model.
    """
    return made_run(
        cases=40,
        runs=10,
        models=models,
        passes=lambda number, model, *_: number >= broken or model != models[0],
        arms=("skill",),
    )


def test_four_of_forty_cases_that_broke_are_worse() -> None:
    """By their runs; over cases, four of forty could be chance."""
    comparison = compare_runs(some_broke(0), some_broke(4))
    (pair,) = comparison.pairs
    assert pair.change
    assert pair.change.fallen
    assert not pair.change.lift.shown
    assert pair.change.fallen.names == tuple(f"case-{n}" for n in range(4))
    assert "case-3: 0 of 10 runs passed (before: 10 of 10)" in comparison.reasons[0]

    back = only_pair(some_broke(4), some_broke(0))
    assert back.risen
    assert back.risen.names == pair.change.fallen.names
    assert back.change
    assert back.change.word != "worse"


def test_claims_are_adjusted_for_several_models() -> None:
    models = ("haiku", "opus", "local")
    comparison = compare_runs(
        run(range(4), models=models), run(range(10), models=models)
    )
    differences = [float(n < 10) - float(n < 4) for n in range(12)]
    alone = paired_lift(differences, reach=2.0).p_value
    p_values = [pair.change.lift.p_value for pair in comparison.pairs if pair.change]
    assert p_values == pytest.approx(holm([alone] * 3))


def test_only_unchanged_cases_with_answers_are_paired() -> None:
    one = run(range(12))
    two = run(range(12), cases=14)
    edited = replace(two.tests[3], digest="another")
    lost = made_record("gate", "case-5", "haiku", "skill", 1, outcome="errored")
    kept = [r for r in two.records if r.case not in ("case-0", "case-5")]
    two = replace(
        two,
        tests=(*two.tests[1:3], edited, *two.tests[4:]),  # without case-0
        records=(*kept, lost),
    )
    pair = only_pair(one, two)
    assert pair.left_out == UnpairedCases(
        only_before=1, only_after=2, edited=1, unanswered=1
    )
    assert pair.cases == 9

    others = tuple(replace(test, digest=f"new {test.case}") for test in one.tests)
    nothing = only_pair(one, replace(one, tests=others))
    assert (nothing.cases, nothing.change, nothing.before) == (0, None, None)
    assert nothing.left_out.edited == 12


def test_both_runs_have_the_score_of_the_later_one() -> None:
    """Shares of checks are not compared with pass rates."""
    counts = [(0, 6)] * 8
    pair = only_pair(checked_run(counts, score="pass"), checked_run(counts))
    assert pair.change
    assert (pair.score, pair.before, pair.change.lift.lift) == ("checks", 6 / 7, 0.0)


def test_skills_and_models_in_one_run_only_are_not_compared() -> None:
    one = run(range(3), skills=("gate", "door"), models=("haiku",))
    two = run(range(3), skills=("gate",), models=("haiku", "opus"))
    comparison = compare_runs(one, two)
    assert [pair.pair for pair in comparison.pairs] == [pair_of("gate", "haiku")]
    assert comparison.only_before == (pair_of("door", "haiku"),)
    assert comparison.only_after == (pair_of("gate", "opus"),)


def test_what_else_differs_is_told() -> None:
    one = run(range(3))
    two = replace(
        one,
        skills=tuple(replace(skill, digest="1" * 64) for skill in one.skills),
        model_ids={"haiku": "newer\nid"},
        with_skills=("skills/door",),
    )
    comparison = compare_runs(one, two)
    (pair,) = comparison.pairs
    assert not pair.same_skill
    assert pair.differences == ["the model was id-of-haiku and is now newer id"]
    assert comparison.differences == (
        "other skills installed: none, and now skills/door",
    )


# Triggers.


def test_lost_recall_is_worse_and_so_are_more_false_alarms() -> None:
    before = made_triggers(["ooo"] * 10, ["---"] * 10)
    after = made_triggers(["---"] * 8 + ["ooo"] * 2, ["ooo"] * 8 + ["---"] * 2)
    comparison = compare_runs(before, after)
    assert words(comparison) == [("opens", "worse"), ("stays-closed", "worse")]
    shares = [(pair.before, pair.after, pair.cases) for pair in comparison.pairs]
    assert shares == [(1, 0.2, 10)] * 2
    assert len(comparison.reasons) == 2
    back = compare_runs(after, before)
    assert words(back) == [("opens", "better"), ("stays-closed", "better")]
    assert back.reasons == []


def test_queries_without_an_answer_are_told() -> None:
    before = made_triggers(["ooo"] * 6, [])
    after = made_triggers(["ooo"] * 5 + ["EEE"], [])
    comparison = compare_runs(before, after)
    assert comparison.pairs[0].left_out.unanswered == 1
    assert "1 query not answered in both" in comparison.reasons[0]
