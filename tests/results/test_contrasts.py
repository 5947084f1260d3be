"""What is said of a contrast claims no more than its interval shows."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.results.contrasts import Contrast, ContrastWord, is_within
from pytest_upskill.stats import cases_to_rule_out, paired_lift
from support.made_studies import made_contrast


@pytest.mark.parametrize(
    ("change", "margin", "word"),
    [
        ((0, -4, 6), 0.1, "no loss shown"),
        ((0, -4, 6), None, "no change shown"),
        ((0, -4, 6), 0.03, "not known"),
        ((-40, -62, -18), 0.1, "hurts"),
        # Below the margin, and a loss all the same
        ((-5, -8, -2), 0.1, "hurts"),
        ((30, 10, 50), None, "helps"),
        (None, 0.1, "incomplete"),
    ],
)
def test_the_word_of_a_contrast(
    change: tuple[int, int, int] | None,
    margin: float | None,
    word: ContrastWord,
) -> None:
    assert made_contrast("x", change, margin).word == word


def test_a_loss_is_told_as_points_lost() -> None:
    lost = made_contrast("x", (-12, -21, -3), margin=0.1)
    assert lost.words == "loses 12 points (3 to 21)"
    assert made_contrast("x", (1, 0, 2)).words == "no change shown (0 to +2)"
    assert made_contrast("x", (12, 3, 21)).words == "gains 12 points (3 to 21)"


def test_what_is_not_known_is_told_with_its_interval() -> None:
    unknown = made_contrast("x", (-1, -6, 5), margin=0.05)
    assert unknown.words == "not known (-6 to +5)"
    assert replace(unknown, margin=0.1).words == "no loss shown (-6 to +5)"
    assert replace(unknown, lift=None).words == "not measured"


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.floats(0.01, 1))
def test_words_agree_with_the_interval(differences: list[float], margin: float) -> None:
    change = paired_lift(differences)
    contrast = Contrast("x", ("a",), ("b",), margin, change, len(differences))
    assert (contrast.word == "hurts") == (change.high < 0)
    assert (contrast.word == "helps") == (change.low > 0)
    if contrast.word == "no loss shown":
        assert change.low > -margin
        assert contrast.words.startswith("no loss shown (")


@pytest.mark.parametrize(
    ("margin", "cases"), [(0.1, 36), (0.3, 11), (0.99, 2), (1.0, 2)]
)
def test_cases_that_rule_out_a_loss(margin: float, cases: int) -> None:
    # As many may miss this share of other cases
    assert cases_to_rule_out(margin) == cases
    assert is_within(paired_lift([0.0] * cases), margin)
    assert not is_within(paired_lift([0.0] * (cases - 1)), margin)
    assert not is_within(None, margin)
