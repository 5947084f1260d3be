"""Gemini, at Google's address for Chat Completions."""

from typing import Any

import pytest

from pytest_upskill.errors import ModelError
from pytest_upskill.models.model import ModelName
from pytest_upskill.models.providers import resolve
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.trial import Question
from support.adapters import answers_of
from support.loopback import Fault, LoopbackServer, Reply

QUESTION = Question("m", "Be brief.", (("user", "What is the gate's command?"),), 64, 1)
KEY = "key-of-google-0123456789"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)


def ask(server: LoopbackServer, name: str = "gemini:gemini-2.5-flash") -> Answer:
    spec = resolve(ModelName(name), {"GOOGLE_GEMINI_BASE_URL": server.url})
    return answers_of(spec, QUESTION)[0]


def trouble(fault: Fault) -> ModelError:
    with LoopbackServer(lambda _: fault) as server, pytest.raises(ModelError) as caught:
        ask(server)
    return caught.value


def test_it_is_asked_as_google_takes_it() -> None:
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        assert ask(server, "google.gemini-2.5-flash.low").text == "gate up"
    (asked,) = server.asked
    assert asked.protocol == "openai"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["reasoning_effort"] == "low"
    assert (asked.model, asked.body["max_tokens"]) == ("gemini-2.5-flash", 64)


def test_what_it_thought_is_paid_for() -> None:
    """Google tells it in the total alone."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 115}
    with LoopbackServer(lambda _: Reply("gate up", raw={"usage": usage})) as server:
        assert ask(server).usage.output == 105


@pytest.mark.parametrize(
    ("status", "details", "hint"),
    [
        (400, {"reason": "API_KEY_INVALID"}, "Check GEMINI_API_KEY or GOOGLE_API_KEY"),
        (403, {"reason": "SERVICE_DISABLED"}, "Check GEMINI_API_KEY or GOOGLE_API_KEY"),
        (404, {"a": 1}, "Check the model's name (gemini-2.5-flash)"),
        (
            429,
            {"violations": [{"quotaId": "RequestsPerDayPerModel"}]},
            "Check the plan",
        ),
    ],
)
def test_what_no_second_attempt_mends(
    status: int, details: dict[str, Any], hint: str
) -> None:
    error = trouble(
        Fault("status", status, message="Google says no.", details=(details,))
    )
    assert error.fatal
    assert "Google says no." in str(error)
    assert hint in str(error)


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [
        ("34s", 34),
        ("0.5s", 0.5),
        ("34", None),
        ("-1s", None),
        ("9" * 400 + "s", None),
        (7, None),
    ],
)
def test_how_long_to_wait_is_said_in_the_body(
    delay: object, seconds: float | None
) -> None:
    error = trouble(
        Fault("status", 429, details=({"violations": 1}, {"retryDelay": delay}))
    )
    assert error.rate_limited
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    "details", [1, [], "x", None, {"violations": [1, {"quotaId": []}]}]
)
def test_details_of_any_form(details: Any) -> None:
    assert trouble(Fault("status", 429, details=(details,))).rate_limited
