"""Power: the chance that is promised is about the chance that there is."""

import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.stats import (
    FEWEST_CASES,
    cases_to_find,
    cases_to_show,
    detectable_lift,
    paired_lift,
)
from support.simulated import ask, differ, rates


def draw_differences(
    draw: random.Random, lift: float, cases: int, runs: int
) -> list[float]:
    """Cases of which a skill solves some; half of their spread is between them."""
    baseline = min(0.5, 1 - lift)
    chances = []
    for _ in range(cases):
        side = (baseline * (1 - baseline) / 2) ** 0.5
        before = baseline + side if draw.random() < 0.5 else baseline - side
        is_solved = draw.random() < lift / (1 - baseline)
        chances.append((max(0.0, before), 1.0 if is_solved else max(0.0, before)))
    return differ(rates(ask(draw, chances, runs), runs))


def share_shown(lift: float, cases: int, runs: int) -> float:
    draw = random.Random(f"{lift} {cases} {runs}")
    shown = []
    for _ in range(300):
        shown.append(paired_lift(draw_differences(draw, lift, cases, runs)).low > 0)
    return fmean(shown)


@pytest.mark.parametrize("runs", [1, 3, 5])
@pytest.mark.parametrize("lift", [0.2, 0.3, 0.5, 0.9])
def test_as_many_cases_as_planned_show_the_lift(lift: float, runs: int) -> None:
    cases = cases_to_find(lift, runs)
    assert cases
    assert share_shown(lift, cases, runs) >= 0.72
    assert share_shown(lift, cases // 2, runs) < 0.75


@pytest.mark.parametrize("lift", [0.2, 0.4])
def test_a_new_run_of_the_advised_size_mostly_settles_an_unclear_one(
    lift: float,
) -> None:
    draw = random.Random(lift)
    shown: list[bool] = []
    while len(shown) < 100:
        pilot = draw_differences(draw, lift, cases=10, runs=3)
        if paired_lift(pilot).shown:
            continue
        cases = cases_to_show(pilot)
        assert cases
        shown.append(paired_lift(draw_differences(draw, lift, cases, runs=3)).shown)
    assert fmean(shown) >= 0.65


def test_the_detectable_lift_is_what_so_many_cases_show() -> None:
    draw = random.Random(2)
    shown: list[bool] = []
    for _ in range(100):
        pilot = draw_differences(draw, 0.1, cases=16, runs=3)
        lift = detectable_lift(pilot)
        assert lift
        shown.append(
            paired_lift(draw_differences(draw, lift, cases=16, runs=3)).low > 0
        )
    assert 0.7 < fmean(shown) < 0.97


def test_more_runs_and_larger_lifts_need_fewer_cases() -> None:
    by_runs = [cases_to_find(0.2, runs) or 0 for runs in (1, 3, 5)]
    assert by_runs == sorted(by_runs, reverse=True)
    by_lift = [cases_to_find(lift) or 0 for lift in (0.1, 0.2, 0.5, 1.0)]
    assert by_lift == sorted(by_lift, reverse=True)
    assert by_lift[-1] == FEWEST_CASES
    assert cases_to_find(0.001) is None


def test_few_cases_detect_nothing_and_equal_cases_not_everything() -> None:
    assert detectable_lift([1.0] * (FEWEST_CASES - 1)) is None
    assert detectable_lift([1.0] * FEWEST_CASES) == 0.01
    assert 0.3 < (detectable_lift([0.0] * 20) or 0) < 0.5
    assert detectable_lift([1.0, -1.0] * 3) is None


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_advice_is_possible_and_the_same_for_the_opposite(
    differences: list[float],
) -> None:
    cases = cases_to_show(differences)
    assert cases is None or FEWEST_CASES <= cases <= 10_000
    assert cases == cases_to_show([-value for value in differences])
    lift = detectable_lift(differences)
    assert lift is None or 0 < lift <= 1
