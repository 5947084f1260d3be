"""The test of differences against scipy; Holm against its definition."""

import random
from itertools import combinations

import pytest
from scipy import stats as scipy_stats

from pytest_upskill.stats import holm, sign_flip


def test_sign_flip_of_one_run_is_mcnemars_mid_p() -> None:
    for gained in range(12):
        for lost in range(12):
            mid_p = 1.0
            if gained != lost:
                exact = scipy_stats.binomtest(gained, gained + lost).pvalue
                ties = scipy_stats.binom.pmf(min(gained, lost), gained + lost, 0.5)
                mid_p = exact - ties
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
