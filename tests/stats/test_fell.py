"""Fallen cases: exact tests against scipy, error rates by simulation."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pytest_upskill.stats import CasePasses, Worsening, drop, worsened
from support.simulated import passes

CASES, RUNS = 12, 5
Counts = Sequence[tuple[int, int]]

counts = st.integers(1, 8).flatmap(
    lambda runs: st.tuples(st.integers(0, runs), st.just(runs))
)


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


def compared(before: Counts, now: Counts) -> Worsening:
    (found,) = worsened([list(map(CasePasses, before, now))])
    return found


def test_case_that_went_from_always_to_never_is_reported() -> None:
    found = compared([(8, 8)] * 4, [(8, 8), (0, 8), (8, 8), (7, 8)])
    assert found.cases == (1,)
    assert found.found


def test_broken_case_is_reported_among_many_good_ones() -> None:
    assert compared([(5, 5)] * 40, [(5, 5)] * 39 + [(0, 5)]).cases == (39,)


def test_cases_that_can_tell_less_take_no_share() -> None:
    """Twelve cases with 6 of 10 passes could reach 0.024,
    which is above a sixth of the level.
    """
    noisy, now = [(3, 5)] * 12, [(3, 5)] * 12
    assert compared([(5, 5), *noisy], [(0, 5), *now]).cases == (0,)
    assert compared([(5, 5), *[(3, 5)] * 5], [(0, 5), *[(2, 5)] * 5]).cases == (0,)
    # Seven that could reach 0.004 share the level: each gets less than that.
    assert compared([(5, 5), *[(3, 5)] * 6], [(0, 5), *[(2, 5)] * 6]).cases == ()


def test_a_case_with_less_than_three_runs_before_is_no_evidence_alone() -> None:
    assert compared([(2, 2)] + [(40, 40)] * 3, [(0, 40)] + [(40, 40)] * 3).cases == ()
    assert compared([(3, 3)] + [(40, 40)] * 3, [(0, 40)] + [(40, 40)] * 3).cases == (0,)


def test_single_runs_of_many_cases_are_evidence_together() -> None:
    found = compared([(1, 1)] * 6, [(0, 1)] * 6)
    assert (found.cases, found.together, found.p_value) == ((), True, 1 / 64)
    assert (found.before, found.now) == ((6, 6), (0, 6))
    assert not compared([(1, 1)] * 5, [(0, 1)] * 5).found


def test_all_groups_of_a_run_share_the_level() -> None:
    fell = [CasePasses((1, 1), (0, 1))] * 6  # p = 0.016
    # can't show anything, so it takes no share
    still = [CasePasses((1, 1), (1, 1))] * 6
    assert [found.together for found in worsened([fell, still, still])] == [
        True,
        False,
        False,
    ]
    # P = 0.66
    one_of_two = [CasePasses((1, 1), (0, 1)), CasePasses((0, 1), (1, 1))] * 3
    assert not any(found.found for found in worsened([fell, one_of_two]))


def test_small_drop_everywhere_is_a_drop_of_the_whole() -> None:
    found = compared([(5, 5)] * 12, [(4, 5)] * 12)
    assert not found.cases
    assert found.together
    assert found.p_value < 0.001


def test_flaky_cases_raise_no_false_alarm() -> None:
    assert not compared([(3, 5)] * 6, [(2, 5)] * 6).found
    assert not compared([(5, 5)], [(4, 5)]).found
    assert not compared([(0, 5)] * 6, [(0, 5)] * 6).found
    assert not compared([(2, 5)] * 6, [(5, 5)] * 6).found
    assert not compared([], []).found
    assert worsened([]) == []


def test_numbers_of_runs_may_differ() -> None:
    assert compared([(10, 10)] * 5, [(1, 3)] * 5).together


def drawn(
    draw: random.Random, before: Sequence[float], now: Sequence[float], runs: int = RUNS
) -> list[CasePasses]:
    return [
        CasePasses((passes(draw, was, runs), runs), (passes(draw, is_, runs), runs))
        for was, is_ in zip(before, now, strict=True)
    ]


def alarms(
    draw: random.Random,
    before: list[float],
    now: list[float],
    repeats: int,
    runs: int = RUNS,
) -> float:
    found = [
        worsened([drawn(draw, before, now, runs)])[0].found for _ in range(repeats)
    ]
    return sum(found) / repeats


@pytest.mark.parametrize(("a", "b"), [(1, 1), (0.3, 0.3), (5, 1), (5, 5)])
def test_unchanged_skill_is_rarely_called_worse(a: float, b: float) -> None:
    draw = random.Random(2)
    chances = [draw.betavariate(a, b) for _ in range(CASES)]
    assert alarms(draw, chances, chances, 600) <= 0.05


@pytest.mark.parametrize(("cases", "least"), [(20, 0.97), (40, 0.8)])
def test_one_broken_case_is_found_among_noisy_ones(cases: int, least: float) -> None:
    draw, found, false = random.Random(6), 0, 0
    for _ in range(200):
        chances = [draw.random() for _ in range(cases - 1)]
        broken = CasePasses((RUNS, RUNS), (0, RUNS))
        (alone,) = worsened([[*drawn(draw, chances, chances), broken]])
        found += cases - 1 in alone.cases
        false += any(index < cases - 1 for index in alone.cases)
    assert found / 200 >= least
    assert false / 200 <= 0.025


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_nights_after_few_accepted_runs_are_rarely_red(runs: int) -> None:
    """Fifty nights are compared with the same accepted results,
    so one draw says little.
    """
    draw, red = random.Random(8), 0
    for _ in range(20):
        accepted = [passes(draw, 0.7, runs) for _ in range(10)]
        for _ in range(50):
            cases = [
                CasePasses((was, runs), (passes(draw, 0.7, runs), runs))
                for was in accepted
            ]
            red += worsened([cases])[0].found
    assert red / 1000 <= 0.05


def test_thirty_unchanged_pairs_are_rarely_red() -> None:
    draw = random.Random(9)
    chances = [draw.random() for _ in range(10)]
    nights = [
        any(
            found.found
            for found in worsened([drawn(draw, chances, chances) for _ in range(30)])
        )
        for _ in range(60)
    ]
    assert sum(nights) / 60 <= 0.05


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
