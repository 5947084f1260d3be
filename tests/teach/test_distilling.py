"""Which version is chosen: from long to short, each only if the one before it held."""

from pathlib import Path

from pytest_upskill.results.run import RunResults
from pytest_upskill.stats import Lift
from pytest_upskill.teach.attempts import Attempt
from pytest_upskill.teach.drafts import Draft
from pytest_upskill.teach.shortening import best_of_sizes, shortest_within, within
from support.made import made_run

GOOD = Lift(0.0, -0.08, 0.2, 1.0)
SMALL_LOSS = Lift(-0.05, -0.09, -0.01, 0.01)
UNKNOWN = Lift(0.0, -0.3, 0.3, 1.0)


def short(number: int, body: str, size: int = 500, passed: int = 4) -> Attempt:
    results = made_run(cases=4, passes=lambda case, _, arm, _run: arm == "skill" and case < passed)
    draft = Draft("gate", "About.", body, base=Path())
    return Attempt(number, draft, results, most_tokens=size)


def test_the_shortest_that_holds_is_chosen() -> None:
    assert shortest_within([[GOOD], [GOOD], [GOOD]], 0.1) == 2
    assert shortest_within([[GOOD], [GOOD], [UNKNOWN]], 0.1) == 1
    assert shortest_within([[GOOD], [SMALL_LOSS], [UNKNOWN]], 0.1) == 1


def test_nothing_is_looked_at_after_the_first_that_does_not_hold() -> None:
    assert shortest_within([[UNKNOWN], [GOOD], [GOOD]], 0.1) is None
    assert shortest_within([[GOOD], [UNKNOWN], [GOOD]], 0.1) == 0


def test_every_student_counts() -> None:
    assert shortest_within([[GOOD, GOOD], [GOOD, UNKNOWN]], 0.1) == 0
    assert shortest_within([[GOOD, UNKNOWN], [GOOD, GOOD]], 0.1) is None


def test_of_each_size_the_best_version_counts_and_each_text_once() -> None:
    found = [
        short(1, "x" * 400, size=300, passed=2),
        short(2, "y" * 200, size=100, passed=1),
        short(3, "z" * 240, size=100, passed=3),
        short(4, "x" * 400, size=200, passed=2),
        Attempt(5, Draft("gate", "", ""), None, "too long", most_tokens=50),
    ]
    assert [one.number for one in best_of_sizes(found)] == [1, 3]


def test_a_loss_is_that_of_the_student_that_loses_most() -> None:
    def run(weak: int) -> RunResults:
        return made_run(
            models=("a", "b"),
            cases=4,
            passes=lambda case, model, *_: case < (weak if model == "b" else 4),
        )

    whole, less = run(4), run(3)
    assert within(whole, less, 0.25)
    assert not within(whole, less, 0.24)
