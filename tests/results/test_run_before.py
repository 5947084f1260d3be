"""Which run of the history a run is compared with."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pytest_upskill.results.history import keep, run_before, runs
from pytest_upskill.results.run import RunResults
from support.made import STARTED, made_run


def made(cases: int = 2, of: int = 2, **more: Any) -> RunResults:
    """A run of some of the cases of a skill."""
    results = made_run(cases=cases, **more)
    return replace(results, tests=tuple(replace(test, of=of) for test in results.tests))


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
        found = run_before(self.folder, results)
        return found.id if found else None


def test_the_newest_run_counts(tmp_path: Path) -> None:
    history = History(tmp_path)
    assert history.before(made()) is None
    history.keep(made())
    newest = history.keep(made())
    assert history.before(made()) == newest


def test_a_run_of_another_skill_or_on_another_model_is_passed_over(tmp_path: Path) -> None:
    history = History(tmp_path)
    first = history.keep(made())
    history.keep(made(skills=["door"]))
    last = history.keep(made(models=["opus"]))
    assert history.before(made()) == first
    assert history.before(made(models=["haiku", "opus"])) == last
    assert history.before(made(skills=["boat"])) is None


def test_a_run_of_fewer_cases_is_passed_over_while_there_is_a_whole_one(tmp_path: Path) -> None:
    history = History(tmp_path)
    partial = history.keep(made(1))
    assert history.before(made()) == partial
    whole = history.keep(made())
    newer = history.keep(made(1))
    assert history.before(made()) == whole
    assert history.before(made(1)) == newer
