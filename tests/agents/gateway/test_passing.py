"""What goes through the gateway, with the real SDKs on both sides."""

import asyncio
import gzip
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from pytest_upskill.agents.gateway.forwarding import why_no_path
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.providers import PROVIDERS
from pytest_upskill.trials.answer import Usage
from support.endpoints import KEY, Opened, open_endpoint, spec_of
from support.loopback import Asked, Fault, LoopbackServer, Reply

Ask = Callable[[Opened, bool], Any]
CALLING = Reply(
    "Let me look.", calls=(("bash", {"command": "ls"}),), thinking="Hm.", cache_read=3
)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)


def claude(opened: Opened) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(
        base_url=opened.url, api_key=opened.token, max_retries=0
    )


def gpt(opened: Opened) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{opened.url}/v1", api_key=opened.token, max_retries=0
    )


async def messages(opened: Opened, streamed: bool, **more: Any) -> str:
    body: Any = {"model": "model-1", "max_tokens": 77, "system": "Be brief."}
    body |= {"messages": [{"role": "user", "content": "Open the gate."}], **more}
    async with claude(opened) as client:
        if not streamed:
            message = await client.messages.create(**body)
        else:
            async with client.messages.stream(**body) as stream:
                message = await stream.get_final_message()
    return "".join(block.text for block in message.content if block.type == "text")


async def completions(opened: Opened, streamed: bool, **more: Any) -> str:
    said = [("system", "Be brief."), ("user", "Open the gate.")]
    body: Any = {"model": "model-1", "max_completion_tokens": 77}
    body |= {
        "messages": [{"role": role, "content": text} for role, text in said],
        **more,
    }
    async with gpt(opened) as client:
        if not streamed:
            completion = await client.chat.completions.create(**body)
            return completion.choices[0].message.content or ""
        parts = [
            part
            async for part in await client.chat.completions.create(**body, stream=True)
        ]
    # Nothing that this client did not ask for
    assert all(part.choices for part in parts)
    return "".join(part.choices[0].delta.content or "" for part in parts)


async def responses(opened: Opened, streamed: bool, **more: Any) -> str:
    body: Any = {
        "model": "model-1",
        "max_output_tokens": 77,
        "instructions": "Be brief.",
    }
    body |= {"input": "Open the gate.", **more}
    async with gpt(opened) as client:
        if not streamed:
            response: str = (await client.responses.create(**body)).output_text
            return response
        async with client.responses.stream(**body) as stream:
            return (await stream.get_final_response()).output_text


WAYS = {"messages": ("anthropic", messages), "chat": ("openai", completions)}
WAYS["responses"] = ("openai", responses)
each = pytest.mark.parametrize("way", list(WAYS))
both = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])


@each
@both
def test_a_reply_goes_through_and_is_kept(way: str, streamed: bool) -> None:
    provider, ask = WAYS[way]

    async def run(url: str) -> None:
        async with open_endpoint(spec_of(provider, url)) as opened:
            assert await ask(opened, streamed) == "Let me look."
            answer = opened.answer()
            question = opened.calls.questions[0]
        told = [(turn.kind, turn.text) for turn in answer.transcript]
        assert told == [
            ("system", "Be brief."),
            ("user", "Open the gate."),
            ("thinking", "Hm."),
            ("assistant", "Let me look."),
            ("call", '{"command": "ls"}'),
        ]
        assert answer.transcript[-1].tool == "bash"
        assert answer.usage == Usage(13, 5, 3)
        assert answer.transcript[2].output_tokens == 5
        assert question.max_output == 77
        assert (question.model, question.system) == ("m", "Be brief.")
        assert question.messages == (("user", "Open the gate."),)

    with LoopbackServer(lambda _: CALLING) as server:
        asyncio.run(run(server.url))
    seen = server.asked[0]
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.headers["accept-encoding"] == "identity"
    assert "trialkey-" not in str(seen)


@each
def test_a_stream_is_passed_on_as_it_comes(way: str) -> None:
    """The server sends its second half only once the client has seen the first."""
    provider, _ = WAYS[way]
    gate = threading.Event()

    async def first_of(opened: Opened) -> list[str]:
        kinds = list[str]()
        stream: Any
        async with claude(opened) as one, gpt(opened) as other:
            if way == "messages":
                stream = await one.messages.create(
                    model="m",
                    max_tokens=9,
                    messages=[{"role": "user", "content": "Go."}],
                    stream=True,
                )
            elif way == "chat":
                stream = await other.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": "Go."}],
                    stream=True,
                )
            else:
                stream = await other.responses.create(
                    model="m", input="Go.", stream=True
                )
            async for event in stream:
                gate.set()
                kinds.append(getattr(event, "type", "chunk"))
        return kinds

    async def run(url: str) -> None:
        async with open_endpoint(spec_of(provider, url)) as opened, asyncio.timeout(60):
            assert len(await first_of(opened)) > 3
            assert opened.answer().text == "Slowly, slowly."

    with LoopbackServer(lambda _: Reply("Slowly, slowly.", gate=gate)) as server:
        asyncio.run(run(server.url))
    assert server.asked[0].model == "model-1"  # by its name, as the run calls it


