"""What runs of an unchanged skill would show by chance."""

import pytest

from pytest_upskill.stats import LEVEL, ByChance, shown_by_chance

FLAKY = (((9, 5),),) * 24  # 24 cases of which each passed in 9 of 10 runs
UNSURE = (((5, 5),),) * 24


@pytest.mark.parametrize("samples", [FLAKY, UNSURE])
def test_seldom_more_than_the_level_allows(
    samples: tuple[tuple[tuple[int, int], ...], ...],
) -> None:
    lift, regression = shown_by_chance(samples)
    assert 0.005 < lift < 0.08
    assert regression < 0.07


def test_few_cases_can_show_no_lift_at_all() -> None:
    assert shown_by_chance((((3, 3),),) * 4).lift == 0


def test_cases_that_ask_the_same_are_one_sample() -> None:
    assert shown_by_chance((((3, 3),) * 40,)).lift == 0  # a single sample


def test_a_stricter_level_shows_less() -> None:
    strict, usual = (
        shown_by_chance(UNSURE, level) for level in (1 - (1 - LEVEL) / 5, LEVEL)
    )
    assert strict.lift < usual.lift / 2
    assert strict.regression <= usual.regression


def test_a_case_that_always_passed_may_fail_once_in_a_while() -> None:
    assert shown_by_chance((((2, 1),),) * 60) > ByChance(0, 0)
