"""The engine behind busy servers: nothing is lost, nothing is stormed,
little time is wasted.

On a simulated clock, but for the last tests. The bounds of refused calls are
about twice of what is seen: the calls in flight at the start, and one for each
time that the limit grows.
"""

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest

from pytest_upskill.engine import Engine, ModelFacts, pace
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model, ModelSpec
from pytest_upskill.models.providers import PROVIDERS
from pytest_upskill.trials.answer import Answer, Reply
from pytest_upskill.trials.trial import Question
from support.busy import Bucket, Busy, Verdict
from support.loopback import Asked, Fault, LoopbackServer
from support.simulated_clock import Outcome, SimulatedModel, questions_to, simulated

Server = Callable[..., Busy]


def minute(**limits: float) -> Server:
    """Rate limits per minute, and perhaps other rules."""

    def made(**rules: object) -> Busy:
        tokens, requests = limits.get("tokens"), limits.get("requests")
        return Busy(
            requests=Bucket.per_minute(requests) if requests else None,
            tokens=Bucket.per_minute(tokens) if tokens else None,
            cost=1000,
            latency=2.0,
            **rules,  # type: ignore[arg-type]
        )

    return made


SITUATIONS: Mapping[str, tuple[Server, int, int]] = {  # calls, and those in flight
    "8 at once": (lambda **rules: Busy(cap=8, **rules), 1000, 50),
    "16 at once": (lambda **rules: Busy(cap=16, **rules), 1000, 50),
    "32 at once": (lambda **rules: Busy(cap=32, **rules), 1000, 50),
    "50 a second": (lambda **rules: Busy(requests=Bucket(50, 50), **rules), 500, 64),
    "50 a second, few": (
        lambda **rules: Busy(requests=Bucket(50, 50), **rules),
        250,
        64,
    ),
    "4 a second": (lambda **rules: Busy(requests=Bucket(4, 8), **rules), 80, 64),
    "4 a second, fast": (
        lambda **rules: Busy(requests=Bucket(4, 8), latency=0.05, **rules),
        80,
        64,
    ),
    "500 requests a minute": (minute(requests=500), 900, 64),
    "60 requests a minute": (minute(requests=60), 150, 64),
    "100,000 tokens a minute": (minute(tokens=100_000), 300, 64),
    "both": (minute(tokens=300_000, requests=400), 600, 64),
    "all at once each minute": (
        lambda **rules: Busy(requests=Bucket.each_minute(500), latency=2.0, **rules),
        1200,
        64,
    ),
}
FEW = ("8 at once", "60 requests a minute")


def asked_of(
    monkeypatch: pytest.MonkeyPatch, server: Busy, calls: int, in_flight: int = 64
) -> Outcome:
    model = SimulatedModel(server)
    return simulated(
        monkeypatch, {"m": model}, questions_to("m", calls), in_flight=in_flight
    )


@pytest.mark.parametrize(
    ("situation", "retry_after"),
    [
        *((situation, "s") for situation in SITUATIONS),
        *(("4 a second", form) for form in ("ms", "date")),
        *((situation, "") for situation in FEW),
        *(
            pytest.param(situation, "", marks=pytest.mark.nightly)
            for situation in SITUATIONS
            if situation not in FEW
        ),
    ],
)
def test_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, situation: str, retry_after: str
) -> None:
    make, calls, in_flight = SITUATIONS[situation]
    server = make(retry_after=retry_after)
    ideal = server.ideal(calls, in_flight)
    outcome = asked_of(monkeypatch, server, calls, in_flight)
    assert outcome.reasons == []
    assert server.taken == calls
    assert server.refused <= 2 * in_flight + calls / 4
    assert outcome.seconds <= 1.15 * ideal


class Refusing(SimulatedModel):
    """Its server takes so many calls and then nothing more,
    or never takes some questions.
    """

    takes = 0
    never: Callable[[str], bool] = staticmethod(lambda _: False)
    headers: Mapping[str, str] = {}

    def visit(self, question: Question, now: float) -> Verdict:
        if self.server.taken >= self.takes or self.never(question.messages[-1][1]):
            self.server.refused += 1
            return Verdict(taken=False, headers=self.headers)
        return super().visit(question, now)


