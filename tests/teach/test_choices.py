"""How often describe and refine claim too much: small and fast;
benchmarks/choices.py has more.
"""

import random

import pytest

from support import simulated_studies as choices


@pytest.mark.parametrize(("versions", "students"), [(1, 1), (3, 1), (2, 3)])
def test_versions_that_are_no_better_are_rarely_said_to_be(
    versions: int, students: int
) -> None:
    draw = random.Random(f"{versions} versions, {students} students")
    kinds = [choices.same_query, choices.sure_query, choices.mostly_better_query]
    found = [
        choices.says_better(draw, query, (12, 8), versions, students)
        for query in kinds
        for _ in range(40)
    ]
    assert sum(found) / len(found) <= 0.05


def test_a_version_that_is_much_better_is_found_with_enough_queries() -> None:
    draw = random.Random("better")
    found = [
        choices.says_better(draw, choices.better_query, (25, 25), 2, 1)
        for _ in range(30)
    ]
    assert sum(found) >= 20


@pytest.mark.parametrize("cases", [66, 100])
def test_a_version_that_loses_the_margin_is_rarely_taken(cases: int) -> None:
    """Also if the longer ones lose nothing, so that it is its turn."""
    draw = random.Random(f"{cases} held-out cases")
    losses = [choices.needed_by_few, choices.needed_by_some, choices.missed_by_all]
    found = [
        choices.chosen_place(draw, [choices.not_needed] * good + [loss] * 2, cases)
        for loss in losses
        for good in (0, 1)
        for _ in range(25)
    ]
    wrong = [
        place
        for place, good in zip(found, ([0] * 25 + [1] * 25) * 3, strict=True)
        if place is not None and place >= good
    ]
    assert len(wrong) / len(found) <= 0.05


def test_a_version_that_loses_nothing_is_taken() -> None:
    draw = random.Random("nothing lost")
    found = [
        choices.chosen_place(draw, [choices.not_needed] * 3, 100) for _ in range(20)
    ]
    assert found.count(2) >= 15
