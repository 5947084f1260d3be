"""Intervals and tests against scipy and published examples."""

import math
import random
from itertools import combinations
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pytest_upskill.stats import (
    flakiness,
    holm,
    newcombe,
    normalised_gain,
    paired_lift,
    paired_ratio,
    pass_hat_k,
    sign_flip,
    wilson,
)
from pytest_upskill.stats.distributions import (
    incomplete_beta,
    normal_quantile,
    normal_tail,
    t_quantile,
    t_tail,
)

DEGREES = [1, 2, 3, 4, 7, 11, 39, 100, 1000]
LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99]

rates = st.integers(0, 5).map(lambda passes: passes / 5)
shares = st.integers(1, 13).flatmap(
    lambda checks: st.integers(0, checks).map(lambda passed: passed / checks)
)
share_pairs = st.lists(st.tuples(shares, shares), min_size=1, max_size=15)
rate_pairs = st.lists(st.tuples(rates, rates), min_size=1, max_size=15)
passed_pairs = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=15
)


@pytest.mark.parametrize("df", DEGREES)
def test_students_t_matches_scipy(df: int) -> None:
    for t in [-30, -2.5, -0.1, 0, 1e-6, 0.3, 1, 2, 3.7, 10, 50]:
        assert t_tail(t, df) == pytest.approx(scipy_stats.t.sf(t, df), rel=1e-9)
    for p in [0.001, 0.025, 0.2, 0.5, 0.6, 0.8, 0.9, 0.975, 0.99, 0.999]:
        expected = scipy_stats.t.ppf(p, df)
        assert t_quantile(p, df) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert t_tail(math.inf, df) == 0


def test_normal_and_beta_match_scipy() -> None:
    for z in [-5, -1, 0, 0.5, 2, 6]:
        assert normal_tail(z) == pytest.approx(scipy_stats.norm.sf(z), rel=1e-9)
    for p in [0.001, 0.3, 0.975]:
        assert normal_quantile(p) == pytest.approx(scipy_stats.norm.ppf(p), rel=1e-9)
    for a, b, x in [
        (0.5, 0.5, 0.1),
        (2, 3, 0.9),
        (30, 0.5, 0.99),
        (1, 1, 0),
        (1, 1, 1),
    ]:
        assert incomplete_beta(a, b, x) == pytest.approx(
            scipy_stats.beta.cdf(x, a, b), rel=1e-9
        )


@pytest.mark.parametrize("level", LEVELS)
def test_wilson_matches_scipy(level: float) -> None:
    for n in [1, 2, 5, 12, 40, 500]:
        for passes in {0, 1, n // 3, n // 2, n}:
            expected = scipy_stats.binomtest(passes, n).proportion_ci(level, "wilson")
            assert wilson(passes / n, n, level) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("table", "limits"),
    [
        # Altman et al. (2000), Statistics with Confidence, table 6.2.
        ((14, 5, 0, 22), (0.011, 0.226)),
        # Fagerland et al. (2014), doi:10.1002/sim.6148: airway hyper-responsiveness.
        ((1, 1, 7, 12), (-0.507, -0.026)),
    ],
)
def test_newcombe_matches_published_limits(
    table: tuple[int, int, int, int], limits: tuple[float, float]
) -> None:
    assert newcombe(*table, level=0.95) == pytest.approx(limits, abs=0.0006)


def test_newcombe_limits_stay_within_minus_one_and_one() -> None:
    assert newcombe(0, 3, 0, 0, 0.95).high == 1
    assert newcombe(0, 0, 3, 0, 0.95).low == -1


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_several_runs_use_students_interval(runs: int) -> None:
    draw = random.Random(runs)
    checked = 0
    for _ in range(200):
        pairs = [
            (draw.randint(0, runs) / runs, draw.randint(0, runs) / runs)
            for _ in range(draw.randint(10, 40))
        ]
        differences = [skill - baseline for baseline, skill in pairs]
        low, high = scipy_stats.ttest_1samp(differences, 0).confidence_interval(0.95)
        ours = paired_lift(pairs, runs)
        assert ours.low <= low + 1e-9
        assert ours.high >= high - 1e-9
        checked += ours.low == pytest.approx(low) and ours.high == pytest.approx(high)
    assert checked > 120  # otherwise the guards would be the rule