@each
@pytest.mark.parametrize(
    ("streamed", "kind"),
    [
        *((False, kind) for kind in ("status", "reset", "garbage")),
        *((True, kind) for kind in ("status", "error_first", "garbage")),
    ],
)
def test_what_failed_before_its_first_byte_is_asked_again(
    way: str, streamed: bool, kind: Any
) -> None:
    provider, ask = WAYS[way]

    def script(asked: Asked) -> Reply | Fault:
        return Fault(kind, 529) if asked.attempt < 3 else Reply("At last.")

    async def run(url: str) -> None:
        async with open_endpoint(spec_of(provider, url), attempts=3) as opened:
            assert await ask(opened, streamed) == "At last."
            assert len(opened.calls.questions) == 1
            assert len(opened.calls.errors) == 2
            assert opened.answer().text == "At last."
            assert opened.endpoint.no_answer == ""

    with LoopbackServer(script) as server:
        asyncio.run(run(server.url))
    assert len(server.asked) == 3


@each
@pytest.mark.parametrize("kind", ["reset", "cut", "error_later"])
def test_a_stream_that_breaks_off_breaks_off_for_the_agent(way: str, kind: Any) -> None:
    provider, ask = WAYS[way]

    async def run(url: str) -> None:
        async with open_endpoint(spec_of(provider, url), attempts=3) as opened:
            errors = (
                anthropic.APIError,
                openai.APIError,
                httpx2.HTTPError,
                RuntimeError,
            )
            with pytest.raises(errors) as caught:
                await ask(opened, streamed=True)
            if kind == "error_later":
                # OpenAI's SDK makes no exception of an error in Responses.
                assert ("told to fail" in str(caught.value)) == (way != "responses")
            answer = opened.answer()
            assert opened.endpoint.no_answer
        assert len(opened.calls.errors) == 1
        assert answer.usage.output is None
        assert "never seen whole" not in answer.text

    with LoopbackServer(lambda _: Fault(kind)) as server:
        asyncio.run(run(server.url))
    assert len(server.asked) == 1


@each
def test_an_agent_that_hangs_up_ends_the_call(way: str) -> None:
    provider, ask = WAYS[way]

    async def run(server: LoopbackServer) -> None:
        async with open_endpoint(spec_of(provider, server.url), attempts=3) as opened:
            asking = asyncio.ensure_future(ask(opened, streamed=True))
            async with asyncio.timeout(60):
                while not server.asked:
                    await asyncio.sleep(0.01)
                asking.cancel()
                while not opened.calls.errors:
                    await asyncio.sleep(0.01)
        assert "hung up" in str(opened.calls.errors[0])
        assert opened.calls.errors[0].paid == ()

    with LoopbackServer(lambda _: Fault("stall")) as server:
        asyncio.run(run(server))
    assert len(server.asked) == 1


@each
def test_an_error_that_an_agent_can_mend_is_passed_on(way: str) -> None:
    provider, ask = WAYS[way]
    sdk = anthropic if provider == "anthropic" else openai
    fault = Fault(
        "status",
        400,
        message=f"prompt is too long ({KEY})",
        error_type="invalid_request_error",
    )

    async def run(url: str) -> None:
        async with open_endpoint(spec_of(provider, url)) as opened:
            with pytest.raises(
                sdk.BadRequestError, match="prompt is too long"
            ) as caught:
                await ask(opened, streamed=False)
            assert KEY not in caught.value.response.text
            assert "prompt is too long" in opened.endpoint.no_answer
            assert KEY not in opened.endpoint.no_answer

    with LoopbackServer(lambda _: fault) as server:
        asyncio.run(run(server.url))


@each
@pytest.mark.parametrize("status", [401, 429, 529])
def test_other_errors_are_told_so_that_agents_do_not_ask_again(
    way: str, status: int
) -> None:
    provider, ask = WAYS[way]
    sdk = anthropic if provider == "anthropic" else openai
    fault = Fault("status", status, message=f"no: {KEY}")

    async def run(url: str) -> None:
        async with open_endpoint(spec_of(provider, url)) as opened:
            with pytest.raises(sdk.BadRequestError, match="gave no answer") as caught:
                await ask(opened, streamed=False)
            assert KEY not in caught.value.response.text
            assert caught.value.response.headers["x-should-retry"] == "false"

    with LoopbackServer(lambda _: fault) as server:
        asyncio.run(run(server.url))


