"""What is said about chance, against simulations of skills without effect."""

from random import Random
from statistics import fmean

import pytest

from pytest_upskill.results.chance import (
    chance_in_looks,
    looks_words,
    many_skills_words,
)
from pytest_upskill.stats import paired_lift

CASES = 20


def first_look_that_shows(random: Random, looks: int) -> int | None:
    """Another run of all cases in each look at a skill without effect."""
    rates = [random.random() for _ in range(CASES)]
    sums = [0] * CASES
    for look in range(1, looks + 1):
        for case, rate in enumerate(rates):
            sums[case] += (random.random() < rate) - (random.random() < rate)
        if paired_lift([total / look for total in sums]).shown:
            return look
    return None


@pytest.mark.parametrize("skills", [400, pytest.param(4000, marks=pytest.mark.nightly)])
def test_looking_again_shows_what_is_not_there(skills: int) -> None:
    random = Random(5)
    shown_at = [first_look_that_shows(random, looks=8) for _ in range(skills)]
    margin = 0.02 + 0.6 / skills**0.5
    for looks in (1, 2, 4, 8):
        shown = fmean(at is not None and at <= looks for at in shown_at)
        assert shown == pytest.approx(chance_in_looks(looks), abs=margin)


def test_one_of_many_skills_without_effect_looks_as_if_it_had_one() -> None:
    random = Random(6)
    shown = 0
    for _ in range(1000):
        differences = []
        for _ in range(12):
            rate = random.random()
            differences.append(
                float((random.random() < rate) - (random.random() < rate))
            )
        shown += paired_lift(differences).shown
    assert 5 <= shown <= 50
    assert many_skills_words(1000).startswith("by chance alone, up to 50 of 1,000")


@pytest.mark.parametrize(
    ("looks", "ordinal", "percent"), [(2, "2nd", 7), (4, "4th", 10), (21, "21st", 23)]
)
def test_later_looks_are_told(looks: int, ordinal: str, percent: int) -> None:
    assert looks_words(1) == ""
    assert looks_words(looks) == (
        f"{ordinal} look at this skill: by chance alone, one of these {looks} would"
        f" show in about {percent} %"
    )


def test_few_skills_need_no_warning() -> None:
    assert many_skills_words(3) == ""
