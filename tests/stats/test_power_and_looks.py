"""Power, and when frugal runs stop."""

import random
from itertools import product
from math import prod

import pytest
from scipy import stats as scipy_stats

from pytest_upskill.stats import (
    holm,
    look,
    look_plan,
    plan_level,
    rest_after,
    steps,
    weights,
)
from support.simulated import frugal

PLAN = (3, 6, 12)


def test_looks_double() -> None:
    assert look_plan(3, 12) == PLAN
    assert look_plan(2, 10) == (2, 4, 8, 10)
    assert look_plan(5, 5) == (5,)


@pytest.mark.parametrize(
    ("looks", "bound"),
    [(1, 1.960), (2, 2.178), (3, 2.289), (4, 2.361), (5, 2.413), (10, 2.555)],
)
def test_levels_match_pococks_table(looks: int, bound: float) -> None:
    level = plan_level(tuple(range(1, looks + 1)))
    assert scipy_stats.norm.ppf((1 + level) / 2) == pytest.approx(bound, abs=0.001)


def test_clear_lift_stops_at_the_first_look() -> None:
    seen = look([(0, 1)] * 10, 3, PLAN)
    assert seen.lift.shown
    assert not seen.open
    assert seen.chance == 1


def test_close_lift_continues_until_the_plan_ends() -> None:
    pairs = [(1 / 3, 2 / 3), (2 / 3, 1 / 3), (1 / 3, 1), (1 / 3, 1 / 3)] * 3
    assert look(pairs, 3, PLAN).open
    assert not look(pairs, 12, PLAN).open


def test_stops_if_more_runs_can_not_help() -> None:
    unlike = [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0), (0.0, 0.0)] * 3
    assert look(unlike, 3, PLAN).chance == 0
    assert not look(unlike, 3, PLAN).open
    few = [(0.0, 1 / 3), (1 / 3, 1.0), (0.0, 2 / 3), (1 / 3, 2 / 3), (0.0, 1 / 3)]
    assert not look(few, 3, PLAN).open


def test_a_lift_that_ended_the_runs_is_shown_among_all_models() -> None:
    draw, level = random.Random(1), plan_level(PLAN)
    lost = {1: 0, 3: 0}  # by the number of models that looks allow for
    for models in lost:
        for _ in range(60):
            without = [[draw.uniform(0, 0.7) for _ in range(12)] for _ in range(3)]
            chances = [
                [(rate, rate + 0.3) for rate in of_model] for of_model in without
            ]
            looks = [
                frugal(draw, of_model, PLAN, models=models) for of_model in chances
            ]
            p_values = holm([seen.lift.p_value for seen, _, _ in looks])
            lost[models] += sum(
                seen.lift.shown and p_value >= 1 - level
                for (seen, _, _), p_value in zip(looks, p_values, strict=True)
            )
    assert lost[1] > 0
    assert lost[3] == 0


def test_one_run_stops_only_on_a_shown_lift() -> None:
    assert look([(0, 1), (1, 0)] * 6, 1, (1, 2, 4)).open
    assert not look([(0, 1)] * 12, 1, (1, 2, 4)).open


def test_a_run_may_stop_after_every_run_but_show_a_lift_at_looks_only() -> None:
    assert steps(PLAN) == list(range(3, 13))
    assert steps((9, 18, 20)) == [9, 12, 15, 18, 20]
    assert steps((5,)) == [5]
    assert not look([(0, 1)] * 10, 3, PLAN).open
    assert look([(0, 1)] * 10, 4, PLAN).open


def test_cases_rest_once_it_is_known_how_they_go() -> None:
    assert rest_after(PLAN) == 6
    assert rest_after((5, 10)) == 5
    assert rest_after((3, 6)) is None  # that is the end anyway
    assert rest_after((1, 2, 4)) is None


@pytest.mark.parametrize("chance", [0.05, 0.5, 0.8, 0.95])
def test_the_rate_of_a_case_that_may_rest_is_unbiased(chance: float) -> None:
    rest, most, mean, plain = 5, 8, 0.0, 0.0
    for runs in product((True, False), repeat=most):
        likely = prod(chance if passed else 1 - chance for passed in runs)
        asked = runs[:rest] if len(set(runs[:rest])) == 1 else runs
        own = weights(asked, rest)
        assert sum(own) == pytest.approx(1)
        mean += likely * sum(
            weight for weight, passed in zip(own, asked, strict=True) if passed
        )
        plain += likely * sum(asked) / len(asked)
    assert mean == pytest.approx(chance)
    if chance != 0.5:
        assert abs(plain - chance) > 0.005  # what the weights are for


def test_runs_count_alike_unless_the_case_went_on_after_its_rest() -> None:
    assert weights([1, 1, 0], 6) == [1 / 3] * 3
    assert weights([1, 1, 0], None) == [1 / 3] * 3
    assert weights([1] * 6, 6) == [1 / 6] * 6
    assert weights([1] * 8, 6) == [1 / 8] * 8  # a case with runs of its own never rests
    own = weights([1, 1, 1, 1, 1, 0, 1, 1], 6)
    assert own[5] > own[0]


def test_frugal_runs_keep_the_error_rate_and_save_more_than_half() -> None:
    draw = random.Random(8)
    shown = calls = 0
    for _ in range(800):
        chances = [(chance, chance) for chance in (draw.random() for _ in range(12))]
        seen, _, made = frugal(draw, chances, PLAN)
        shown, calls = shown + seen.lift.shown, calls + made
    assert shown / 800 <= 0.05
    assert calls / 800 / 24 <= 5.5


def test_frugal_runs_show_a_large_lift_at_a_third_of_the_calls() -> None:
    draw = random.Random(9)
    found = [frugal(draw, [(0.2, 0.65)] * 12, PLAN) for _ in range(200)]
    assert sum(seen.lift.shown for seen, _, _ in found) / 200 > 0.95
    assert sum(runs for _, runs, _ in found) / 200 < 5


def test_cases_that_always_go_the_same_way_are_not_asked_to_the_end() -> None:
    draw = random.Random(10)
    chances = [(0.0, 0.0)] * 8 + [(0.3, 0.7)] * 8
    found = [
        frugal(draw, chances, PLAN, rests=rests)
        for rests in (True, False)
        for _ in range(99)
    ]
    by_rest = {True: found[:99], False: found[99:]}
    long = {
        rests: [calls / runs for _, runs, calls in some if runs > 9]
        for rests, some in by_rest.items()
    }
    assert max(long[True]) < 0.85 * min(long[False])


def test_too_few_cases_are_asked_no_second_time() -> None:
    """Two cases can't show any lift, however often they are asked."""
    assert not look([(0.0, 1.0)] * 2, 1, (1, 2, 4)).open
    assert look([(0.0, 1.0), (1.0, 0.0)] * 5, 1, (1, 2, 4)).open
