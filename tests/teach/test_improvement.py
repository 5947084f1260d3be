"""The loop that improves, with versions that are numbers: the larger, the better."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_upskill.errors import BudgetError, UnusableError
from pytest_upskill.teach.improvement import Improvement
from pytest_upskill.teach.progress_lines import ProgressScreen
from pytest_upskill.teach.teach_run import TeachRun

TOO_EXPENSIVE = 99


@dataclass(frozen=True)
class Tried:
    number: int
    version: int | None
    problem: str = ""

    @property
    def merit(self) -> tuple[float, ...]:
        return (-1.0 if self.problem else float(self.version or 0), -self.number)


class Numbers(Improvement[int, Tried]):
    """A teacher that proposes these; None is unusable, TOO_EXPENSIVE ends the budget."""

    def __init__(self, proposals: Sequence[int | None], attempts: int = 9) -> None:
        self.models = SimpleNamespace(out_of_budget=False, past_budget=lambda: "is too expensive")
        settings = SimpleNamespace(attempts=attempts)
        run = SimpleNamespace(models=self.models, settings=settings, screen=ProgressScreen())
        super().__init__(cast(TeachRun, cast(Any, run)))
        self.proposals = iter(proposals)
        self.kept = list[int]()

    def propose(self) -> int:
        version = next(self.proposals)
        if version is None:
            raise UnusableError("no version")
        return version

    def measure(self, number: int, version: int) -> Tried:
        if version == TOO_EXPENSIVE:
            self.models.out_of_budget = True
            raise BudgetError("too expensive")
        return Tried(number, version)

    def unmeasured(self, number: int, problem: str, version: int | None) -> Tried:
        return Tried(number, version, problem)

    def is_new(self, version: int) -> bool:
        return all(version != attempt.version for attempt in self.attempts)

    def why_enough(self) -> str | None:
        return "it is 10" if self.best.version == 10 else None

    def show(self, attempt: Tried) -> None:
        pass

    def keep(self, attempt: Tried) -> None:
        self.kept.append(attempt.number)


@pytest.mark.parametrize(
    ("first", "proposals", "stop", "versions"),
    [
        (10, [], "it is 10", [10]),
        (1, [5, 10], "it is 10", [1, 5, 10]),
        (3, [2, 1], "2 attempts in a row were no better", [3, 2, 1]),
        (3, [2, 4, 2], "the teacher wrote nothing new", [3, 2, 4]),
        (3, [None, None], "2 attempts in a row were no better", [3, None, None]),
        (None, [1, 10], "it is 10", [1, 10]),
    ],
)
def test_why_it_stops(
    first: int | None, proposals: list[int | None], stop: str, versions: list[int | None]
) -> None:
    loop = Numbers(proposals)
    assert loop.improve(first) == stop
    assert [attempt.version for attempt in loop.attempts] == versions
    assert loop.kept == list(range(1, len(versions) + 1))


def test_the_number_of_attempts_is_limited() -> None:
    loop = Numbers([2, 3, 4], attempts=3)
    assert loop.improve(1) == "limit of 3 attempts reached"
    assert loop.best.version == 3


def test_a_version_that_is_too_expensive_to_measure_is_dropped() -> None:
    loop = Numbers([TOO_EXPENSIVE])
    assert loop.improve(1) == "another version is too expensive"
    assert [attempt.version for attempt in loop.attempts] == [1]


def test_a_first_version_that_is_too_expensive_says_why() -> None:
    loop = Numbers([])
    assert loop.improve(TOO_EXPENSIVE) == "another version is too expensive"
    assert [attempt.problem for attempt in loop.attempts] == ["too expensive"]
