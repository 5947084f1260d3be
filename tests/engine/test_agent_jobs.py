"""Trials of agents in the engine: places, order, calls through the lanes,
what is stored.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pytest_upskill.engine import AgentPlaces, Engine, ModelFacts, agent_jobs, machine
from pytest_upskill.engine.budget import Budget
from pytest_upskill.engine.lane import STOPPED
from pytest_upskill.engine.store import KnownAnswers
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply, Usage
from pytest_upskill.trials.trial import Question
from support.trials import FakeTrials, trial_question
from support.waiting import wait_until


class Kept(KnownAnswers):
    def __init__(self, **known: Answer) -> None:
        self.known = known
        self.put_in: list[tuple[Question, Answer]] = []

    def get(self, question: Question) -> Reply | None:
        return self.known.get(question.messages[0][1])

    def put(self, question: Question, answer: Answer) -> None:
        self.put_in.append((question, answer))


class Upper(Model):
    """Answers in capitals; "fail…" fails for good, and "late…" twice."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.hold: asyncio.Event | None = None
        self.cancelled = 0

    async def ask(self, question: Question) -> Answer:
        text = question.messages[0][1]
        self.asked.append(text)
        await asyncio.sleep(0)
        if text.startswith("hang"):
            try:
                await asyncio.sleep(3600)
            finally:
                self.cancelled += 1
        if text.startswith("fail"):
            raise ModelError("wrong key", fatal=True)
        if text.startswith("late") and self.asked.count(text) < 3:
            raise ModelError("500", transient=True)
        return Answer(text.upper(), Usage(10, 5, 0))


@contextmanager
def engine_of(
    model: Model,
    trials: FakeTrials,
    answers: KnownAnswers | None = None,
    agents_at_once: int = 2,
    **more: object,
) -> Iterator[Engine]:
    async def open_model(_name: str) -> Model:
        return model

    engine = Engine(
        ModelFacts(open_model, timeout=lambda _: 60),
        answers=answers,
        agents=AgentPlaces(lambda: trials, at_once=agents_at_once),
        **{"concurrency": 4, **more},  # type: ignore[arg-type]
    )
    try:
        yield engine
    finally:
        engine.close()


def test_a_trial_is_one_question_and_stored_whole() -> None:
    kept = Kept()
    with engine_of(model := Upper(), trials := FakeTrials(), kept) as engine:
        question = trial_question("a")
        (reply,) = engine.ask([question])
        assert isinstance(reply, Answer)
        assert (reply.text, model.asked) == ("A0 A1", ["a0", "a1"])
        assert (engine.progress.questions, len(engine.progress.settled())) == (1, 1)
    assert [(one, answer.text) for one, answer in kept.put_in] == [(question, "A0 A1")]
    assert trials.closed


@pytest.mark.usefixtures("short_pauses")
def test_retries_of_all_calls_of_a_trial_are_counted() -> None:
    with engine_of(Upper(), FakeTrials(), kept := Kept()) as engine:
        replies = engine.ask([trial_question("late"), trial_question("a")])
    assert [reply.retries for reply in replies] == [4, 0]
    assert {answer.retries for _, answer in kept.put_in} == {4, 0}


def test_a_stored_trial_is_not_carried_out() -> None:
    known = Answer("kept", stored=True)
    with engine_of(model := Upper(), trials := FakeTrials(), Kept(a=known)) as engine:
        assert engine.ask([trial_question("a")]) == [known]
    assert (model.asked, trials.begun) == ([], [])


def test_no_more_agents_at_once_than_places_and_in_order() -> None:
    wanted = [trial_question(str(number)) for number in range(6)]
    with engine_of(Upper(), trials := FakeTrials(turns=3)) as engine:
        engine.ask(wanted)
    assert trials.most == 2
    assert trials.begun == [str(number) for number in range(6)]


