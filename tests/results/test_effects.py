"""What is said of a loss claims no more than the interval shows."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.results.effects import loss_standing, loss_words
from pytest_upskill.stats import Lift, cases_within, paired_lift

SHARES = st.floats(0, 1, allow_nan=False)


def test_a_loss_is_told_as_points_lost() -> None:
    assert loss_words(Lift(-0.12, -0.21, -0.03, 0.01)) == "loses 12 points (3 to 21)"


def test_no_loss_is_claimed_only_if_the_margin_is_ruled_out() -> None:
    change = Lift(-0.01, -0.06, 0.05, 0.8)
    assert loss_words(change) == "no loss shown (-6 to +5)"
    assert loss_words(change, 0.05, 80) == "not known (-6 to +5): about 80 cases would tell"
    assert loss_words(change, 0.05) == "not known (-6 to +5)"
    assert loss_standing(None) == "not known"


@given(st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=30), st.floats(0.01, 1))
def test_words_agree_with_the_interval(pairs: list[tuple[float, float]], margin: float) -> None:
    change = paired_lift(pairs, 2)
    standing = loss_standing(change, margin)
    assert (standing == "loses") == (change.high < 0)
    if standing == "no loss shown":
        assert change.low > -margin
    assert loss_words(change, margin).startswith(standing)


def test_cases_that_would_rule_out_a_loss() -> None:
    same = [(1.0, 1.0)] * 6
    assert cases_within(same, 0.1) == 36  # as many may miss 10 % of other cases
    assert loss_standing(paired_lift([(1.0, 1.0)] * 36, 2)) == "no loss shown"
    assert loss_standing(paired_lift([(1.0, 1.0)] * 35, 2)) == "not known"
    assert cases_within([(1.0, 0.0), (1.0, 1.0)], 0.1) is None  # half of it is lost


@given(st.lists(st.tuples(SHARES, SHARES), min_size=2, max_size=8), st.floats(0.05, 0.9))
def test_more_cases_like_these_would_tell(pairs: list[tuple[float, float]], margin: float) -> None:
    if cases := cases_within(pairs, margin):
        fewer = cases_within(pairs, margin + 0.1)
        assert fewer is not None
        assert fewer <= cases
