"""Which run of the history a run is compared with."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.results.history import keep, run_before, runs
from pytest_upskill.results.run import RunResults
from support.made import STARTED, made_run, made_triggers


def made(*cases: int, **more: Any) -> RunResults:
    """A run of a skill, with only these of its cases."""
    results = made_run(cases=4, **more)
    names = [f"case-{number}" for number in cases] or [
        test.case for test in results.tests
    ]
    return replace(
        results, tests=tuple(test for test in results.tests if test.case in names)
    )


class History:
    """Keeps runs, each a day later than the last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.days = 0

    def keep(self, results: RunResults) -> str:
        self.days += 1
        started = STARTED + timedelta(days=self.days)
        keep(replace(results, started=started), self.folder, 1_000_000)
        return runs(self.folder)[0].id

    def before(self, results: RunResults) -> str | None:
        kept = run_before(self.folder, results)
        return kept.id if kept else None


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path)


def test_the_newest_run_counts(history: History) -> None:
    assert history.before(made()) is None
    history.keep(made())
    newest = history.keep(made())
    assert history.before(made()) == newest


def test_a_run_of_another_skill_or_on_another_model_is_passed_over(
    history: History,
) -> None:
    first = history.keep(made())
    history.keep(made(skills=["door"]))
    history.keep(made(models=["opus"]))
    assert history.before(made()) == first
    assert history.before(made(skills=["boat"])) is None


def test_a_whole_run_is_not_compared_with_a_later_one_of_one_skill_or_model(
    history: History,
) -> None:
    both = {"skills": ["door", "gate"], "models": ["haiku", "opus"]}
    whole = history.keep(made(**both))
    gate = history.keep(made())
    assert history.before(made(**both)) == whole
    assert history.before(made()) == gate


def test_a_run_of_the_same_cases_is_taken_not_one_of_as_many(history: History) -> None:
    whole = history.keep(made())
    first = history.keep(made(0))
    second = history.keep(made(1))
    assert history.before(made(0)) == first
    assert history.before(made(1)) == second
    assert history.before(made()) == whole


def test_without_a_run_of_all_cases_the_newest_with_most_of_them_is_taken(
    history: History,
) -> None:
    history.keep(made(0, 1))
    most = history.keep(made(1, 2))
    history.keep(made(0))
    assert history.before(made()) == most


def test_queries_are_not_compared_with_a_run_of_cases(history: History) -> None:
    queries = history.keep(made_triggers())
    history.keep(
        replace(made_triggers(only=False), tests=made_triggers(only=False).cases)
    )
    assert history.before(made_triggers()) == queries


def test_a_test_that_did_not_run_does_not_count(history: History) -> None:
    whole = history.keep(made())
    results = made()
    history.keep(replace(results, records=results.records[:2]))
    assert history.before(made()) == whole
