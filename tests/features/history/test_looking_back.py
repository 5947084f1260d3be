"""What earlier runs say about a run: looks at a skill, and cases that are gone."""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.features.history.looking_back import look_back
from pytest_upskill.results.history import keep
from pytest_upskill.results.run import RunResults
from support.made import STARTED, made_run


class Project:
    """Looks back from each run before it is kept, a day after the last one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._days = 0

    def run(self, results: RunResults) -> RunResults:
        self._days += 1
        started = STARTED + timedelta(days=self._days)
        results = replace(results, started=started)
        results = replace(results, **look_back(results, self._folder))
        keep(results, self._folder, 10**9)
        return results

    def looks(self, results: RunResults) -> int | None:
        return self.run(results).looks.get("gate")

    def gone(self, results: RunResults) -> tuple[str, ...]:
        return self.run(results).gone.get("gate", ())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def made(
    cases: int = 10,
    only: Collection[int] | None = None,
    *,
    stored: bool = False,
    digest: str = "0",
    **more: Any,
) -> RunResults:
    """A run of a skill with so many cases; ``only`` these are still in its file."""
    results = made_run(cases=cases, **more)
    numbers = range(cases) if only is None else only
    names = [f"case-{number}" for number in numbers]
    skills = [replace(skill, digest=digest) for skill in results.skills]
    tests = [
        replace(test, of=len(names)) for test in results.tests if test.case in names
    ]
    records = [
        replace(record, stored=stored)
        for record in results.records
        if record.case in names
    ]
    return replace(
        results, skills=tuple(skills), tests=tuple(tests), records=tuple(records)
    )


def half(case: int, _model: str, _arm: str, _run: int) -> bool:
    return case % 2 == 0


PASSING = [0, 2, 4, 6, 8]


def test_looks_with_new_answers_are_counted(project: Project) -> None:
    assert project.looks(made()) == 1
    assert project.looks(made(runs=2)) == 2
    assert project.looks(made(cases=20)) == 3


def test_stored_answers_are_no_new_look(project: Project) -> None:
    project.run(made())
    project.run(made(runs=2))
    assert project.looks(made(runs=2, stored=True)) == 2
    assert project.looks(made(runs=3)) == 3


def test_edited_skill_is_looked_at_for_the_first_time(project: Project) -> None:
    project.run(made())
    assert project.looks(made(digest="1")) == 1
    assert project.looks(made(digest="0")) == 2


def test_each_set_of_models_has_its_looks(project: Project) -> None:
    project.run(made())
    assert project.looks(made(models=("haiku", "opus"))) == 1
    assert project.looks(made()) == 2


def test_run_without_a_verdict_is_no_look(project: Project) -> None:
    errored = made()
    lost = replace(errored.records[0], outcome="errored")
    assert project.looks(replace(errored, records=(lost, *errored.records[1:]))) is None
    part = made()
    assert project.looks(replace(part, tests=part.tests[:4])) is None
    assert project.looks(made()) == 1


def test_failing_cases_that_are_deleted_are_gone_until_asked_afresh(
    project: Project,
) -> None:
    failing = ("case-1", "case-3", "case-5", "case-7", "case-9")
    project.run(made(passes=half))
    for _ in range(3):
        assert project.gone(made(only=PASSING, passes=half, stored=True)) == failing
    assert project.gone(made(only=PASSING, passes=half)) == ()
    assert project.gone(made(only=PASSING, passes=half, stored=True)) == ()


def test_cases_that_are_back_are_not_gone(project: Project) -> None:
    project.run(made(passes=half))
    project.run(made(only=PASSING, passes=half, stored=True))
    assert project.gone(made(passes=half, stored=True)) == ()


def test_cases_that_passed_may_go(project: Project) -> None:
    project.run(made(passes=half))
    assert project.gone(made(only=range(1, 10), passes=half, stored=True)) == ()


def test_what_failed_on_another_model_says_nothing(project: Project) -> None:
    def fails_on_opus(case: int, model: str, _arm: str, _run: int) -> bool:
        return model == "haiku" or case > 3

    project.run(made(models=("haiku", "opus"), passes=fails_on_opus))
    later = made(only=range(2, 10), passes=fails_on_opus, stored=True)
    assert project.gone(later) == ()


def test_damaged_runs_are_skipped(project: Project, tmp_path: Path) -> None:
    project.run(made(passes=half))
    (tmp_path / "20270101T000000Z-abcdef.json.gz").write_bytes(b"damaged")
    assert len(project.gone(made(only=PASSING, passes=half, stored=True))) == 5
