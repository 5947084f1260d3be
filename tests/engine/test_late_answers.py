"""Questions that reach the time limit: asked again once, then they have failed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from pytest_upskill.engine import AgentPlaces, Engine, ModelFacts
from pytest_upskill.engine.store import Store, StoredAnswers
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply
from pytest_upskill.trials.transcript import Activity
from pytest_upskill.trials.trial import Question
from support.trials import FakeTrials, trial_question

FAST = Question("m", "", (("user", "fast"),), 100, 1)
LATE = Question("m", "", (("user", "late"),), 100, 1)


class Slow(Model):
    """Answers what is fast; ``in_time`` decides on all others."""

    def __init__(self, in_time: Sequence[bool] | None = None) -> None:
        self.asked: list[str] = []
        self._in_time = iter(in_time or ())

    async def ask(self, question: Question) -> Answer:
        text = question.messages[0][1]
        self.asked.append(text)
        if text == "fast" or next(self._in_time, False):
            return Answer("right")
        raise ModelError("no answer in time", timed_out=True)


@contextmanager
def engine_of(
    model: Model, folder: Path, seconds: float = 60.0, trials: FakeTrials | None = None
) -> Iterator[Engine]:
    async def open_model(_name: str) -> Model:
        return model

    answers = StoredAnswers(
        lambda: Store(folder / "answers.sqlite"),
        str,
        fresh=False,
        seconds_for=lambda _: seconds,
    )
    engine = Engine(
        ModelFacts(open_model, timeout=lambda _: seconds),
        concurrency=1,
        answers=answers,
        agents=AgentPlaces(lambda: trials or FakeTrials()),
    )
    try:
        yield engine
    finally:
        engine.close()


def ask_in_new_run(
    model: Model, folder: Path, *questions: Question, seconds: float = 60.0
) -> list[Reply]:
    with engine_of(model, folder, seconds) as engine:
        return engine.ask(questions)


def test_question_late_in_two_runs_has_failed_and_is_not_asked_again(
    tmp_path: Path,
) -> None:
    model = Slow()
    _, first = ask_in_new_run(model, tmp_path, FAST, LATE)
    _, second = ask_in_new_run(model, tmp_path, FAST, LATE)
    _, third = ask_in_new_run(model, tmp_path, FAST, LATE)

    assert isinstance(first, NoAnswer)
    assert isinstance(second, Answer)
    assert second.why_not_gradable == "no answer within 60 s, in two runs"
    assert third == replace(second, stored=True)
    assert model.asked == ["fast", "late", "late"]


def test_failed_question_is_asked_again_only_with_more_time(tmp_path: Path) -> None:
    model = Slow([False, False, True])
    for _ in range(2):
        ask_in_new_run(model, tmp_path, FAST, LATE)

    ask_in_new_run(model, tmp_path, LATE, seconds=30.0)
    assert model.asked.count("late") == 2
    [answer] = ask_in_new_run(model, tmp_path, LATE, seconds=120.0)
    assert isinstance(answer, Answer)
    assert answer.text == "right"


def test_server_that_answers_nothing_fails_no_question(tmp_path: Path) -> None:
    model = Slow()
    for _ in range(3):
        [reply] = ask_in_new_run(model, tmp_path, LATE)
        assert isinstance(reply, NoAnswer)


@pytest.mark.parametrize("change", [{"schema": "{}"}, {"verdicts": 1}])
def test_late_judges_and_teachers_are_asked_each_time(
    tmp_path: Path, change: dict[str, object]
) -> None:
    model = Slow()
    question = replace(LATE, **change)  # type: ignore[arg-type]
    for _ in range(3):
        _, reply = ask_in_new_run(model, tmp_path, FAST, question)
        assert isinstance(reply, NoAnswer)


def test_trial_of_an_agent_late_in_two_runs_is_kept_as_it_ended(tmp_path: Path) -> None:
    class Endless(FakeTrials):
        async def run(self, question: Question, call: object) -> Reply:  # noqa: ARG002
            self.begun.append(question.messages[0][1])
            return Answer("half done", stop="time", activity=Activity(turns=3))

    trials = Endless()
    for _ in range(3):
        with engine_of(Slow(), tmp_path, trials=trials) as engine:
            [reply] = engine.ask([trial_question("build")])
        assert isinstance(reply, Answer)
        assert reply.text == "half done"
    assert trials.begun == ["build", "build"]


def test_trial_whose_model_is_late_in_two_runs_has_failed(tmp_path: Path) -> None:
    model = Slow()
    replies = []
    for _ in range(3):
        with engine_of(model, tmp_path, trials=FakeTrials(turns=1)) as engine:
            _, reply = engine.ask([FAST, trial_question("build")])
            replies.append(reply)
    assert isinstance(replies[0], NoAnswer)
    assert isinstance(replies[1], Answer)
    assert replies[1].why_not_gradable == "the agent stopped at its time limit of 60 s"
    assert model.asked.count("build0") == 2


def test_running_again_and_again_does_not_raise_the_pass_rate(tmp_path: Path) -> None:
    """Wrong answers of this model are late, so asking on would make all of them pass.

    The truth is 30 %. Asked until they end well, 83 % pass after five runs.
    """
    random = Random(4)
    model = Slow([random.random() < 0.3 for _ in range(1000)])
    questions = [replace(LATE, run=number) for number in range(1, 101)]

    rates = []
    for _ in range(5):
        replies = ask_in_new_run(model, tmp_path, FAST, *questions)
        right = [reply for reply in replies if getattr(reply, "text", "") == "right"]
        rates.append((len(right) - 1) / len(questions))

    assert 0.2 < rates[0] < 0.4
    assert 0.4 < rates[1] < 0.62
    assert rates[1:] == [rates[1]] * 4
