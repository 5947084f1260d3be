"""Power: the chance that is promised is the chance that there is."""

import random
from statistics import pvariance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.stats import POWER, detectable_lift, paired_lift
from pytest_upskill.stats.power import (
    Kind,
    assumed_kinds,
    cases_to_find,
    chance_to_find,
    kinds_of,
    lift_to_find,
)
from support.simulated import ask, rates


def share_shown(
    kinds: tuple[Kind, ...], cases: int, runs: int, draws: int = 300, seed: float = 0
) -> float:
    """How often cases of these kinds show a lift, run by run."""
    draw, shown = random.Random(seed), 0
    for _ in range(draws):
        drawn = draw.choices(kinds, [kind.share for kind in kinds], k=cases)
        chances = [(kind.baseline, kind.skill) for kind in drawn]
        shown += paired_lift(rates(ask(draw, chances, runs), runs), runs).low > 0
    return shown / draws


def lift_of(kinds: tuple[Kind, ...]) -> float:
    assert sum(kind.share for kind in kinds) == pytest.approx(1)
    return sum(kind.share * (kind.skill - kind.baseline) for kind in kinds)


@pytest.mark.parametrize("runs", [1, 3, 5])
@pytest.mark.parametrize("lift", [0.2, 0.3, 0.5, 0.9])
def test_as_many_cases_as_planned_find_the_lift(lift: float, runs: int) -> None:
    kinds = assumed_kinds(lift)
    assert lift_of(kinds) == pytest.approx(lift)
    cases = cases_to_find(kinds, runs)
    assert cases
    assert share_shown(kinds, cases, runs) >= 0.76
    assert share_shown(kinds, cases * 3 // 4, runs) < 0.8


def test_the_chance_of_few_cases_is_told_as_it_is() -> None:
    kinds = assumed_kinds(0.5)
    for cases in (5, 8, 12):
        chance = chance_to_find(kinds, cases, 1)
        assert chance == pytest.approx(share_shown(kinds, cases, 1), abs=0.06)
    assert chance_to_find(kinds, 8, 1) < 0.5
    assert chance_to_find(kinds, 4, 5) == 0


PILOTS = [
    (0.0, 0.2),
    (1 / 3, 1 / 3),
    (1 / 3, 1.0),
    (2 / 3, 1.0),
    (0.0, 0.0),
    (1.0, 2 / 3),
] * 3


@pytest.mark.parametrize("lift", [0.05, 0.2, 0.5])
def test_cases_like_those_of_a_pilot_get_the_planned_lift(lift: float) -> None:
    kinds = kinds_of(PILOTS, 3, lift)
    assert kinds
    assert lift_of(kinds) == pytest.approx(lift)
    observed = sum(baseline for baseline, _ in PILOTS) / len(PILOTS)
    assert sum(kind.share * kind.baseline for kind in kinds) == pytest.approx(observed)


def test_the_spread_that_single_runs_make_is_not_one_between_cases() -> None:
    alike = rates(ask(random.Random(1), [(0.5, 0.5)] * 60, 4), 4)
    apart = [(float(n % 2), float(n % 2)) for n in range(60)]
    for pilot, least, most in ((alike, 0.0, 0.02), (apart, 0.24, 0.26)):
        kinds = kinds_of(pilot, 4, 0.2)
        assert kinds
        mean = sum(kind.share * kind.baseline for kind in kinds)
        between = sum(kind.share * (kind.baseline - mean) ** 2 for kind in kinds)
        assert least <= between <= most
    observed = [baseline for baseline, _ in alike]
    assert pvariance(observed) > 0.04  # by chance


def test_a_good_baseline_leaves_no_room() -> None:
    assert kinds_of([(1.0, 1.0)] * 9 + [(0.0, 0.0)], 3, 0.2) is None
    assert kinds_of([(1.0, 1.0)] * 8 + [(0.0, 0.0)] * 2, 3, 0.2)
    assert kinds_of([(0.8, 1.0)] * 7, 5, 0.2)
    assert detectable_lift([(1.0, 1.0)] * 10) is None


def test_more_runs_need_fewer_cases_unless_no_case_varies() -> None:
    needed = [
        cases_to_find(kinds_of(PILOTS, 3, 0.3) or (), runs) or 0 for runs in (1, 3, 8)
    ]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > 1.5 * needed[2]
    sure = kinds_of([(0.0, 0.0), (1.0, 1.0)] * 5, 4, 0.3)
    assert sure
    assert len({cases_to_find(sure, runs) for runs in (2, 8)}) == 1


def test_a_lift_that_takes_too_many_cases_is_not_planned() -> None:
    assert cases_to_find(assumed_kinds(0.001), 1) is None


@pytest.mark.parametrize("baseline", [0.0, 0.3, 0.6])
@pytest.mark.parametrize(
    ("cases", "runs"), [(6, 1), (10, 1), (24, 1), (8, 3), (12, 5), (30, 3)]
)
def test_the_detectable_lift_is_detected(
    cases: int, runs: int, baseline: float
) -> None:
    """Of a pilot without a lift that is as the cases are on average."""
    high = round(10 * baseline)
    pilot = [(1.0, 1.0)] * high + [(0.0, 0.0)] * (10 - high)
    lift = lift_to_find(pilot, 1, cases, runs)
    if lift is None:  # the baseline leaves no room for what so few cases need
        assert cases <= 10
        assert baseline
        return
    kinds = kinds_of(pilot, 1, lift)
    assert kinds
    assert 0.7 < share_shown(kinds, cases, runs) < 0.97


@pytest.mark.parametrize(("cases", "runs"), [(10, 1), (10, 3), (10, 5)])
def test_the_lift_that_cases_find_takes_so_many_cases(cases: int, runs: int) -> None:
    lift = lift_to_find([], 1, cases, runs)
    assert lift
    assert cases_to_find(assumed_kinds(lift), runs) == pytest.approx(cases, abs=1)
    assert chance_to_find(assumed_kinds(lift - 0.02), cases, runs) < POWER


@pytest.mark.parametrize("runs", [1, 3])
def test_the_detectable_lift_of_a_run_is_about_what_its_cases_can_show(
    runs: int,
) -> None:
    """Each run estimates it by itself, so it is right on average."""
    draw, shown, kinds = random.Random(runs), 0.0, assumed_kinds(0.1)
    for _ in range(150):
        drawn = draw.choices(kinds, [kind.share for kind in kinds], k=16)
        pilot = rates(ask(draw, [kind[:2] for kind in drawn], runs), runs)
        again = assumed_kinds(min(detectable_lift(pilot) or 0.5, 0.5))
        shown += share_shown(again, 16, runs, draws=1, seed=draw.random())
    assert 0.7 < shown / 150 < 0.95


def test_few_cases_detect_nothing_and_equal_cases_not_everything() -> None:
    assert detectable_lift([(0, 1)] * 4) is None
    assert detectable_lift([(0, 1)] * 5) == 0.96  # all five must differ
    assert detectable_lift([(0.5, 0.5)] * 12) == 0.25
    assert detectable_lift([(0, 0)] * 10, level=0.99) == 0.77
    assert detectable_lift([(0, 1), (1, 0)] * 5) is None


SHARES = st.floats(0, 1)


@given(st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=30))
def test_the_detectable_lift_fits_above_the_baseline(
    pairs: list[tuple[float, float]],
) -> None:
    lift = detectable_lift(pairs)
    room = 1 - sum(baseline for baseline, _ in pairs) / len(pairs)
    assert lift is None or 0 < lift <= room + 0.01
    assert lift is None or len(pairs) >= 5
