"""A server that misbehaves, called by the engine through the real SDKs."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from pytest_upskill.engine import Engine, ModelFacts
from pytest_upskill.engine.store import KnownAnswers, Store, StoredAnswers
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model, ModelSpec
from pytest_upskill.models.providers import PROVIDERS
from pytest_upskill.trials.answer import Answer, NoAnswer
from pytest_upskill.trials.trial import Question
from support.busy import Busy
from support.loopback import Asked, Fault, LoopbackServer, Reply, unreliable
from support.simulated_clock import SimulatedModel, questions_to, simulated


@pytest.fixture(params=["anthropic", "openai"])
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    return str(request.param)


def engine_for(
    provider: str, url: str, timeout: float = 120, answers: KnownAnswers | None = None
) -> Engine:
    base_url = url if provider == "anthropic" else f"{url}/v1"

    async def open_by_name(name: str) -> Model:
        spec = ModelSpec(name, PROVIDERS[provider], name, base_url)
        return await spec.provider.open(spec, 120)

    return Engine(
        ModelFacts(open_by_name, lambda _: timeout), concurrency=16, answers=answers
    )


def question(text: str) -> Question:
    return Question("m", "Be brief.", (("user", text),), 64, 1)


@pytest.mark.usefixtures("short_pauses")
def test_every_question_is_answered_correctly_and_paid_for_once(provider: str) -> None:
    wanted = [question(f"question {number}") for number in range(100)]
    with LoopbackServer(unreliable, together=16) as server:
        engine = engine_for(provider, server.url)
        replies = engine.ask(wanted)
        retries = engine.progress.retries()
        engine.close()
    assert [reply.text for reply in replies if isinstance(reply, Answer)] == [
        f"QUESTION {number}" for number in range(100)
    ]
    good = Counter(a.question for a in server.asked if isinstance(unreliable(a), Reply))
    assert set(good.values()) == {1}
    assert retries == {"m": len(server.asked) - 100}
    assert len(server.asked) > 100
    assert server.most_in_flight == 16


@pytest.mark.parametrize("kind", ["hang", "trickle"])
def test_missing_answer_ends_at_the_deadline(provider: str, kind: str) -> None:
    with LoopbackServer(lambda _: Fault(kind)) as server:  # type: ignore[arg-type]
        engine = engine_for(provider, server.url, timeout=0.3)
        [reply] = engine.ask([question("a")])
        engine.close()
    assert isinstance(reply, NoAnswer)
    assert reply.reason.startswith(f"m: no answer from {server.url}")
    assert " within 0.3 s. Raise timeout, or lower concurrency " in reply.reason


def test_deadline_reports_the_number_of_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Late(SimulatedModel):
        async def ask(self, question: Question) -> Answer:
            self.asked.append(question.messages[-1][1])
            if len(self.asked) == 2:
                await asyncio.sleep(3600)
            raise ModelError("500", transient=True)

    outcome = simulated(
        monkeypatch, {"m": Late(Busy())}, questions_to("m", 1), timeout=4
    )
    [reason] = outcome.reasons
    assert " within 4 s (2 attempts). Raise timeout" in reason
    assert outcome.seconds == 4


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize("kind", ["garbage", "empty_body", "wrong_type", "reset"])
def test_broken_reply_is_retried(provider: str, kind: str) -> None:
    def once(asked: Asked) -> Reply | Fault:
        return Fault(kind) if asked.attempt == 1 else Reply("fine")  # type: ignore[arg-type]

    with LoopbackServer(once) as server:
        engine = engine_for(provider, server.url)
        [reply] = engine.ask([question("a")])
        engine.close()
    assert isinstance(reply, Answer)
    assert (len(server.asked), reply.retries) == (2, 1)


def test_empty_reply_is_an_answer_and_stored_like_any_other(
    provider: str, tmp_path: Path
) -> None:
    with LoopbackServer(lambda _: Reply("")) as server:
        for stored in (False, True):
            answers = StoredAnswers(
                lambda: Store(tmp_path / "a.sqlite"), str, fresh=False
            )
            engine = engine_for(provider, server.url, answers=answers)
            [reply] = engine.ask([question("a")])
            engine.close()
            assert isinstance(reply, Answer)
            assert (reply.text, reply.stored, reply.retries) == ("", stored, 0)
    assert len(server.asked) == 1


@pytest.mark.usefixtures("short_pauses")
def test_error_says_status_attempts_and_what_to_do(provider: str) -> None:
    fault = Fault("status", 503, message="on fire")
    with LoopbackServer(lambda _: fault) as server:
        engine = engine_for(provider, server.url)
        [reply] = engine.ask([question("a")])
        engine.close()
    assert isinstance(reply, NoAnswer)
    assert reply.reason.startswith("m: 503 from http://127.0.0.1")
    assert reply.reason.endswith("on fire (5 attempts). Server error: try again later")
    assert len(server.asked) == 5


@pytest.mark.parametrize("status", [400, 413])
def test_rejected_question_is_not_retried(provider: str, status: int) -> None:
    with LoopbackServer(lambda _: Fault("status", status, message="no")) as server:
        engine = engine_for(provider, server.url)
        engine.ask([question("a")])
        engine.close()
    assert len(server.asked) == 1


def test_wait_of_more_than_five_minutes_is_an_error(provider: str) -> None:
    with LoopbackServer(lambda _: Fault("status", 429, retry_after="301")) as server:
        engine = engine_for(provider, server.url)
        [reply] = engine.ask([question("a")])
        engine.close()
    assert isinstance(reply, NoAnswer)
    assert "429" in reply.reason
    assert len(server.asked) == 1


@pytest.mark.parametrize("count", [1e30, 2**63, [1], {"n": 1}, float("nan"), "many"])
def test_an_odd_count_of_tokens_does_not_stop_the_run(
    provider: str, count: object, tmp_path: Path
) -> None:
    names = ("input_tokens", "prompt_tokens", "output_tokens", "completion_tokens")
    reply = Reply("gate up", raw={"usage": dict.fromkeys(names, count)})
    answers = StoredAnswers(lambda: Store(tmp_path / "a.sqlite"), str, fresh=False)
    with LoopbackServer(lambda _: reply) as server:
        engine = engine_for(provider, server.url, answers=answers)
        answer = engine.submit(question("a")).result(timeout=30)
        engine.close()
    assert isinstance(answer, Answer)
    assert (answer.text, answer.usage.input, answer.usage.output) == (
        "gate up",
        None,
        None,
    )
    kept = Store(tmp_path / "a.sqlite")
    assert sum(kept.size().answers.values()) == 1
    kept.close()
