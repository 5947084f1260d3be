"""Intervals against scipy and published examples."""

import math
import random
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pytest_upskill.stats import (
    Lift,
    Ruled,
    cases_to_rule_out,
    corrected_rate,
    holm_lifts,
    kappa_of,
    paired_lift,
    paired_ratio,
    sign_flip,
    wilson,
    worst_loss,
)
from pytest_upskill.stats.distributions import (
    normal_quantile,
    normal_tail,
    t_quantile,
    t_tail,
)

LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99]

levels = st.sampled_from([0.9, 0.95, 0.979, 0.999])
one_lift = st.lists(
    st.integers(-4, 4).map(lambda steps: steps / 4), min_size=1, max_size=14
)
two_lifts = st.lists(
    st.integers(-8, 8).map(lambda steps: steps / 4), min_size=1, max_size=14
)
any_lift = st.lists(st.floats(-1, 1), min_size=1, max_size=14)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 7, 11, 39, 100, 1000])
def test_students_t_matches_scipy(df: int) -> None:
    for t in [0, 0.001, 0.3, 1, 2, 3.7, 10, 50, math.inf]:
        assert t_tail(t, df) == pytest.approx(scipy_stats.t.sf(t, df), abs=1e-12)
    for p in [0.5, 0.6, 0.8, 0.9, 0.975, 0.99, 0.999]:
        assert t_quantile(p, df) == pytest.approx(scipy_stats.t.ppf(p, df), rel=2e-5)


def test_normal_matches_scipy() -> None:
    for z in [-5, -1, 0, 0.5, 2, 6]:
        assert normal_tail(z) == pytest.approx(scipy_stats.norm.sf(z), rel=1e-9)
    for p in [0.001, 0.3, 0.975]:
        assert normal_quantile(p) == pytest.approx(scipy_stats.norm.ppf(p), rel=1e-9)


