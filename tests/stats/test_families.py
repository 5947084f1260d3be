"""Effects of studies: their intervals, and families of them."""

import random
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.stats import (
    Differences,
    Lift,
    guarded,
    holm,
    judge_family,
    paired_effect,
    paired_lift,
    shared_level,
    sign_flip,
    wilson,
)
from support.simulated import LIFT, carry_out, matrix_study, parts_study, worlds

levels = st.sampled_from([0.9, 0.95, 0.979, 0.999])
one_lift = st.lists(
    st.integers(-4, 4).map(lambda steps: steps / 4), min_size=1, max_size=14
)
two_lifts = st.lists(
    st.integers(-8, 8).map(lambda steps: steps / 4), min_size=1, max_size=14
)


@given(two_lifts, levels)
def test_interval_of_an_effect_contains_it_and_stays_possible(
    values: list[float], level: float
) -> None:
    found = paired_effect(values, level, reach=2.0)
    assert -2 <= found.low <= found.lift + 1e-12
    assert found.lift - 1e-12 <= found.high <= 2


@given(two_lifts, levels)
def test_interval_of_an_effect_excludes_0_just_if_its_p_value_is_small(
    values: list[float], level: float
) -> None:
    found = paired_effect(values, level, reach=2.0)
    assert found.shown == (found.p_value < 1 - level)
    assert found.p_value >= sign_flip(values)


@given(two_lifts, levels)
def test_effect_of_opposite_differences_is_opposite(
    values: list[float], level: float
) -> None:
    found = paired_effect(values, level, reach=2.0)
    other = paired_effect([-value for value in values], level, reach=2.0)
    assert (other.lift, other.low, other.high) == pytest.approx(
        (-found.lift, -found.high, -found.low)
    )
    assert other.p_value == found.p_value


@given(two_lifts)
def test_higher_level_never_narrows_an_interval(values: list[float]) -> None:
    wide, narrow = (paired_effect(values, level, reach=2.0) for level in (0.99, 0.95))
    assert wide.low <= narrow.low + 1e-12
    assert wide.high >= narrow.high - 1e-12


@given(one_lift)
def test_effect_of_one_lift_is_that_lift(values: list[float]) -> None:
    effect = paired_effect(values)
    lift = paired_lift([(0.0, value) for value in values], runs=4)
    assert (effect.lift, effect.low, effect.high) == pytest.approx(
        (lift.lift, lift.low, lift.high)
    )


def test_effect_of_two_lifts_is_not_cut_at_1() -> None:
    assert paired_effect([-2.0, -1.5, -2.0, -1.5, -2.0, -1.5], reach=2.0).low < -1.9


def test_single_case_says_nothing() -> None:
    found = paired_effect([-2.0], reach=2.0)
    assert (found.low, found.high) == (-2, 2) or not found.shown


@given(st.lists(two_lifts, min_size=1, max_size=4))
def test_an_effect_is_shown_if_its_p_value_is_small(family: list[list[float]]) -> None:
    given_ones = {
        str(n): Differences(tuple(own), reach=2.0) for n, own in enumerate(family)
    }
    for lift in judge_family(given_ones).values():
        assert lift.shown == (lift.p_value < 0.05)


def test_holm_decides_if_all_effects_could_be_shown() -> None:
    draw = random.Random(17)
    for _ in range(5):
        family = {
            str(n): Differences(
                tuple(draw.gauss(mean, 0.5) for _ in range(14)), reach=2.0
            )
            for n, mean in enumerate((0.0, 0.25, 0.5, 0.8))
        }
        judged = judge_family(family)
        adjusted = holm([sign_flip(one.values) for one in family.values()])
        shown = [lift.shown for lift in judged.values()]
        assert [p < 0.05 for p in adjusted] == shown


def test_effects_that_could_not_be_shown_take_no_share() -> None:
    """Eight of ten cases lost beside sixteen pairs in which nothing changes: p =
    0.004.
    """
    lost = Differences((-1.0,) * 8 + (0.0,) * 2, 2.0)
    nothing = {f"nothing {n}": Differences((0.0,) * 10, 2.0) for n in range(16)}
    assert judge_family({"lost": lost, **nothing})["lost"].shown
    noise = Differences((0.5, -0.5) * 5, 2.0)
    many = {f"noise {n}": noise for n in range(16)}
    assert not judge_family({"lost": lost, **many})["lost"].shown


def test_margin_takes_no_power_from_what_is_lost() -> None:
    """Twenty parts and ten cases: one that is missed in all of
    them is shown all the same.
    """
    lost = Differences((-1.0,) * 10, margin=0.1)
    nothing = Differences((0.0,) * 10, margin=0.1)
    judged = judge_family({"lost": lost, **{f"{n}": nothing for n in range(19)}})
    assert judged["lost"].shown
    # That one is within its margin must hold for all of them together.
    assert judged["0"] == effect_at(nothing, shared_level(20))
    assert judged["0"].low < -0.1


