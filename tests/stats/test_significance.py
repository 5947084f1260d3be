"""Regressions: exact tests against scipy, error rates by simulation."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import StratifiedTable

from pytest_upskill.stats import drop, regressed
from support.simulated import passes

CASES, RUNS = 12, 5

counts = st.integers(1, 8).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs)))


@given(counts, counts)
def test_case_p_value_is_fishers(before: tuple[int, int], now: tuple[int, int]) -> None:
    table = [[now[0], now[1] - now[0]], [before[0], before[1] - before[0]]]
    expected = scipy_stats.fisher_exact(table, alternative="less").pvalue
    assert drop([before], [now]) == pytest.approx(expected, rel=1e-9)


def random_counts(draw: random.Random, least: int, most: int) -> list[tuple[int, int]]:
    return [(draw.randint(least, most), 20) for _ in range(6)]


def test_whole_p_value_sums_the_draws_of_all_cases() -> None:
    draw = random.Random(1)
    for _ in range(20):
        before, now = random_counts(draw, 2, 20), random_counts(draw, 0, 18)
        chances = np.ones(1)
        for (was, _), (is_, _) in zip(before, now, strict=True):
            of_case = scipy_stats.hypergeom.pmf(range(21), 40, was + is_, 20)
            chances = np.convolve(chances, of_case)
        expected = chances[: sum(is_ for is_, _ in now) + 1].sum()
        assert drop(before, now) == pytest.approx(expected, rel=1e-9)


def test_many_runs_have_the_same_p_value() -> None:
    draw = random.Random(1)
    before = [(draw.randint(400, 600), 600) for _ in range(7)]
    now = [(was - draw.randint(0, 10), 600) for was, _ in before]
    chances = np.ones(1)
    for (was, _), (is_, _) in zip(before, now, strict=True):
        of_case = scipy_stats.hypergeom.pmf(range(601), 1200, was + is_, 600)
        chances = np.convolve(chances, of_case)
    expected = chances[: sum(is_ for is_, _ in now) + 1].sum()
    assert drop(before, now) == pytest.approx(expected, rel=1e-6)
    assert 0 < drop([(1000, 1000)] * 9, [(0, 1000)] * 9) < 1e-12


def test_whole_p_value_is_close_to_mantel_haenszel() -> None:
    draw = random.Random(1)
    for _ in range(20):
        before, now = random_counts(draw, 10, 20), random_counts(draw, 6, 17)
        tables = [[[n, 20 - n], [b, 20 - b]] for (b, _), (n, _) in zip(before, now, strict=True)]
        two_sided = StratifiedTable(tables).test_null_odds(correction=True).pvalue
        if sum(n for n, _ in now) < sum(b for b, _ in before):
            assert drop(before, now) == pytest.approx(two_sided / 2, abs=0.01)


def test_case_that_went_from_always_to_never_is_reported() -> None:
    found = regressed([(8, 8)] * 4, [(8, 8), (0, 8), (8, 8), (7, 8)])
    assert found.cases == [1]
    assert found.found


def test_broken_case_is_reported_among_many_good_ones() -> None:
    assert regressed([(5, 5)] * 40, [(5, 5)] * 39 + [(0, 5)]).cases == [39]


def test_small_drop_everywhere_is_a_drop_of_the_whole() -> None:
    found = regressed([(5, 5)] * 12, [(4, 5)] * 12)
    assert not found.cases
    assert found.whole
    assert found.p_whole < 0.001


def test_flaky_cases_raise_no_false_alarm() -> None:
    assert not regressed([(3, 5)] * 6, [(2, 5)] * 6).found
    assert not regressed([(5, 5)], [(4, 5)]).found
    assert not regressed([(0, 5)] * 6, [(0, 5)] * 6).found
    assert not regressed([(2, 5)] * 6, [(5, 5)] * 6).found
    assert not regressed([], []).found


def test_numbers_of_runs_may_differ() -> None:
    assert regressed([(10, 10)] * 5, [(1, 3)] * 5).whole


def alarms(draw: random.Random, before: list[float], now: list[float], repeats: int) -> float:
    found = 0
    for _ in range(repeats):
        accepted = [(passes(draw, chance, RUNS), RUNS) for chance in before]
        present = [(passes(draw, chance, RUNS), RUNS) for chance in now]
        found += regressed(accepted, present).found
    return found / repeats


@pytest.mark.parametrize(("a", "b"), [(1, 1), (0.3, 0.3), (5, 1), (5, 5)])
def test_unchanged_skill_is_rarely_called_worse(a: float, b: float) -> None:
    draw = random.Random(2)
    chances = [draw.betavariate(a, b) for _ in range(CASES)]
    assert alarms(draw, chances, chances, 600) <= 0.05


@pytest.mark.parametrize("accepted", [0.95, 0.8, 0.65, 0.5])
def test_drop_of_thirty_points_is_found(accepted: float) -> None:
    draw = random.Random(3)
    assert alarms(draw, [accepted] * CASES, [accepted - 0.3] * CASES, 200) >= 0.8


def test_drop_of_thirty_points_in_some_cases_is_found() -> None:
    draw = random.Random(4)
    before, now = [0.95] * CASES, [0.05] * 4 + [0.95] * 8
    assert alarms(draw, before, now, 200) >= 0.8


def test_single_broken_case_is_found() -> None:
    draw = random.Random(5)
    assert alarms(draw, [0.95] * CASES, [0.05] + [0.95] * 11, 200) >= 0.8