def test_tokens_are_estimated_without_the_server() -> None:
    async def run(url: str) -> None:
        async with (
            open_endpoint(spec_of("anthropic", url)) as opened,
            claude(opened) as client,
        ):
            said: Any = {
                "model": "m",
                "messages": [{"role": "user", "content": "a" * 400}],
            }
            assert (
                100 <= (await client.messages.count_tokens(**said)).input_tokens < 200
            )

    with LoopbackServer(lambda _: Reply("Done.")) as server:
        asyncio.run(run(server.url))
    assert not server.asked


def test_the_models_are_the_one_of_the_trial() -> None:
    async def run(url: str) -> None:
        async with (
            open_endpoint(spec_of("openai", url)) as opened,
            gpt(opened) as client,
        ):
            assert [one.id async for one in client.models.list()] == ["model-1"]
            assert (await client.models.retrieve("model-1")).id == "model-1"
        async with (
            open_endpoint(spec_of("anthropic", url)) as opened,
            claude(opened) as other,
        ):
            assert [one.id async for one in other.models.list()] == ["model-1"]

    with LoopbackServer(lambda _: Reply("Done.")) as server:
        asyncio.run(run(server.url))
    assert not server.asked


@pytest.mark.parametrize("way", ["chat", "responses"])
def test_the_effort_of_the_models_name_is_asked_for(way: str) -> None:
    _, ask = WAYS[way]

    async def run(url: str) -> None:
        async with open_endpoint(spec_of("openai", url, effort="low")) as opened:
            await ask(opened, streamed=False)

    with LoopbackServer(lambda _: Reply("Done.")) as server:
        asyncio.run(run(server.url))
    body = server.asked[0].body
    assert body.get("reasoning_effort", body.get("reasoning")) in (
        "low",
        {"effort": "low"},
    )


def test_a_server_that_tells_no_usage_of_streams() -> None:
    """It refuses the wish for it, so it is asked without."""

    def script(asked: Asked) -> Reply | Fault:
        if "stream_options" in asked.body:
            return Fault("status", 400, message="unknown field stream_options")
        return Reply("Done.")

    async def run(url: str) -> None:
        async with open_endpoint(spec_of("openai", url)) as opened:
            assert await completions(opened, streamed=True) == "Done."
            assert opened.answer().usage.output is None

    with LoopbackServer(script) as server:
        asyncio.run(run(server.url))
    assert ["stream_options" in asked.body for asked in server.asked] == [True, False]


def test_a_reply_that_is_packed_is_unpacked() -> None:
    """Though it was asked not to be."""
    packed = gzip.compress(
        b'{"content": [{"type": "text", "text": "Done."}], "usage": {}}'
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding:"
            " gzip\r\n"
        )
        writer.write(f"{head}content-length: {len(packed)}\r\n\r\n".encode() + packed)
        await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            async with open_endpoint(
                spec_of("anthropic", f"http://127.0.0.1:{port}")
            ) as opened:
                assert await messages(opened, streamed=False) == "Done."

    asyncio.run(run())


@pytest.mark.parametrize("by", ["netrc", "proxy"])
def test_what_the_environment_says_of_servers(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A password for the server beside the key is no problem, and a proxy is asked."""
    host = "127.0.0.1" if by == "netrc" else "models.invalid"
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine {host} login me password {KEY}-2\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))

    async def run(url: str) -> None:
        async with open_endpoint(spec_of("anthropic", url)) as opened:
            assert await messages(opened, streamed=False) == "Done."

    with LoopbackServer(lambda _: Reply("Done.")) as server:
        if by == "proxy":
            monkeypatch.setenv("http_proxy", server.url)
            monkeypatch.setenv("no_proxy", "127.0.0.1")
        asyncio.run(run(server.url if by == "netrc" else f"http://{host}"))
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


GENERIC = ModelSpec("mine", PROVIDERS["generic"], "mine-7b", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize("status", [404, 405, 501])
@pytest.mark.parametrize(
    ("path", "version"), [("/messages", "0.14.0"), ("/responses", "0.13.3")]
)
def test_an_old_server_is_told_with_versions_that_do(
    status: int, path: str, version: str
) -> None:
    told = why_no_path(status, path, '{"detail":"Not Found"}', GENERIC)
    assert f"(/v1{path})" in told
    assert f"Ollama {version}" in told


def test_any_other_refusal_means_what_it_says() -> None:
    theirs = ModelSpec("x", PROVIDERS["openai"], "x", "https://api.openai.com/v1")
    assert not why_no_path(404, "/messages", "model 'mine-7b' not found", GENERIC)
    assert not why_no_path(404, "/chat/completions", "Not Found", GENERIC)
    assert not why_no_path(500, "/messages", "Not Found", GENERIC)
    assert not why_no_path(404, "/responses", "Not Found", theirs)
    assert why_no_path(
        404, "/responses", "Not Found", spec_of("openai", "http://127.0.0.1:9")
    )
