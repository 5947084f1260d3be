"""Effects of studies: their intervals, and families of them over several looks."""

import random
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.stats import (
    Differences,
    Family,
    family_level,
    guarded,
    holm,
    judge_family,
    look_plan,
    paired_effect,
    paired_lift,
    plan_level,
    sign_flip,
    wilson,
)
from support.simulated import LIFT, carry_out, matrix_study, parts_study, worlds

PLAN = look_plan(2, 8)
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
        str(n): Differences(tuple(own), 8, 0.1, 2.0) for n, own in enumerate(family)
    }
    for found in judge_family(given_ones, PLAN).values():
        assert found.lift.shown == (found.lift.p_value < 0.05)
        assert not found.open  # these were all runs


def test_a_family_of_one_is_a_plain_group_sequential_test() -> None:
    assert family_level(1, PLAN) == plan_level(PLAN)
    assert family_level(9, (8,)) == pytest.approx(1 - 0.05 / 9, abs=1e-5)


def test_level_of_a_large_family_is_that_of_its_share_over_all_looks() -> None:
    """A ninth of Pocock's error at each look would be too much:
    small levels share less.
    """
    assert 1 - family_level(9, PLAN) < (1 - family_level(1, PLAN)) / 9


def test_holm_decides_if_all_effects_could_be_shown() -> None:
    draw = random.Random(17)
    for _ in range(5):
        family = {
            str(n): Differences(
                tuple(draw.gauss(mean, 0.5) for _ in range(14)), 8, 0.1, reach=2.0
            )
            for n, mean in enumerate((0.0, 0.25, 0.5, 0.8))
        }
        judged = judge_family(family, (8,))
        adjusted = holm([sign_flip(one.values) for one in family.values()])
        shown = [one.lift.shown for one in judged.values()]
        assert [p < 0.05 for p in adjusted] == shown


def test_effects_that_could_not_be_shown_take_no_share() -> None:
    """Eight of ten cases lost beside eight pairs in which nothing changes: p =
    0.004.
    """
    lost = Differences((-1.0,) * 8 + (0.0,) * 2, 2, 0.0, 2.0)
    nothing = {f"nothing {n}": Differences((0.0,) * 10, 2, 0.0, 2.0) for n in range(8)}
    assert judge_family({"lost": lost, **nothing}, PLAN)["lost"].lift.shown
    noise = Differences((0.5, -0.5) * 5, 2, 0.3, 2.0)
    many = {f"noise {n}": noise for n in range(8)}
    assert not judge_family({"lost": lost, **many}, PLAN)["lost"].lift.shown


def test_margin_takes_no_power_from_what_is_lost() -> None:
    """Twenty parts and ten cases: one that is missed in all of
    them is shown all the same.
    """
    lost = Differences((-1.0,) * 10, 2, 0.0, margin=0.1)
    nothing = {
        f"nothing {n}": Differences((0.0,) * 10, 2, 0.0, margin=0.1) for n in range(19)
    }
    judged = judge_family({"lost": lost, **nothing}, PLAN)
    assert judged["lost"].lift.shown
    # That one is within its margin must hold for all of them together.
    assert judged["nothing 0"].level == family_level(19, PLAN)
    assert judged["nothing 0"].lift.low < -0.1


def test_effect_that_was_given_up_stays_in_its_family() -> None:
    lost = Differences((-1.0,) * 8 + (0.0,) * 2, 2, 0.0, 2.0)
    noise = Differences((0.5, -0.5) * 5, 2, 0.0, 2.0)
    family = Family(["lost", *map(str, range(8))], PLAN)
    family.look({"lost": lost, **{str(n): noise for n in range(8)}})
    assert family.shown == {}
    family.look({"lost": lost._replace(runs=4)} if "lost" in family.open else {})
    assert "lost" not in family.shown


def test_shown_effect_stays_shown_and_is_asked_no_more() -> None:
    family = Family(["a", "b"], PLAN)
    family.look(
        {
            "a": Differences((-1.0,) * 12, 2, 0.0, 2.0),
            "b": Differences((0.5, 0.0, 0.0, 0.0) * 3, 2, 0.6, 2.0),
        }
    )
    assert family.open == {"b"}
    family.look({"b": Differences((0.0, 0.1) * 6, 4, 0.6, 2.0)})
    assert "a" in family.shown
    assert family.shown["a"].lift.lift == -1


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
            alarms += bool(carry_out(draw, study, PLAN).family.shown)
    assert alarms / repeats / len(own) <= 0.065


def test_large_effects_are_found_with_fewer_calls() -> None:
    draw = random.Random("found")
    world = next(world for world in worlds(LIFT) if "some gain, beta(0.3" in world.name)
    outcomes = []
    for _ in range(10):
        study = parts_study(draw, world.case, 20, 5, loss=1.0)
        outcomes.append(carry_out(draw, study, PLAN))
    assert sum("0" in one.family.shown for one in outcomes) >= 7
    assert sum(one.asked for one in outcomes) < 0.7 * sum(one.whole for one in outcomes)


def test_with_a_margin_every_effect_takes_its_share() -> None:
    """One without any difference claims something, too: that nothing is lost."""
    plan, zeros = (2, 4), (0.0,) * 40
    for margin, shares in ((None, 1), (0.1, 5)):
        family = {str(n): Differences(zeros, 2, 0.0, margin=margin) for n in range(5)}
        found = judge_family(family, plan)
        assert {one.level for one in found.values()} == {family_level(shares, plan)}


@pytest.mark.parametrize(("cases", "ruled_out"), [(55, False), (56, True)])
def test_a_loss_of_the_margin_is_ruled_out_by_enough_cases(
    cases: int, ruled_out: bool
) -> None:
    """Without any difference, more runs tell nothing that more cases would not."""
    family = {str(n): Differences((0.0,) * cases, 2, 0.0, margin=0.1) for n in range(5)}
    one = judge_family(family, (2, 4))["0"]
    assert not one.open
    assert (one.lift.low > -0.1) == ruled_out


def test_an_effect_stays_open_while_more_runs_may_rule_out_a_loss() -> None:
    values = tuple(0.5 if n % 2 else -0.5 for n in range(100))
    for margin, is_open in ((None, False), (0.1, True)):
        one = judge_family({"a": Differences(values, 2, 0.1, margin=margin)}, (2, 16))[
            "a"
        ]
        assert not one.lift.shown
        assert one.open == is_open


@given(st.lists(one_lift, min_size=1, max_size=6), st.sampled_from([0.05, 0.1, 0.3]))
def test_any_differences_with_a_margin(
    family: list[list[float]], margin: float
) -> None:
    for chance in (0.0, 0.2):
        known = {
            str(n): Differences(tuple(own), 2, chance, margin=margin)
            for n, own in enumerate(family)
        }
        for found in judge_family(known, PLAN).values():
            assert (
                -1 <= found.lift.low <= found.lift.lift + 1e-9 <= found.lift.high + 2e-9
            )


def most_losses(cases: int, parts: int) -> int:
    """Of so many cases, how many may lose everything without a
    part and it could still go.
    """
    for losses in range(cases + 1):
        values = (-1.0,) * losses + (0.0,) * (cases - losses)
        family = {str(n): Differences(values, 2, 0.0, margin=0.1) for n in range(parts)}
        if judge_family(family, PLAN)["0"].lift.low <= -0.1:
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