@pytest.mark.parametrize("size", [2, pytest.param(9, marks=pytest.mark.nightly)])
def test_false_alarms_of_a_family_stay_below_their_limit(size: int) -> None:
    """Small and fast: at most 5 % with some room for chance;
    benchmarks/studies.py has more.
    """
    draw = random.Random(f"false alarms {size}")
    own = [world for world in worlds(LIFT) if "some gain" in world.name]
    repeats, alarms = 12, 0
    for world in own:
        for number in range(repeats):
            study = parts_study(draw, world.case, 10, size, mixed=number % 4 == 0)
            if number % 2:
                study = matrix_study(draw, world.case, 10, skills=2 if size == 2 else 3)
            assert len(study.contrasts) == size
            lifts = carry_out(draw, study, runs=4).values()
            alarms += any(lift.shown for lift in lifts)
    assert alarms / repeats / len(own) <= 0.065


def test_large_effects_are_found() -> None:
    draw = random.Random("found")
    world = next(world for world in worlds(LIFT) if "some gain, beta(0.3" in world.name)
    found = 0
    for _ in range(10):
        study = parts_study(draw, world.case, 20, 5, loss=1.0)
        found += carry_out(draw, study, runs=8)["0"].shown
    assert found >= 7


def test_with_a_margin_every_effect_takes_its_share() -> None:
    """One without any difference claims something, too: that nothing is lost."""
    for margin, shares in ((None, 1), (0.1, 5)):
        nothing = Differences((0.0,) * 40, margin=margin)
        found = judge_family({str(n): nothing for n in range(5)})
        assert {*found.values()} == {effect_at(nothing, shared_level(shares))}


def effect_at(effect: Differences, level: float) -> Lift:
    lift = paired_effect(effect.values, level, effect.reach)
    return lift if effect.margin is None else guarded(lift, effect.values, level)


@pytest.mark.parametrize(("cases", "ruled_out"), [(50, False), (51, True)])
def test_a_loss_of_the_margin_is_ruled_out_by_enough_cases(
    cases: int, ruled_out: bool
) -> None:
    family = {str(n): Differences((0.0,) * cases, margin=0.1) for n in range(5)}
    assert (judge_family(family)["0"].low > -0.1) == ruled_out


@given(st.lists(one_lift, min_size=1, max_size=6), st.sampled_from([0.05, 0.1, 0.3]))
def test_any_differences_with_a_margin(
    family: list[list[float]], margin: float
) -> None:
    known = {
        str(n): Differences(tuple(own), margin=margin) for n, own in enumerate(family)
    }
    for lift in judge_family(known).values():
        assert -1 <= lift.low <= lift.lift + 1e-9 <= lift.high + 2e-9


def most_losses(cases: int, parts: int) -> int:
    """Of so many cases, how many may lose everything without a
    part and it could still go.
    """
    for losses in range(cases + 1):
        values = (-1.0,) * losses + (0.0,) * (cases - losses)
        family = {str(n): Differences(values, margin=0.1) for n in range(parts)}
        lift = judge_family(family)["0"]
        if lift.shown or lift.low <= -0.1:
            return losses - 1
    return cases


@pytest.mark.parametrize("parts", [1, 5, 20])
def test_parts_that_a_tenth_of_cases_needs_are_rarely_said_to_be_free_to_go(
    parts: int,
) -> None:
    """The chance is exact: each of the parts loses everything in 10
    % of all cases there are.
    """
    for cases in (60, 87, 99, 126):
        most = most_losses(cases, parts)
        chance = sum(
            comb(cases, k) * 0.1**k * 0.9 ** (cases - k) for k in range(most + 1)
        )
        assert 1 - (1 - chance) ** parts <= 0.05
    assert most >= 0  # with many cases that lose nothing, a part could go


@given(st.integers(2, 60), st.integers(1, 60), levels)
def test_guarded_interval_of_all_or_nothing_is_wilsons(
    cases: int, losses: int, level: float
) -> None:
    losses = min(losses, cases - 1)
    values = [-1.0] * losses + [0.0] * (cases - losses)
    found = guarded(paired_effect(values, level)._replace(low=0.0), values, level)
    assert found.low == pytest.approx(-wilson(losses / cases, cases, level).high)


@given(one_lift, levels)
def test_guarded_interval_is_never_narrower_and_stays_possible(
    values: list[float], level: float
) -> None:
    effect = paired_effect(values, level)
    found = guarded(effect, values, level)
    assert -1 <= found.low <= effect.low
    assert (found.lift, found.high, found.p_value) == (
        effect.lift,
        effect.high,
        effect.p_value,
    )