def test_one_run_uses_newcombes_interval() -> None:
    pairs = [(1, 1)] * 14 + [(0, 1)] * 5 + [(0, 0)] * 22
    lift = paired_lift(pairs, runs=1)
    assert (lift.low, lift.high) == pytest.approx(
        newcombe(14, 5, 0, 22, 0.95), abs=1e-3
    )
    assert lift.shown


def test_sign_flip_of_one_run_is_mcnemars_mid_p() -> None:
    for gained in range(12):
        for lost in range(12):
            mid_p = 1.0
            if gained != lost:
                exact = scipy_stats.binomtest(gained, gained + lost).pvalue
                mid_p = exact - scipy_stats.binom.pmf(
                    min(gained, lost), gained + lost, 0.5
                )
            differences = [1] * gained + [-1] * lost + [0] * 7
            assert sign_flip(differences) == pytest.approx(mid_p, rel=1e-9)


def test_sign_flip_matches_brute_force() -> None:
    draw = random.Random(4)
    for runs in (2, 3, 5, 7, 13, 25):  # the last two are no fractions of the grid
        differences = [draw.randint(-runs, runs) / runs for _ in range(9)]
        sums = scipy_stats.permutation_test(
            (differences,),
            lambda x: round(sum(x), 9),
            permutation_type="samples",
            n_resamples=1e6,
        ).null_distribution
        seen = abs(round(sum(differences), 9))
        beyond = sum(abs(sums) > seen) + sum(abs(sums) == seen) / 2
        expected = 1.0 if seen == 0 else beyond / len(sums)
        assert sign_flip(differences) == pytest.approx(expected)


def test_many_cases_use_students_t() -> None:
    draw = random.Random(5)
    differences = [draw.uniform(-0.5, 0.6) for _ in range(80)]
    expected = scipy_stats.ttest_1samp(differences, 0).pvalue
    assert sign_flip(differences) == pytest.approx(expected, rel=1e-9)
    assert sign_flip([0.5] * 80) == 0
    near_the_limit = [draw.uniform(-0.5, 0.7) for _ in range(50)]
    expected = scipy_stats.ttest_1samp(near_the_limit, 0).pvalue
    assert sign_flip(near_the_limit) == pytest.approx(expected, abs=0.02)


def test_holm_is_bonferroni_in_every_subset() -> None:
    """The closed test: a value counts if it does among each choice of the others."""
    draw = random.Random(6)
    for n in (1, 2, 5, 8):
        p_values = [draw.random() ** 3 for _ in range(n)]
        expected = [0.0] * n
        for size in range(1, n + 1):
            for subset in combinations(range(n), size):
                smallest = min(1.0, size * min(p_values[i] for i in subset))
                for i in subset:
                    expected[i] = max(expected[i], smallest)
        assert holm(p_values) == pytest.approx(expected)
    assert holm([]) == []


@given(st.one_of(rate_pairs, share_pairs))
def test_lift_is_within_its_interval(pairs: list[tuple[float, float]]) -> None:
    for runs in (1, 5):
        lift = paired_lift(pairs, runs)
        assert -1 <= lift.low <= lift.lift <= lift.high <= 1
        assert 0 <= lift.p_value <= 1


@given(st.one_of(rate_pairs, passed_pairs, share_pairs))
def test_swapped_arms_mirror_the_lift(pairs: list[tuple[float, float]]) -> None:
    lift = paired_lift(pairs, 1)
    swapped = paired_lift([(skill, baseline) for baseline, skill in pairs], 1)
    assert (swapped.low, swapped.high) == pytest.approx((-lift.high, -lift.low))
    assert swapped.p_value == pytest.approx(lift.p_value)


@given(st.one_of(rate_pairs, passed_pairs, share_pairs))
def test_higher_level_gives_a_wider_interval(pairs: list[tuple[float, float]]) -> None:
    wide, narrow = paired_lift(pairs, 1, 0.99), paired_lift(pairs, 1, 0.9)
    assert wide.low <= narrow.low + 1e-12
    assert narrow.high <= wide.high + 1e-12


