"""The engine and a small server that queues what it can't work on:
calls wait there in vain.
"""

import asyncio

import pytest

from pytest_upskill.models import Model
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.trial import Question
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


def ask(
    monkeypatch: pytest.MonkeyPatch, model: Model, calls: int, *, careful: bool
) -> Outcome:
    return simulated(
        monkeypatch, {"m": model}, questions_to("m", calls), careful=careful
    )


def test_no_call_waits_in_vain_at_a_near_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Queueing(1, 20, "http://127.0.0.1:8080/v1")
    outcome = ask(monkeypatch, model, 20, careful=True)
    assert outcome.reasons == []
    assert model.most <= 4
    assert outcome.seconds == pytest.approx(20 * 20, rel=0.01)


@pytest.mark.parametrize("seconds", [20, 40])
def test_a_near_server_with_many_slots_gets_many_calls(
    monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    model = Queueing(64, seconds, "http://192.168.0.2:8000/v1")
    outcome = ask(monkeypatch, model, 64 * 5, careful=True)
    assert outcome.reasons == []
    assert model.most == 64
    assert outcome.seconds <= seconds * (5 + 6) + 1


def test_a_near_server_is_slow_but_takes_many_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Queueing(64, 50, "http://192.168.0.2:8000/v1")
    outcome = ask(monkeypatch, model, 64, careful=True)
    assert outcome.reasons == []
    assert outcome.seconds <= 50 * 7 + 1


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
@pytest.mark.parametrize("seconds", [1, 5, 12, 25, 40, 50])
def test_no_call_runs_out_of_time_whatever_the_slots(
    monkeypatch: pytest.MonkeyPatch, slots: int, seconds: float
) -> None:
    model = Queueing(slots, seconds, "http://127.0.0.1:8080/v1")
    outcome = ask(monkeypatch, model, 150, careful=True)
    assert outcome.reasons == []
    assert outcome.seconds <= 150 / slots * seconds * 1.25


@pytest.mark.parametrize(
    ("address", "careful"),
    [("https://api.example.com/v1", True), ("http://127.0.0.1:8080/v1", False)],
)
def test_other_servers_and_a_limit_that_was_set_begin_at_the_limit(
    monkeypatch: pytest.MonkeyPatch, address: str, careful: bool
) -> None:
    model = Queueing(64, 20, address)
    outcome = ask(monkeypatch, model, 64, careful=careful)
    assert model.most == 64
    assert outcome.seconds < 25


def test_fewer_calls_follow_those_that_ran_out_of_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Queueing(1, 20, "https://api.example.com/v1")
    outcome = ask(monkeypatch, model, 100, careful=True)
    advice = "Raise timeout, or lower concurrency if calls wait in the server's queue"
    assert {reason.partition(". ")[2] for reason in outcome.reasons} == {advice}
    assert 0 < len(outcome.reasons) <= 70  # not 94, as with 64 in flight all the time


def test_a_model_that_says_how_many_calls_it_takes_is_not_held_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Sequential(Queueing):
        most_in_flight = 1

    model = Sequential(1, 100, "http://127.0.0.1:8080/v1")
    outcome = ask(monkeypatch, model, 3, careful=True)
    assert model.most == 1
    assert outcome.held_back == {}