@pytest.mark.parametrize("level", LEVELS)
def test_wilson_matches_scipy(level: float) -> None:
    for n in [1, 2, 5, 12, 40, 500]:
        for passes in {0, 1, n // 3, n // 2, n}:
            expected = scipy_stats.binomtest(passes, n).proportion_ci(level, "wilson")
            assert wilson(passes / n, n, level) == pytest.approx(expected, abs=1e-9)


@given(st.integers(1, 200), st.floats(0, 1), st.sampled_from(LEVELS))
def test_rate_is_within_wilsons_interval(n: int, rate: float, level: float) -> None:
    low, high = wilson(rate, n, level)
    assert 0 <= low <= rate <= high <= 1


def test_interval_of_a_lift_is_students_unless_guarded() -> None:
    draw = random.Random(3)
    equal = 0
    for _ in range(200):
        differences = [draw.randint(-3, 3) / 3 for _ in range(draw.randint(10, 40))]
        expected = scipy_stats.ttest_1samp(differences, 0).confidence_interval(0.95)
        lift = paired_lift(differences)
        assert lift.low <= max(-1, expected.low) + 1e-9
        assert lift.high >= min(1, expected.high) - 1e-9
        equal += lift[1:3] == pytest.approx(tuple(expected))
    assert equal > 120


@given(st.one_of(two_lifts, any_lift), levels)
def test_interval_contains_the_lift_and_agrees_with_its_p_value(
    differences: list[float], level: float
) -> None:
    lift = paired_lift(differences, level, reach=2.0)
    assert -2 <= lift.low <= lift.lift + 1e-12
    assert lift.lift - 1e-12 <= lift.high <= 2
    assert lift.shown == (lift.p_value < 1 - level)
    assert 1 >= lift.p_value >= sign_flip(differences)


@given(st.one_of(two_lifts, any_lift), levels)
def test_swapped_arms_mirror_the_lift(differences: list[float], level: float) -> None:
    lift = paired_lift(differences, level, reach=2.0)
    swapped = paired_lift([-value for value in differences], level, reach=2.0)
    mirrored = (-lift.lift, -lift.high, -lift.low)
    assert swapped[:3] == pytest.approx(mirrored, abs=1e-12)
    assert swapped.p_value == lift.p_value


@given(two_lifts)
def test_higher_level_never_narrows_an_interval(differences: list[float]) -> None:
    wide = paired_lift(differences, 0.99, reach=2.0)
    narrow = paired_lift(differences, 0.95, reach=2.0)
    assert wide.low <= narrow.low + 1e-12
    assert wide.high >= narrow.high - 1e-12


def test_equal_differences_do_not_make_a_lift_certain() -> None:
    none = paired_lift([0.0] * 6)
    assert (none.lift, none.p_value) == (0, 1)
    assert none[1:3] == pytest.approx((-0.459, 0.459), abs=0.001)
    some = paired_lift([0.6] * 8)
    assert 0 < some.low < 0.4
    assert some.high > 0.7


def test_a_few_cases_show_nothing() -> None:
    assert not paired_lift([1.0] * 4).shown
    assert paired_lift([1.0] * 6).shown
    assert paired_lift([0.7])[1:3] == (-1, 1)
    assert paired_lift([-2.0], reach=2.0)[1:3] == (-2, 2)
    assert paired_lift([-2.0, -1.5] * 3, reach=2.0).low < -1.9


@given(st.lists(st.one_of(one_lift, any_lift), max_size=6))
def test_adjusted_lifts_agree_with_their_p_values(
    family: list[list[float]],
) -> None:
    lifts = [paired_lift(differences) for differences in family]
    adjusted = holm_lifts(lifts)
    for before, after in zip(lifts, adjusted, strict=True):
        assert after.shown == (after.p_value < 0.05)
        assert after.p_value >= before.p_value
        assert after.low <= before.low
        assert after.high >= before.high
        assert before.shown or not after.shown


def test_a_lift_that_others_make_uncertain_has_an_interval_with_0() -> None:
    weak = Lift(0.3, 0.05, 0.55, 0.03)
    strong = Lift(-0.4, -0.6, -0.2, 0.001)
    assert holm_lifts([weak]) == [weak]
    assert holm_lifts([weak, strong, weak]) == [
        Lift(0.3, 0.0, 0.55, 0.06),
        Lift(-0.4, -0.6, -0.2, 0.003),
        Lift(0.3, 0.0, 0.55, 0.06),
    ]


def test_ratio_is_that_of_the_mean_logarithm() -> None:
    logs = [0.1, 0.3, 0.2, 0.6]
    expected = scipy_stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    ends = (exp(0.3) - 1, exp(expected.low) - 1, exp(expected.high) - 1)
    assert paired_ratio(logs) == pytest.approx(ends)


def test_ratio_of_few_cases_has_no_interval() -> None:
    assert paired_ratio([]) is None
    assert paired_ratio([0.0]) == (0.0, None, None)


@given(st.integers(2, 60), st.integers(1, 60), levels)
def test_worst_loss_of_all_or_nothing_is_at_least_wilsons(
    cases: int, losses: int, level: float
) -> None:
    losses = min(losses, cases - 1)
    differences = [-1.0] * losses + [0.0] * (cases - losses)
    wilsons = wilson(losses / cases, cases, level).high
    assert worst_loss(differences, level) >= wilsons - 1e-9
    if losses * 10 < cases:
        assert worst_loss(differences, level) < wilsons + 0.05


@given(one_lift, levels)
def test_worst_loss_is_possible_and_no_less_than_the_loss(
    differences: list[float], level: float
) -> None:
    worst = worst_loss(differences, level)
    assert max(0.0, -paired_lift(differences, level).low) <= worst <= 1


@pytest.mark.parametrize("loss", [0.05, 0.1, 0.3, 1.0])
def test_as_many_cases_as_needed_rule_a_loss_out(loss: float) -> None:
    cases = cases_to_rule_out(loss)
    assert worst_loss([0.0] * cases) < loss
    assert cases == 2 or worst_loss([0.0] * (cases - 1)) >= loss


def test_a_judge_no_better_than_chance_corrects_nothing() -> None:
    passed = Ruled(0.5, 20)
    assert corrected_rate(passed, Ruled(0.6, 20), Ruled(0.4, 20)) is None
    assert corrected_rate(passed, Ruled(1.0, 4), Ruled(1.0, 20)) is None
    assert corrected_rate(passed, Ruled(1.0, 20), Ruled(1.0, 4)) is None
    few = corrected_rate(passed, Ruled(1.0, 5), Ruled(1.0, 5))
    many = corrected_rate(passed, Ruled(1.0, 500), Ruled(1.0, 500))
    assert few
    assert many
    assert few[0] == many[0] == 0.5
    assert few[1].low < many[1].low < 0.5 < many[1].high < few[1].high


def test_kappa_is_agreement_beyond_chance() -> None:
    ours = [True, True, False, False]
    assert kappa_of(1.0, ours, ours) == 1
    assert kappa_of(0.5, ours, [True, False, True, False]) == 0
    assert kappa_of(1.0, [True], [True]) is None
    assert kappa_of(None, ours, ours) is None
