"""Right decisions over queries: balanced, split, and compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.results.trigger_summary import QueryRate
from pytest_upskill.skills.case import OPENS, Case
from pytest_upskill.teach.wordings import Scores, changes, split_queries


def scores(*opened: tuple[bool, int], runs: int = 1) -> Scores:
    """Of queries, each with its wish and the runs that opened the skill."""
    rates = [
        QueryRate(str(number), "", should, times, runs, 0, {})
        for number, (should, times) in enumerate(opened)
    ]
    return Scores({"small": tuple(rates)})


def test_always_and_never_opened_are_half_right_whatever_the_numbers() -> None:
    for should, rest in ((5, 15), (10, 10), (15, 2)):
        kinds = [True] * should + [False] * rest
        assert scores(*((kind, 1) for kind in kinds)).right == pytest.approx(0.5)
        assert scores(*((kind, 0) for kind in kinds)).right == pytest.approx(0.5)
        assert scores(*((kind, int(kind)) for kind in kinds)).right == 1


def test_a_change_weighs_both_kinds_the_same() -> None:
    never = scores(*[(True, 0)] * 5, *[(False, 0)] * 15)
    always = scores(*[(True, 1)] * 5, *[(False, 1)] * 15)
    right = scores(*[(True, 1)] * 5, *[(False, 0)] * 15)
    (change,) = changes(never, [always], 1)
    assert change.lift == pytest.approx(0)
    assert not change.shown
    (change,) = changes(never, [right], 1)
    assert change.lift == pytest.approx(0.5)


def test_several_versions_are_harder_to_show() -> None:
    before = scores(*[(True, 0)] * 5, *[(False, 0)] * 5)
    after = scores(*[(True, 1)] * 5, *[(False, 0)] * 5)
    (alone,) = changes(before, [after], 1)
    both = changes(before, [after, after], 1)
    assert alone.low > 0
    assert all(one.low <= 0 for one in both)
    assert all(one.p_value > alone.p_value for one in both)
    assert all(one.high >= alone.high for one in both)


@given(st.integers(2, 40), st.integers(2, 40), st.randoms())
def test_the_split_has_both_kinds_in_both_parts_and_ignores_the_order(
    should: int, rest: int, random: object
) -> None:
    kinds = [True] * should + [False] * rest
    queries = [
        Case(f"t{number}", f"query {number}", tags=(OPENS,) if kind else ())
        for number, kind in enumerate(kinds)
    ]
    learn, held = split_queries(queries)
    for part in (learn, held):
        assert {one.should_open for one in part} == {True, False}
    assert sorted([*learn, *held], key=lambda one: one.id) == sorted(
        queries, key=lambda one: one.id
    )
    for kind, number in ((True, should), (False, rest)):
        share = sum(one.should_open == kind for one in held)
        assert share == max(1, round(0.4 * number))
    random.shuffle(queries)  # type: ignore[attr-defined]
    assert {one.id for one in split_queries(queries)[1]} == {one.id for one in held}