@given(
    st.one_of(rate_pairs, passed_pairs, share_pairs), st.sampled_from([0.9, 0.95, 0.98])
)
def test_shown_lift_is_significant(
    pairs: list[tuple[float, float]], level: float
) -> None:
    lift = paired_lift(pairs, 1, level)
    if lift.shown:
        assert lift.p_value < 1 - level


@given(st.integers(1, 4), shares, shares)
def test_a_few_cases_with_equal_shares_are_never_certain(
    cases: int, baseline: float, skill: float
) -> None:
    lift = paired_lift([(baseline, skill)] * cases, 1)
    assert lift.low <= 0 <= lift.high
    assert lift.high - lift.low >= 0.5
    assert not lift.shown


@given(st.integers(1, 200), st.floats(0, 1), st.sampled_from(LEVELS))
def test_rate_is_within_wilsons_interval(n: int, rate: float, level: float) -> None:
    low, high = wilson(rate, n, level)
    assert 0 <= low <= rate <= high <= 1


def test_equal_differences_do_not_make_a_lift_certain() -> None:
    none = paired_lift([(0.6, 0.6)] * 5, runs=5)
    assert (none.lift, none.p_value) == (0, 1)
    assert none.low < -0.4
    assert none.high > 0.4
    some = paired_lift([(0.2, 0.8)] * 8, runs=5)
    assert 0 < some.low < 0.4
    assert some.high > 0.7


def test_four_cases_show_nothing_and_five_do() -> None:
    for runs in (1, 3):
        assert not paired_lift([(0, 1)] * 4, runs).shown
        assert paired_lift([(0, 1)] * 5, runs).shown
    assert paired_lift([(0, 0.7)], 3)[1:3] == (-1, 1)


def test_token_change_is_the_change_of_the_means() -> None:
    change = paired_ratio([(100, 150), (300, 350), (200, 400)])
    assert change is not None
    assert change.change == pytest.approx(0.5)
    assert change.low is not None
    assert change.high is not None
    assert change.low < 0.5 < change.high


def test_change_interval_is_students_if_the_baseline_is_constant() -> None:
    pairs = [(100, 110), (100, 112), (100, 108), (100, 111)]
    change = paired_ratio(pairs)
    half = scipy_stats.t.ppf(0.975, df=2) * scipy_stats.sem([0.10, 0.12, 0.08, 0.11])
    assert change == pytest.approx((0.1025, 0.1025 - half, 0.1025 + half), abs=1e-3)
    log_ratios = (
        scipy_stats.t.ppf(0.975, df=2) * scipy_stats.sem([110, 112, 108, 111]) / 110.25
    )
    assert change
    assert change.high
    assert log(1 + change.high) - log(1.1025) == pytest.approx(log_ratios, rel=2e-3)


def test_change_without_cases_is_none() -> None:
    assert paired_ratio([]) is None
    assert paired_ratio([(0, 5)]) is None
    assert paired_ratio([(5, 10)]) == (1, None, None)
    assert paired_ratio([(5, 10), (10, 20)]) == (1, None, None)
    assert paired_ratio([(5, 10), (10, 20), (7, 14)]) == pytest.approx((1, 1, 1))


def test_pass_hat_k_counts_the_ways_to_pass_k_times() -> None:
    assert [pass_hat_k(4, 5, k) for k in (1, 2, 3, 5)] == pytest.approx(
        [0.8, 0.6, 0.4, 0]
    )
    assert pass_hat_k(5, 5, 5) == 1
    with pytest.raises(ValueError, match=r"pass\^6"):
        pass_hat_k(5, 5, 6)


def test_flakiness_is_the_chance_that_two_runs_differ() -> None:
    assert [flakiness(passes, 4) for passes in range(5)] == pytest.approx(
        [0, 1 / 2, 2 / 3, 1 / 2, 0]
    )
    assert flakiness(1, 1) == 0


def test_normalised_gain_is_the_share_of_the_possible_gain() -> None:
    assert normalised_gain(0.2, 0.6) == pytest.approx(0.5)
    assert normalised_gain(0.5, 0.25) == pytest.approx(-0.5)
    assert normalised_gain(1, 0.5) is None
