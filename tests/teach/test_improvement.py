"""The loop that improves, with versions whose body is a number: the larger, the
better.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_upskill.errors import BudgetError, UnusableError
from pytest_upskill.options import DAY
from pytest_upskill.reports.terminal.progress_screen import ProgressScreen
from pytest_upskill.results.run import RunResults
from pytest_upskill.teach.case_writing import UsableCase
from pytest_upskill.teach.drafts import Draft
from pytest_upskill.teach.improvement import Improvement, sample_scores
from pytest_upskill.teach.outcome import HELD_OUT, Attempt, Taught
from pytest_upskill.teach.replies import Request
from pytest_upskill.teach.teach_run import TeachRun
from support.made import made_run

TOO_EXPENSIVE = 99


def number_draft(number: int) -> Draft:
    return Draft("gate", "d", str(number))


class Numbers(Improvement):
    """A teacher that proposes these; None is unusable, TOO_EXPENSIVE ends the
    budget.
    """

    def __init__(self, proposals: Sequence[int | None], attempts: int = 9) -> None:
        self.kept = list[int]()
        versions = SimpleNamespace(
            keep=lambda attempt: self.kept.append(attempt.number)
        )
        self.models = SimpleNamespace(
            settings=SimpleNamespace(max_age=DAY),
            out_of_budget=False,
            past_budget=lambda: "is too expensive",
        )
        run = SimpleNamespace(
            models=self.models,
            settings=SimpleNamespace(attempts=attempts, max_skill_tokens=None, runs=1),
            screen=ProgressScreen(),
            versions=versions,
        )
        super().__init__(cast(TeachRun, cast(Any, run)), ())
        self.proposals = iter(proposals)

    def request(self) -> tuple[str, Request[Draft]]:
        raise AssertionError("it proposes without a model")

    def propose(self) -> Draft:
        number = next(self.proposals)
        if number is None:
            raise UnusableError("no version")
        return number_draft(number)

    def measure(self, draft: Draft, cases: Sequence[UsableCase]) -> RunResults:
        del cases
        if draft.body == str(TOO_EXPENSIVE):
            self.models.out_of_budget = True
            raise BudgetError("too expensive")
        return made_run(cases=1)

    def is_different(self, draft: Draft) -> bool:
        return all(draft.body != version.draft.body for version in self.attempts)

    def merit(self, version: Attempt) -> tuple[float, ...]:
        return -1.0 if version.problem else float(version.draft.body), -version.number

    def why_enough(self) -> str | None:
        return "it is 10" if self.best.draft.body == "10" else None

    def candidates(self) -> list[Attempt]:
        return [self.best]

    def decide(self, taught: Taught) -> Taught:
        return taught


def numbers(loop: Numbers) -> list[int | None]:
    return [None if one.problem else int(one.draft.body) for one in loop.attempts]


@pytest.mark.parametrize(
    ("first", "proposals", "stop", "versions"),
    [
        (10, [], "it is 10", [10]),
        (1, [5, 10], "it is 10", [1, 5, 10]),
        (3, [2, 1], "2 attempts in a row were no better", [3, 2, 1]),
        (3, [2, 4, 2], "the teacher wrote nothing new", [3, 2, 4]),
        (3, [None, None], "2 attempts in a row were no better", [3, None, None]),
    ],
)
def test_why_it_stops(
    first: int, proposals: list[int | None], stop: str, versions: list[int | None]
) -> None:
    loop = Numbers(proposals)
    assert loop.improve(number_draft(first), is_new=True) == stop
    assert numbers(loop) == versions
    assert loop.kept == list(range(1, len(versions) + 1))


@pytest.mark.parametrize("is_new", [True, False])
def test_the_number_of_versions_that_are_written_is_limited(is_new: bool) -> None:
    loop = Numbers([2, 3, 4, 5], attempts=3)
    assert loop.improve(number_draft(1), is_new=is_new) == "limit of 3 attempts reached"
    # The current skill is not written
    assert loop.best.draft.body == ("3" if is_new else "4")


def test_a_version_that_is_too_expensive_to_measure_is_dropped() -> None:
    loop = Numbers([TOO_EXPENSIVE])
    assert (
        loop.improve(number_draft(1), is_new=True) == "another version is too expensive"
    )
    assert numbers(loop) == [1]


def test_a_first_version_that_is_too_expensive_says_why() -> None:
    loop = Numbers([])
    stop = loop.improve(number_draft(TOO_EXPENSIVE), is_new=True)
    assert stop == "another version is too expensive"
    assert [version.problem for version in loop.attempts] == ["too expensive"]


def half_right(weak: int) -> RunResults:
    """Four cases on two students; one of them passes only some with the skill."""
    return made_run(
        models=("a", "b"),
        cases=4,
        passes=lambda case, model, *_: case < (weak if model == "b" else 4),
    )


def test_scores_are_means_over_students_and_runs() -> None:
    assert list(sample_scores(half_right(1), ["a", "b"]).values()) == [
        1.0,
        0.5,
        0.5,
        0.5,
    ]
    assert list(sample_scores(half_right(1), ["b"]).values()) == [1.0, 0.0, 0.0, 0.0]


def test_versions_are_compared_with_the_current_one_by_case() -> None:
    loop = Numbers([])
    current = Attempt(1, number_draft(1), held_out=half_right(0), is_new=False)
    better = Attempt(2, number_draft(2), held_out=half_right(4))
    loop.attempts += [current, better]
    change = loop.compared(better, HELD_OUT)
    assert change
    assert change.lift
    assert (change.contrast.cases, change.lift.lift) == (4, 0.5)
    alone = loop.compared(better, HELD_OUT, "a")
    assert alone
    assert alone.lift
    assert alone.lift.lift == 0
    assert loop.compared(better, "learning") is None


@pytest.mark.parametrize(("seconds", "lift"), [(DAY, 0.5), (DAY + 1, None)])
def test_versions_of_different_days_are_not_compared(
    seconds: int, lift: float | None
) -> None:
    def asked(weak: int, at: int) -> RunResults:
        run = half_right(weak)
        return replace(
            run, records=tuple(replace(it, asked_at=at) for it in run.records)
        )

    loop = Numbers([])
    current = Attempt(1, number_draft(1), held_out=asked(0, 0), is_new=False)
    later = Attempt(2, number_draft(2), held_out=asked(4, seconds))
    loop.attempts += [current, later]
    change = loop.compared(later, HELD_OUT)
    assert change
    assert (change.lift and change.lift.lift) == lift


def test_nothing_is_written_outside_of_the_folder_of_a_draft(tmp_path: Path) -> None:
    file = number_draft(7).write(tmp_path / "gate")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["SKILL.md"]
    assert file.read_text().endswith("---\n\n7\n")
