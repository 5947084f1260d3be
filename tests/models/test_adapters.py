"""Both adapters through the real SDKs: answers, errors, and what may be odd about
them.
"""

import asyncio
import socket
from dataclasses import replace

import httpx2
import pytest

from pytest_upskill.errors import ModelError
from support.adapters import QUESTION, SECRET, ask, spec_of, trouble
from support.loopback import Asked, Fault, LoopbackServer, Reply, Stop

pytestmark = pytest.mark.usefixtures("keys")


def test_an_answer_has_its_text_and_stop_reason(provider: str) -> None:
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert (answer.text, answer.stop) == ("gate up", "end")
    [asked] = server.asked
    assert (asked.system, asked.question, asked.model) == (
        "Be brief.",
        "What is the gate's command?",
        "model-1",
    )
    assert "temperature" not in asked.body


@pytest.mark.parametrize("reason", [None, "", 5, ["stop"], {"why": "stop"}])
def test_a_reason_to_stop_that_is_no_text_is_the_end(
    provider: str, reason: object
) -> None:
    with LoopbackServer(lambda _: stopped_by(provider, reason, "gate up")) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert (answer.text, answer.stop) == ("gate up", "end")


def stopped_by(provider: str, reason: object, text: str) -> Reply:
    if provider == "anthropic":
        return Reply(text, raw={"stop_reason": reason})
    message = {"role": "assistant", "content": text}
    return Reply(
        raw={"choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    )


@pytest.mark.parametrize("stop", ["length", "refusal"])
def test_a_cut_off_or_refused_answer_says_so(provider: str, stop: Stop) -> None:
    reply = Reply("I won't", stop)
    with LoopbackServer(lambda _: reply) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert answer.stop == stop


def test_a_five_megabyte_answer_arrives_whole(provider: str) -> None:
    text = "x" * 5_000_000
    with LoopbackServer(lambda _: Reply(text)) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert answer.text == text


def test_a_question_of_megabytes_is_sent_without_a_warning(provider: str) -> None:
    text = "x" * 3_000_000
    with LoopbackServer(lambda asked: Reply(str(len(asked.question)))) as server:
        [answer] = ask(
            spec_of(provider, server.url), replace(QUESTION, messages=(("user", text),))
        )
    assert answer.text == "3000000"
    assert int(server.asked[0].headers["content-length"]) > 3_000_000


FOREIGN = "sk-" + "ant-api03-aB3dE5gH7jK9mN1pQ3sT"


@pytest.mark.parametrize(
    ("status", "fatal"), [(401, True), (403, True), (404, True), (400, False)]
)
def test_a_refused_request_says_what_to_do(
    provider: str, status: int, fatal: bool
) -> None:
    asked: list[Asked] = []

    def refuse(request: Asked) -> Fault:
        asked.append(request)
        return Fault(
            "status", status, message=f"no, {SECRET} is not good, nor {FOREIGN}"
        )

    error = trouble(provider, refuse)
    assert f"{status} from http://127.0.0.1" in error.problem
    assert "no, *** is not good, nor ***" in error.problem
    assert error.fatal is fatal
    assert bool(error.hint) is fatal
    assert len(asked) == 1


def test_a_wrong_name_shows_those_that_the_server_has() -> None:
    error = trouble("openai", lambda _: Fault("status", 404, message="no such model"))
    assert error.hint == "Check the model's name (model-1). It has loopback"
    assert error.fatal


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_an_outage_is_a_transient_error(provider: str, status: int) -> None:
    fault = Fault("status", status, retry_after="7", message="oops")
    error = trouble(provider, lambda _: fault)
    assert f"{status} from" in error.problem
    assert "oops" in error.problem
    assert error.transient
    assert not error.fatal
    assert error.rate_limited is (status in (429, 503, 529))
    assert error.retry_after == 7


@pytest.mark.parametrize("kind", ["garbage", "wrong_type", "html", "empty_body"])
def test_something_else_than_a_reply_is_an_error(provider: str, kind: str) -> None:
    error = trouble(provider, lambda _: Fault(kind))  # type: ignore[arg-type]
    assert "invalid reply from" in error.problem
    assert "address" in error.hint


@pytest.mark.parametrize("text", ["", "  \n"])
@pytest.mark.parametrize("stop", ["end", "length"])
def test_an_empty_reply_that_ended_is_an_answer(
    provider: str, text: str, stop: Stop
) -> None:
    with LoopbackServer(lambda _: Reply(text, stop)) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert (answer.text, answer.stop) == (text, stop)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", None), ("", "error"), ("half an ans", "error"), ("a", "abort")],
)
def test_a_reply_that_never_ended_is_no_answer(
    provider: str, text: str, reason: str | None
) -> None:
    error = trouble(provider, lambda _: stopped_by(provider, reason, text))
    assert "the reply never ended" in error.problem
    assert error.transient


def test_the_time_of_an_answer_is_left_to_the_engine(provider: str) -> None:
    spec = spec_of(provider, "http://127.0.0.1:9")

    async def limits() -> object:
        model = await spec.provider.open(spec, 5)
        await model.close()
        return model.client.timeout  # type: ignore[attr-defined]

    assert asyncio.run(limits()) == httpx2.Timeout(None, connect=5)


def test_a_reset_connection_is_reported_as_lost(provider: str) -> None:
    error = trouble(provider, lambda _: Fault("reset"))
    assert "lost the connection" in error.problem
    assert not error.unreachable


def test_an_address_without_a_server_is_unreachable(provider: str) -> None:
    with socket.socket() as deaf:  # nobody else gets its port, and it does not listen
        deaf.bind(("127.0.0.1", 0))
        url = f"http://user:{SECRET}@127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(ModelError) as caught:
            ask(spec_of(provider, url))
    assert caught.value.unreachable
    assert caught.value.paid is None
    assert "can't connect to http://127.0.0.1" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_question_is_redirected_to_another_server(
    provider: str, status: int
) -> None:
    with LoopbackServer(lambda _: Reply("from elsewhere")) as other:
        moved = {
            "location": (
                other.url.replace("//", "//user:word@") + "/v1/messages?token=abc"
            )
        }
        error = trouble(provider, lambda _: Fault("status", status, headers=moved))
    assert not other.asked
    assert error.fatal
    assert f"{status} from " in str(error)
    assert f"a redirect to {other.url}/v1/messages, which is not followed" in str(error)
    assert error.paid is None


def test_redirect_to_nowhere_is_an_error(provider: str) -> None:
    assert "a redirect to another address" in str(
        trouble(provider, lambda _: Fault("status", 302))
    )
