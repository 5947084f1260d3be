"""The engine and servers that work on some calls and let the others wait."""

import asyncio

import pytest

from pytest_upskill.engine import Engine, ModelFacts
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model, ModelSpec
from pytest_upskill.models.providers import PROVIDERS
from pytest_upskill.settings import DEFAULT_CONCURRENCY
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.trial import Question
from support.loopback import LoopbackServer, Reply
from support.simulated_clock import Outcome, questions_to, simulated


class Queueing(Model):
    """Works on some calls at once; the others wait, as at llama.cpp's server."""

    def __init__(self, slots: int, seconds: float, address: str) -> None:
        self._slots = asyncio.Semaphore(slots)
        self._seconds = seconds
        self._address = address
        self.in_flight = self.most = 0

    @property
    def address(self) -> str:
        return self._address

    async def ask(self, question: Question) -> Answer:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            async with self._slots:
                await asyncio.sleep(self._seconds)
        finally:
            self.in_flight -= 1
        return Answer(question.messages[-1][1])


class Crowded(Queueing):
    """Takes no more connections while some calls are there."""

    connections = 6

    async def ask(self, question: Question) -> Answer:
        if self.in_flight >= self.connections:
            await asyncio.sleep(10)
            raise ModelError("can't connect", unreachable=True, no_connection=True)
        return await super().ask(question)


class Unconnected(Crowded):
    connections = 0


NEAR = "http://127.0.0.1:8080/v1"
FAR = "https://api.example.com/v1"


def ask(
    monkeypatch: pytest.MonkeyPatch, model: Model, calls: int, timeout: float = 120
) -> Outcome:
    return simulated(
        monkeypatch, {"m": model}, questions_to("m", calls), timeout=timeout
    )


@pytest.mark.parametrize("concurrency", [5, DEFAULT_CONCURRENCY])
def test_calls_to_a_server_on_loopback_begin_together(concurrency: int) -> None:
    async def open_model(_: str) -> Model:
        provider = PROVIDERS["generic"]
        spec = ModelSpec("m", provider, "m", f"{server.url}/v1")
        return await provider.open(spec, 60)

    with LoopbackServer(lambda _: Reply("yes"), together=concurrency) as server:
        engine = Engine(ModelFacts(open_model, lambda _: 60), concurrency=concurrency)
        replies = engine.ask(questions_to("m", concurrency + 5))
        engine.close()
    assert all(isinstance(reply, Answer) for reply in replies)
    assert server.most_in_flight == concurrency


@pytest.mark.parametrize("slots", [1, 2, 8])
@pytest.mark.parametrize("seconds", [2, 25, 110])
def test_no_call_runs_out_of_time_whatever_the_slots(
    monkeypatch: pytest.MonkeyPatch, slots: int, seconds: float
) -> None:
    model = Queueing(slots, seconds, NEAR)
    outcome = ask(monkeypatch, model, 150)
    assert outcome.reasons == []
    assert outcome.seconds <= (150 / slots + 1) * seconds


@pytest.mark.parametrize("address", [NEAR, FAR])
def test_all_calls_begin_at_once(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    model = Queueing(64, 20, address)
    outcome = ask(monkeypatch, model, 64)
    assert model.most == 64
    assert outcome.seconds == pytest.approx(20, abs=0.5)


def test_two_models_of_one_server_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Loading(Queueing):
        endpoint = NEAR

    first, second = Loading(1, 20, NEAR), Loading(1, 20, NEAR)
    second._slots = first._slots
    questions = [*questions_to("first", 10), *questions_to("second", 10)]
    models = {"first": first, "second": second}
    outcome = simulated(monkeypatch, models, questions)
    assert outcome.reasons == []


def test_a_call_that_hangs_runs_out_of_time_after_the_last_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Hanging(Queueing):
        async def ask(self, question: Question) -> Answer:
            if question.messages[-1][1] == "m 3":
                await asyncio.sleep(1e6)
            return await super().ask(question)

    outcome = ask(monkeypatch, Hanging(1, 20, NEAR), 10)
    assert len(outcome.reasons) == 1
    assert outcome.seconds == pytest.approx(9 * 20 + 120, abs=0.5)


def test_calls_to_a_far_server_do_not_get_more_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = ask(monkeypatch, Queueing(1, 20, FAR), 100)
    advice = "Raise timeout, or lower concurrency if calls wait in the server's queue"
    assert {reason.partition(". ")[2] for reason in outcome.reasons} == {advice}
    # Fewer calls follow those that ran out of time.
    assert 0 < len(outcome.reasons) <= 70


@pytest.mark.parametrize("timeout", [15, 120])
def test_calls_that_a_server_has_no_connection_for_are_asked_later(
    monkeypatch: pytest.MonkeyPatch, timeout: float
) -> None:
    model = Crowded(1, 12, NEAR)
    outcome = ask(monkeypatch, model, 40, timeout)
    assert outcome.reasons == []
    assert outcome.seconds == pytest.approx(40 * 12, rel=0.02)


def test_server_that_takes_no_connection_at_all_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = ask(monkeypatch, Unconnected(1, 1, NEAR), 40)
    assert len(outcome.reasons) == 40
    assert len(set(outcome.reasons)) == 1
    assert outcome.seconds < 80
