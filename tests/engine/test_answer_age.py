"""The engine asks again what is too old to be compared, across the calls of a run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.engine import Engine, ModelFacts
from pytest_upskill.engine.budget import Budget
from pytest_upskill.engine.recording import Recorded, load_recording, write_recording
from pytest_upskill.engine.store import Store, StoredAnswers
from pytest_upskill.models import Model
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.trial import Question, Trial

DAY = 86_400
BASELINE = Question("m", "", (("user", "Open?"),), 64, 1)
BEFORE, AFTER = (
    replace(BASELINE, system="Say up."),
    replace(BASELINE, system="Say gate up."),
)
OTHER_RUN = replace(BASELINE, run=2)


class Counting(Model):
    """Keeps the system texts that it was asked with."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @property
    def endpoint(self) -> str:
        return "here"

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question.system)
        return Answer(f"answer {len(self.asked)}")


class Project:
    """A store and a clock; each run is an engine of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.model, self.day = folder, Counting(), 100.0
        monkeypatch.setattr(time, "time", lambda: self.day * DAY)

    @contextmanager
    def run(self, day: float, **options: Any) -> Iterator[Engine]:
        async def open_model(_name: str) -> Model:
            return self.model

        self.day = day
        self.model.asked.clear()
        answers = StoredAnswers(
            lambda: Store(self.folder / "a.sqlite"), str, fresh=False
        )
        options = {"max_age": float(DAY), **options}
        engine = Engine(
            ModelFacts(open_model, timeout=lambda _: 9),
            concurrency=1,
            answers=answers,
            **options,
        )
        try:
            yield engine
        finally:
            engine.close()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project(tmp_path, monkeypatch)
    with project.run(100) as engine:
        engine.ask([BASELINE, BEFORE, OTHER_RUN])
    return project


def days(replies: list[Any]) -> list[float]:
    return [reply.asked_at / DAY for reply in replies]


def test_an_old_arm_is_asked_again_beside_a_new_one(project: Project) -> None:
    with project.run(103) as engine:
        assert days(engine.ask([BASELINE, AFTER, OTHER_RUN])) == [103, 103, 100]
    assert len(project.model.asked) == 2
    with project.run(103.5) as engine:  # and then it is stored
        assert days(engine.ask([BASELINE, AFTER, BEFORE])) == [103, 103, 103.5]


def test_arms_that_were_asked_one_after_the_other_are_compared(
    project: Project,
) -> None:
    with project.run(103) as engine:
        assert days(engine.ask([BASELINE, BEFORE])) == [100, 100]  # as nothing is new
        assert days(engine.ask([BASELINE, AFTER])) == [103, 103]
        # It is compared with that
        assert days(engine.ask([BASELINE, BEFORE])) == [103, 103]
        engine.ask([BASELINE, BEFORE, AFTER])
    assert len(project.model.asked) == 3  # each once


def test_so_are_versions_that_were_asked_alone(project: Project) -> None:
    with project.run(103) as engine:
        asked = [engine.ask([one]) for one in (BEFORE, AFTER, BEFORE, AFTER)]
        assert [days(replies) for replies in asked] == [[100], [103], [103], [103]]
    assert len(project.model.asked) == 2


def test_where_nothing_may_be_asked_the_old_answer_stands(project: Project) -> None:
    with project.run(103, max_age=1e11) as engine:
        engine.ask([AFTER])
    with project.run(103, budget=Budget(most_tokens=1)) as engine:
        assert days(engine.ask([BASELINE, AFTER])) == [100, 103]
        assert days(engine.ask([BASELINE, AFTER])) == [100, 103]
        assert len(engine.progress.not_renewed) == 1
        assert "budget" in engine.progress.not_renewed[0]
    assert not project.model.asked


def test_a_clock_that_was_wrong_is_no_reason_to_ask_for_ever(project: Project) -> None:
    with project.run(50) as engine:  # before the answers of the store
        assert days(engine.ask([BASELINE, BEFORE])) == [100, 100]
        assert days(engine.ask([BASELINE, AFTER])) == [50, 50]
    with project.run(50) as engine:
        engine.ask([BASELINE, AFTER])
        assert not project.model.asked


def test_a_ruling_is_not_much_older_than_the_answer(project: Project) -> None:
    ruling = replace(BASELINE, system="Judge.", messages=(("user", "Is it right?"),))
    with project.run(100) as engine:
        engine.ask([ruling])
    for judged_at, day in (
        (100, 100),
        (103, 103),
        (103, 103),
        (200, 104.5),
        (200, 104.5),
    ):
        with project.run(day) as engine:
            (reply,) = engine.ask([replace(ruling, judged_at=judged_at * DAY)])
            assert isinstance(reply, Answer)
            assert reply.asked_at == day * DAY


def test_a_recording_keeps_the_time(project: Project) -> None:
    file = project.folder / "a.jsonl"
    with project.run(100) as engine:
        (answer,) = engine.ask([BASELINE])
    assert isinstance(answer, Answer)
    trial = Trial("s", "c", "m", "baseline", 1, BASELINE)
    write_recording(file, [Recorded(trial, 0, BASELINE.key, answer)])
    assert load_recording(file)[BASELINE.key].asked_at == 100 * DAY