@pytest.mark.parametrize("takes", [0, 300])
@pytest.mark.parametrize(
    ("headers", "why", "seconds"),
    [
        ({}, "no call was taken for 5 min", 310),
        ({"retry-after": "0"}, "no call was taken for 5 min", 310),
        ({"retry-after": "1"}, "no call was taken for 5 min", 310),
        ({"retry-after": "3600"}, "it asks to wait for 60 min", 10),
        ({"retry-after": "86400"}, "it asks to wait for 24 h", 10),
        (
            {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"},
            "it asks to wait for days",
            10,
        ),
    ],
)
def test_server_that_takes_nothing_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
    headers: Mapping[str, str],
    why: str,
    seconds: float,
    takes: int,
) -> None:
    model = Refusing(Busy())
    model.takes, model.headers = takes, headers
    outcome = simulated(monkeypatch, {"m": model}, questions_to("m", 1000))
    assert set(outcome.reasons) == {f"m: 429 from the server ({why})"}
    assert len(outcome.reasons) == 1000 - takes
    assert outcome.seconds < seconds
    assert model.server.refused < 64 * bool(takes) + 60


def test_slow_refusals_make_no_storm(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Refusing(Busy(), away=2.0)
    outcome = simulated(monkeypatch, {"m": model}, questions_to("m", 1000))
    assert len(outcome.reasons) == 1000
    assert model.server.refused < 64 + 60


def test_model_that_is_used_up_does_not_stop_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used_up, other = Refusing(Busy()), SimulatedModel(Busy(cap=16))
    pairs = zip(questions_to("a", 200), questions_to("b", 200), strict=True)
    wanted = [question for pair in pairs for question in pair]
    outcome = simulated(monkeypatch, {"a": used_up, "b": other}, wanted)
    assert len(outcome.reasons) == 200
    assert all(reason.startswith("a:") for reason in outcome.reasons)


def test_models_of_one_server_share_what_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Busy(cap=8)
    models = {"a": SimulatedModel(server), "b": SimulatedModel(server)}
    wanted = questions_to("a", 200) + questions_to("b", 200)
    ideal = server.ideal(400, 50)
    outcome = simulated(monkeypatch, models, wanted, in_flight=50)
    assert outcome.reasons == []
    assert outcome.seconds <= 1.15 * ideal
    assert server.refused <= 2 * 50 + 400 / 4


def test_server_that_refuses_by_chance_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other users keep it busy: it refuses 85 calls of 100, however few they are."""
    model, chance = SimulatedModel(server := Busy()), Random(1)
    take = Busy.visit

    def visit(busy: Busy, *when: Any) -> Verdict:
        return (
            Verdict(taken=False, headers={})
            if chance.random() < 0.85
            else take(busy, *when)
        )

    monkeypatch.setattr(Busy, "visit", visit)
    outcome = simulated(monkeypatch, {"m": model}, questions_to("m", 200))
    assert outcome.reasons == []
    assert server.taken == 200


def test_question_that_is_always_refused_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Refusing(Busy(cap=8))
    model.takes, model.never = 1000, lambda text: text.endswith("7")
    outcome = simulated(monkeypatch, {"m": model}, questions_to("m", 100))
    assert len(outcome.reasons) == 10
    assert model.server.refused < 200


def test_server_that_recovers_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tides(SimulatedModel):
        def visit(self, question: Question, now: float) -> Verdict:
            self.server.cap = (2, 30, 0, 16)[int(now // 10) % 4]
            if self.server.cap == 0:
                self.server.refused += 1
                return Verdict(taken=False, headers={})
            return super().visit(question, now)

    model = Tides(Busy())
    outcome = simulated(monkeypatch, {"m": model}, questions_to("m", 1500))
    assert outcome.reasons == []
    assert model.server.refused < 600


def test_refused_call_is_no_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    class Often(SimulatedModel):
        """Refuses nine times, then fails four times."""

        async def ask(self, _question: Question) -> Answer:
            self.asked.append("")
            if len(self.asked) <= 9:
                raise ModelError("429", rate_limited=True, retry_after=30.0)
            if len(self.asked) <= 13:
                raise ModelError("500", transient=True)
            return Answer("yes")

    model = Often(Busy())
    outcome = simulated(monkeypatch, {"m": model}, questions_to("m", 1))
    assert outcome.reasons == []
    assert len(model.asked) == 14


def test_first_question_goes_alone_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = asked_of(monkeypatch, Busy(latency=2.0), 40)
    assert 2.1 <= outcome.seconds <= 1.06 * 2.0


@pytest.mark.parametrize(("seconds", "calls"), [(0.05, 1), (1.0, 64)])
def test_wrong_key_costs_few_calls(
    monkeypatch: pytest.MonkeyPatch, seconds: float, calls: int
) -> None:
    class Locked(SimulatedModel):
        async def ask(self, _question: Question) -> Answer:
            self.asked.append("")
            await asyncio.sleep(seconds)
            raise ModelError("401", fatal=True)

    model = Locked(Busy())
    outcome = simulated(monkeypatch, {"m": model}, questions_to("m", 500))
    assert outcome.reasons == ["m: 401"] * 500
    assert len(model.asked) == calls


# Through the SDKs and over HTTP, with small numbers.


@pytest.fixture(params=["anthropic", "openai"])
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    return str(request.param)


def replies_from(
    provider: str, script: Callable[[Asked], object], calls: int
) -> list[Reply]:
    async def open_by_name(name: str) -> Model:
        spec = ModelSpec(name, PROVIDERS[provider], name, base_url)
        return await spec.provider.open(spec, 120)

    with LoopbackServer(script) as server:  # type: ignore[arg-type]
        base_url = server.url if provider == "anthropic" else f"{server.url}/v1"
        engine = Engine(ModelFacts(open_by_name, lambda _: 120), concurrency=16)
        try:
            return engine.ask(questions_to("m", calls))
        finally:
            engine.close()


def test_nothing_is_lost_over_http(provider: str) -> None:
    server = Busy(cap=4, latency=0.02)
    replies = replies_from(provider, server.script("yes"), 60)
    assert all(isinstance(reply, Answer) for reply in replies)
    assert server.taken == 60


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            Fault("status", 429, message="pay first", error_type="insufficient_quota"),
            "pay first. Check the plan and the billing of your account",
        ),
        (
            Fault("status", 402, message="no money"),
            "no money. Check the plan and the billing of your account",
        ),
        (
            Fault("status", 400, message="Your credit balance is too low"),
            "too low. Check the plan and the billing of your account",
        ),
        (
            Fault("status", 429, retry_after="3600", message="come back"),
            "come back (it asks to wait for 60 min). Lower concurrency, or wait",
        ),
        (
            Fault("status", 503, retry_after="3600", message="come back"),
            "come back (it asks to wait for 60 min). Lower concurrency, or wait",
        ),
    ],
)
def test_what_no_waiting_changes_costs_one_call(
    monkeypatch: pytest.MonkeyPatch, provider: str, fault: Fault, said: str
) -> None:
    # A busy machine may take longer than it does
    monkeypatch.setattr(pace, "ALONE", 600.0)
    asked: list[Asked] = []

    def refuse(one: Asked) -> Fault:
        asked.append(one)
        return fault

    for reply in replies_from(provider, refuse, 10):
        assert not isinstance(reply, Answer)
        assert reply.reason.endswith(said)
    assert len(asked) == 1


def test_request_that_is_too_large_for_a_rate_limit_is_not_asked_again(
    provider: str,
) -> None:
    asked: list[Asked] = []

    def refuse(one: Asked) -> Fault:
        asked.append(one)
        return Fault(
            "status", 429, message="Request too large for m: limit 100, requested 200"
        )

    replies_from(provider, refuse, 5)
    assert len(asked) == 5
