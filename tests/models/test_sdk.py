"""What the SDKs' aiohttp transport must do for us: proxies, passwords, many at once,
its faults.
"""

import asyncio
import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import aiohttp
import pytest

from pytest_upskill.engine import Engine, ModelFacts, pace
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model, ModelSpec, sdk
from pytest_upskill.models.model import ModelName
from pytest_upskill.models.providers import PROVIDERS, resolve
from pytest_upskill.models.sdk_errors import connection_error, not_a_reply
from pytest_upskill.trials.answer import Answer, NoAnswer
from pytest_upskill.trials.trial import Question
from support.adapters import answers_of, spec_of
from support.loopback import LoopbackServer, Reply

QUESTION = Question("m", "Be brief.", (("user", "What is the gate's command?"),), 64, 1)
MANY = 110  # more than aiohttp would have open by itself


@pytest.fixture(params=["anthropic", "openai"])
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return str(request.param)


def ask(spec: ModelSpec) -> Answer:
    return answers_of(spec, QUESTION)[0]


@contextmanager
def listener(*, reads: bool) -> Iterator[int]:
    """The port of a server that takes a connection, reads or not,
    and never says a word.
    """

    def visit() -> None:
        connection, _ = server.accept()
        with connection:
            if reads:
                connection.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=visit)
        if reads:
            thread.start()
        yield server.getsockname()[1]
        if reads:
            thread.join()


def test_a_password_in_the_address_is_sent_as_one(provider: str) -> None:
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        ask(spec_of(provider, server.url.replace("//", "//me:p%40ss@")))
    wanted = base64.b64encode(b"me:p@ss").decode()
    assert server.asked[0].headers["authorization"] == f"Basic {wanted}"


def test_the_proxy_of_the_environment_is_used(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        assert ask(spec_of(provider, "http://model.invalid")).text == "gate up"
    assert server.asked[0].headers["host"] == "model.invalid"


def test_what_the_environment_excepts_goes_past_the_proxy(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        assert ask(spec_of(provider, server.url)).text == "gate up"


def test_as_many_calls_as_the_engine_wants_are_in_flight(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine it takes a while to write so many requests.
    monkeypatch.setattr(sdk, "CONNECT_SECONDS", 120)

    async def run() -> None:
        spec = spec_of(provider, server.url)
        model = await spec.provider.open(spec, 120)
        questions = [replace(QUESTION, run=number) for number in range(MANY)]
        await asyncio.gather(*map(model.ask, questions))
        await model.close()

    with LoopbackServer(lambda _: Reply("gate up"), together=MANY) as server:
        asyncio.run(run())
    assert server.most_in_flight == MANY


def test_a_connection_closed_without_a_word_is_broken_and_not_late(
    provider: str,
) -> None:
    with listener(reads=True) as port, pytest.raises(ModelError) as caught:
        ask(spec_of(provider, f"http://127.0.0.1:{port}"))
    assert "lost the connection" in caught.value.problem
    assert caught.value.transient
    assert not caught.value.unreachable


def test_a_server_that_speaks_no_http_is_one_line(provider: str) -> None:
    def greet() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(ModelError) as caught:
            ask(spec_of(provider, f"http://127.0.0.1:{server.getsockname()[1]}"))
        thread.join()
    assert "lost the connection" in caught.value.problem
    assert "\n" not in str(caught.value)


def test_a_connection_that_is_not_made_in_time_is_tried_again(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk, "CONNECT_SECONDS", 0.05)
    monkeypatch.setattr(pace, "_FIRST_PAUSE", 0.01)

    async def open_by_name(_: str) -> Model:
        return await spec.provider.open(spec, 120)

    with listener(reads=False) as port:  # TCP connects, and TLS never does
        spec = spec_of(provider, f"https://127.0.0.1:{port}")
        engine = Engine(ModelFacts(open_by_name, lambda _: 60), concurrency=1)
        [reply] = engine.ask([QUESTION])
        engine.close()
    assert isinstance(reply, NoAnswer)
    assert f"can't connect to https://127.0.0.1:{port}" in reply.reason
    assert "(5 attempts)" in reply.reason


@pytest.mark.parametrize(
    ("url", "hint"),
    [(None, "Check your network"), ("https://127.0.0.1:9", "Is the server running")],
)
def test_only_servers_of_users_can_be_started(url: str | None, hint: str) -> None:
    spec = resolve(ModelName("haiku"), {})
    spec = replace(spec, base_url=url) if url else spec
    error = connection_error(aiohttp.ConnectionTimeoutError(), spec, ())
    assert error.hint.startswith(hint)


def test_plain_text_in_place_of_a_reply_is_quoted_without_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GENERIC_API_KEY", "key-of-the-server")
    spec = ModelSpec("m", PROVIDERS["generic"], "m", "http://me:open%20sesame@host/v1")
    coded = base64.b64encode(b"me:open sesame").decode()
    error = not_a_reply(spec, f"Basic {coded} open sesame key-of-the-server")
    assert error.problem == "invalid reply from http://host/v1: 'Basic *** *** ***'"
