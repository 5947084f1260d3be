"""Right decisions over queries: balanced and compared."""

from collections.abc import Mapping

import pytest

from pytest_upskill.features.queries.descriptions import balanced, weighted_differences
from pytest_upskill.stats import Lift, holm_lifts, paired_lift


def kinds(should: int, others: int) -> Mapping[str, bool]:
    return {str(number): number < should for number in range(should + others)}


def right_if(
    opened: Mapping[str, bool], should_open: Mapping[str, bool]
) -> dict[str, float]:
    return {name: float(opened[name] == should_open[name]) for name in should_open}


@pytest.mark.parametrize(("should", "others"), [(5, 15), (10, 10), (15, 2)])
def test_always_and_never_opened_are_half_right_whatever_the_numbers(
    should: int, others: int
) -> None:
    should_open = kinds(should, others)
    for opened in (True, False):
        scores = right_if(dict.fromkeys(should_open, opened), should_open)
        assert balanced(scores, should_open) == pytest.approx(0.5)
    assert balanced(right_if(should_open, should_open), should_open) == 1


def change(before: Mapping[str, bool], *after: Mapping[str, bool]) -> list[Lift]:
    should_open = kinds(5, len(before) - 5)
    scores = right_if(before, should_open)
    lifts = []
    for opened in after:
        right = right_if(opened, should_open)
        lifts.append(paired_lift(weighted_differences(scores, right, should_open)))
    return holm_lifts(lifts)


def test_a_change_weighs_both_kinds_the_same() -> None:
    never, always = (
        dict.fromkeys(kinds(5, 15), False),
        dict.fromkeys(kinds(5, 15), True),
    )
    (lift,) = change(never, always)
    assert lift.lift == pytest.approx(0)
    assert not lift.shown
    (lift,) = change(never, kinds(5, 15))
    assert lift.lift == pytest.approx(0.5)


def test_several_versions_are_harder_to_show() -> None:
    never, right = dict.fromkeys(kinds(5, 5), False), kinds(5, 5)
    (alone,) = change(never, right)
    both = change(never, right, right)
    assert alone.low > 0
    assert all(lift.low <= 0 for lift in both)
    assert all(lift.p_value > alone.p_value for lift in both)
    assert all(lift.high >= alone.high for lift in both)