@pytest.mark.parametrize(("memory", "most"), [(100, 10), (300, 3), (5000, 1)])
def test_agents_that_need_much_memory_are_fewer(
    monkeypatch: pytest.MonkeyPatch, memory: int, most: int
) -> None:
    monkeypatch.setattr(agent_jobs, "memory_for_agents", lambda: 1000)
    wanted = [trial_question(str(number)) for number in range(20)]
    with engine_of(
        Upper(), trials := FakeTrials(memory=memory), agents_at_once=50
    ) as engine:
        engine.ask(wanted)
        note = engine.progress.agents_note
    assert trials.most == most
    assert (
        note == f"Fewer than 50 agents ran at once: one takes about {memory:,} MB, "
        "and 1,000 MB of memory could be used."
    )


def test_eight_large_agents_do_not_start_on_a_laptop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "available_memory", lambda: 5.5e9)  # of 8 GB
    wanted = [trial_question(str(number)) for number in range(8)]
    with engine_of(
        Upper(), trials := FakeTrials(memory=1900), agents_at_once=8
    ) as engine:
        engine.ask(wanted)
    assert trials.most == 2


def test_no_note_where_there_is_memory_for_all() -> None:
    wanted = [trial_question(str(number)) for number in range(6)]
    with engine_of(Upper(), FakeTrials(memory=0)) as engine:
        engine.ask(wanted)
        assert engine.progress.agents_note == ""


def test_calls_of_older_trials_go_first() -> None:
    wanted = [trial_question(letter) for letter in "abc"]
    with engine_of(
        model := Upper(), FakeTrials(turns=3), concurrency=1, agents_at_once=3
    ) as engine:
        engine.ask(wanted)
    assert "".join(text[0] for text in model.asked) == "aaabbbccc"


def test_a_dead_model_ends_all_its_trials_after_one_call() -> None:
    wanted = [trial_question(f"fail{number}") for number in range(5)]
    with engine_of(model := Upper(), trials := FakeTrials()) as engine:
        replies = engine.ask(wanted)
    assert {reply.reason for reply in replies if isinstance(reply, NoAnswer)} == {
        "m: wrong key"
    }
    assert len(model.asked) == 1
    assert len(trials.begun) <= 2


def test_a_stop_ends_agents_at_work() -> None:
    kept = Kept()
    wanted = [trial_question(f"hang{number}") for number in range(3)]
    with engine_of(model := Upper(), FakeTrials(), kept) as engine:
        futures = [engine.submit(question) for question in wanted]
        wait_until(lambda: model.asked)
        engine.stop()
        assert [future.result(timeout=60) for future in futures] == [
            NoAnswer(STOPPED)
        ] * 3
        assert engine.progress.agents_at_work == (0, [])
        # Before the engine is closed
        wait_until(lambda: model.cancelled == len(model.asked))
    assert kept.put_in == []


@pytest.mark.parametrize("stop", ["time", "end", "max_turns"])
def test_what_ran_out_of_time_is_not_stored(stop: str) -> None:
    class Timed(FakeTrials):
        async def run(self, question: Question, call: object) -> Reply:  # noqa: ARG002
            return Answer("x", stop=stop)

    kept = Kept()
    with engine_of(Upper(), Timed(), kept) as engine:
        engine.ask([trial_question("a")])
    assert len(kept.put_in) == (0 if stop == "time" else 1)


def test_a_budget_that_runs_out_midway_is_no_answer_and_what_was_spent_counts() -> None:
    budget = Budget(most_tokens=140)
    with engine_of(Upper(), FakeTrials(turns=20), budget=budget) as engine:
        (reply,) = engine.ask([trial_question("a")])
    assert isinstance(reply, NoAnswer)
    assert "budget reached (135 of 140 tokens)" in reply.reason
    spent = [(one.usage, one.counted) for one in budget.unanswered]
    assert spent == [(Usage(10, 5, 0), True)] * len(spent)
    assert spent
