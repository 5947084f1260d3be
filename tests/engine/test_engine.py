"""The engine: order, limits, fatal errors, stop and close."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pytest_upskill.engine import Engine
from pytest_upskill.engine.engine import STOPPED
from pytest_upskill.errors import ModelError, SettingsError
from pytest_upskill.models import Model
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply
from pytest_upskill.trials.plan import Plan, PlannedCase
from pytest_upskill.trials.trial import Question, Trial


def question(text: str, model: str = "m") -> Question:
    return Question(model, "system", (("user", text),), 100, 1)


class Recorder:
    """A model that keeps what it was asked, and answers when it is let."""

    def __init__(self, most_in_flight: int | None = None, held: bool = False) -> None:
        self.most_in_flight = most_in_flight
        self.endpoint = str(id(self))
        self.address = ""
        self.asked: list[str] = []
        self.now = 0
        self.most = 0
        self.closed = False
        self.go = threading.Event()
        if not held:
            self.go.set()

    async def ask(self, question: Question) -> Answer:
        text = question.messages[0][1]
        self.asked.append(text)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            while not self.go.is_set():
                await asyncio.sleep(0.001)
            await asyncio.sleep(0)
            if text.startswith("raise"):
                raise ModelError(
                    text,
                    fatal="fatal" in text,
                    unreachable="unreachable" in text,
                    transient="transient" in text,
                    rate_limited="busy" in text,
                    retry_after=0.0,
                )
            if text.startswith("bug"):
                raise ZeroDivisionError(text)
            return Answer(text.upper())
        finally:
            self.now -= 1

    async def close(self) -> None:
        self.closed = True


@contextmanager
def engine_of(
    *models: tuple[str, Recorder], concurrency: int = 4, timeout: float = 20
) -> Iterator[Engine]:
    by_name = dict(models)

    async def open_model(name: str) -> Model:
        if name not in by_name:
            raise SettingsError("models", "there is no such model", value=name)
        return by_name[name]

    engine = Engine(open_model, concurrency=concurrency, timeout=timeout)
    try:
        yield engine
    finally:
        engine.close()


def texts(replies: list[Reply]) -> list[str]:
    return [reply.text if isinstance(reply, Answer) else reply.reason for reply in replies]


def plan_of(*questions: Question) -> Plan:
    trials = tuple(Trial("s", "c", q.model, "skill", 1, q) for q in questions)
    return Plan((), (PlannedCase("nodeid", "s", "c", "m", trials),))


def test_replies_are_in_the_order_of_the_questions() -> None:
    with engine_of(("m", model := Recorder())) as engine:
        assert texts(engine.ask([question("a"), question("b")])) == ["A", "B"]
    assert model.closed


def test_plan_is_asked_in_order_before_anyone_waits() -> None:
    wanted = [question(str(number)) for number in range(20)]
    with engine_of(("m", model := Recorder()), concurrency=1) as engine:
        engine.start(plan_of(*wanted))
        engine.ask(wanted[-1:])
    assert model.asked == [str(number) for number in range(20)]


def test_same_question_is_asked_once() -> None:
    with engine_of(("m", model := Recorder())) as engine:
        engine.start(plan_of(question("a")))
        engine.ask([question("a"), question("a")])
        engine.ask([question("a")])
    assert model.asked == ["a"]


def test_calls_in_flight_stay_within_the_limit() -> None:
    one, two = Recorder(), Recorder()
    with engine_of(("one", one), ("two", two), concurrency=3) as engine:
        engine.ask([question(str(n), ("one", "two")[n % 2]) for n in range(40)])
    assert max(one.most, two.most) > 1
    assert one.most + two.most <= 6
    assert max(one.most, two.most) <= 3


def test_slow_model_does_not_block_another() -> None:
    slow, fast = Recorder(most_in_flight=1, held=True), Recorder()
    with engine_of(("slow", slow), ("fast", fast), concurrency=2) as engine:
        engine.start(plan_of(*(question(str(n), "slow") for n in range(5))))
        assert texts(engine.ask([question("a", "fast"), question("b", "fast")])) == ["A", "B"]
        assert slow.asked == ["0"]
        slow.go.set()
        engine.ask([question("4", "slow")])
    assert slow.most == 1


@pytest.mark.parametrize("word", ["fatal", "unreachable"])
def test_fatal_error_costs_one_call(word: str) -> None:
    wanted = [question(f"raise {word} {number}") for number in range(10)]
    with engine_of(("m", model := Recorder())) as engine:
        replies = texts(engine.ask(wanted))
    # Nobody may be there only for now, so that is tried again, but for one question only.
    assert model.asked == [f"raise {word} 0"] * (5 if word == "unreachable" else 1)
    assert len(set(replies)) == 1
    assert replies[0].startswith(f"m: raise {word} 0")


def test_server_that_answered_before_gets_more_questions_after_an_outage() -> None:
    wanted = [question("a"), question("raise unreachable"), question("b")]
    with engine_of(("m", Recorder()), concurrency=1) as engine:
        assert texts(engine.ask(wanted)) == ["A", "m: raise unreachable (5 attempts)", "B"]


def test_error_of_one_question_leaves_others_alone() -> None:
    with engine_of(("m", Recorder()), concurrency=1) as engine:
        replies = texts(engine.ask([question("raise once"), question("a"), question("bug")]))
    assert replies[:2] == ["m: raise once", "A"]
    assert "the adapter raised" in replies[2]
    assert "ZeroDivisionError" in replies[2]


@pytest.mark.parametrize("word", ["transient", "busy"])
def test_transient_error_gets_five_attempts(word: str) -> None:
    with engine_of(("m", model := Recorder())) as engine:
        [reply] = texts(engine.ask([question(f"raise {word}")]))
        assert engine.retries() == {"m": 4}
    assert len(model.asked) == 5
    assert reply == f"m: raise {word} (5 attempts)"


def test_question_waiting_for_a_retry_takes_no_slot() -> None:
    with engine_of(("m", model := Recorder()), concurrency=1) as engine:
        engine.ask([question("first")])
        engine.start(plan_of(question("raise transient"), question("a"), question("b")))
        assert texts(engine.ask([question("b")])) == ["B"]
    assert model.asked.index("b") < 5


def test_stop_ends_pending_retries() -> None:
    with engine_of(("m", model := Recorder())) as engine:
        engine.ask([question("first")])
        engine.start(plan_of(question("raise transient")))
        while "raise transient" not in model.asked:
            pass
        engine.stop()
        [reply] = texts(engine.ask([question("raise transient")]))
    assert reply in (STOPPED, "m: raise transient", "m: raise transient (2 attempts)")


def test_model_that_cannot_be_opened_fails_all_its_questions() -> None:
    with engine_of() as engine:
        replies = texts(engine.ask([question("a", "none"), question("b", "none")]))
    assert replies == ["models none: there is no such model"] * 2


def test_slow_answer_times_out() -> None:
    with engine_of(("m", Recorder(held=True)), timeout=0.05) as engine:
        [reply] = texts(engine.ask([question("a")]))
    assert reply == "m: no answer within 0.05 s. Raise timeout, or ask for less"


def test_stop_drops_questions_not_asked_yet() -> None:
    wanted = [question(str(number)) for number in range(10)]
    with engine_of(("m", model := Recorder(held=True)), concurrency=2) as engine:
        engine.start(plan_of(*wanted))
        engine.stop()
        assert texts(engine.ask(wanted[5:])) == [STOPPED] * 5
        model.go.set()
        engine.ask(wanted[:1])
        assert engine.ask([question("later")]) == [NoAnswer(STOPPED)]
    assert len(model.asked) <= 1


def test_close_cancels_calls_and_closes_models() -> None:
    with engine_of(("m", model := Recorder(held=True))) as engine:
        engine.start(plan_of(question("a")))
        futures = engine.replies_to([question("a").key])
        while not model.asked:
            pass
    assert futures is not None
    assert futures[0].result() == NoAnswer(STOPPED)
    assert model.closed


def test_unused_engine_starts_nothing() -> None:
    before = threading.active_count()
    with engine_of(("m", model := Recorder())):
        assert threading.active_count() == before
    assert not model.closed
