"""Requests that no honest agent makes. The door refuses them, tells of them, and lives on."""

import asyncio
import gzip
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.trials.task import Needs, Task
from support.doors import KEY, QUESTION, Opened, open_door, spec_of
from support.loopback import LoopbackServer, Reply

GOOD = {"model": "model-1", "max_tokens": 9, "messages": [{"role": "user", "content": "Go."}]}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)


async def raw(opened: Opened, data: bytes, patience: float = 20) -> tuple[int, bytes]:
    """Send bytes as they are; returns the status and all that comes back, 0 if nothing does."""
    port = int(opened.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(patience):
            writer.write(data)
            await writer.drain()
            reply = await reader.read(1_000_000)
            while reply and (more := await reader.read(1_000_000)):
                reply += more
    except (ConnectionError, TimeoutError):
        return 0, b""
    finally:
        writer.close()
    return (int(reply.split(b" ")[1]) if reply else 0), reply


def request(
    opened: Opened,
    target: str = "/v1/messages",
    body: Any = GOOD,
    *,
    method: str = "POST",
    token: str | None = "",
    host: str = "",
    more: str = "",
) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    host = host or opened.url.removeprefix("http://")
    head = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
    if token is not None:
        head += f"x-api-key: {token or opened.token}\r\n"
    head += f"{more}Content-Length: {len(data)}\r\n\r\n"
    return head.encode("utf-8", "surrogateescape") + data


def at_a_door(
    test: Callable[[Opened], Awaitable[None]], provider: str = "anthropic", **options: Any
) -> LoopbackServer:
    """Run a test at an open door, then see that the door still serves."""

    async def run(url: str) -> None:
        async with open_door(spec_of(provider, url), **options) as opened:
            await test(opened)
            if not opened.door.stop:
                path = "/v1/messages" if provider == "anthropic" else "/v1/chat/completions"
                status, _ = await raw(opened, request(opened, path))
                assert status == 200

    with LoopbackServer(lambda _: Reply("Done.")) as server:
        asyncio.run(run(server.url))
    return server


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_what_is_right_goes_through(provider: str) -> None:
    async def nothing(_: Opened) -> None: ...

    assert len(at_a_door(nothing, provider).asked) == 1


@pytest.mark.parametrize(
    ("token", "more", "finding"),
    [
        (None, "", "sent no token"),
        ("wrong", "", "sent a wrong token"),
        (KEY, "", "sent a wrong token"),
        (None, "Authorization: Basic ZG9vcg==\r\n", "sent no token"),
        (None, "Authorization: Bearer wrong\r\n", "sent a wrong token"),
        (None, "x-goog-api-key: wrong\r\n", "sent a wrong token"),
        ("t\udcffken", "", "sent a wrong token"),
    ],
)
def test_without_the_token_nobody_comes_in(token: str | None, more: str, finding: str) -> None:
    async def test(opened: Opened) -> None:
        status, reply = await raw(opened, request(opened, token=token, more=more))
        assert status == 401
        assert b"authentication_error" in reply
        assert opened.findings == (finding,)
        assert not opened.calls.questions

    at_a_door(test)


@pytest.mark.parametrize("name", ["x-api-key: ", "authorization: Bearer ", "x-goog-api-key: "])
def test_the_token_is_taken_where_protocols_have_it(name: str) -> None:
    async def test(opened: Opened) -> None:
        more = f"{name}{opened.token}\r\n"
        assert (await raw(opened, request(opened, token=None, more=more)))[0] == 200

    server = at_a_door(test)
    seen = server.asked[0].headers
    assert seen["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in seen
    assert "x-goog-api-key" not in seen


@pytest.mark.parametrize(
    "target",
    [
        *("/v1/files", "/v1/messages/batches", "/v1/models/other", "/v1/organizations/api_keys"),
        *("/v1/../v1/messages", "/v1//messages", "/v1/messages/", "/v1/%6dessages", "//messages"),
        *("/v1/messages/../files", "/v1/messages%2f..%2ffiles", "/", "/v1/chat/completions"),
    ],
)
def test_other_paths_are_refused(target: str) -> None:
    async def test(opened: Opened) -> None:
        status, reply = await raw(opened, request(opened, target))
        assert status == 404
        assert b"not_found_error" in reply or b"model_not_found" in reply
        assert opened.findings == (f"asked for POST {target}",)

    assert len(at_a_door(test).asked) == 1


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused(method: str) -> None:
    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, method=method)))[0] == 404
        assert opened.findings == (f"asked for {method} /v1/messages",)

    assert len(at_a_door(test).asked) == 1


@pytest.mark.parametrize("model", ["claude-opus-5-5", "", None, ["model-1"], "model-1:online"])
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_other_models_are_refused(provider: str, model: object) -> None:
    path = "/v1/messages" if provider == "anthropic" else "/v1/chat/completions"

    async def test(opened: Opened) -> None:
        for _ in range(2):
            status, reply = await raw(opened, request(opened, path, {**GOOD, "model": model}))
            assert status == 404
        body = json.loads(reply.partition(b"\r\n\r\n")[2])
        if provider == "anthropic":
            assert body["error"]["type"] == "not_found_error"
        else:
            assert body["error"]["code"] == "model_not_found"
        named = model if isinstance(model, str) and model else "no model"
        assert opened.findings == (f"asked for model {named} (2 times)",)

    assert len(at_a_door(test, provider).asked) == 1


@pytest.mark.parametrize(
    ("target", "method"),
    [
        ("http://evil.example/v1/messages", "POST"),
        ("https://api.anthropic.com/v1/messages", "POST"),
        ("evil.example:443", "CONNECT"),
        ("*", "OPTIONS"),
    ],
)
def test_it_is_no_proxy(target: str, method: str) -> None:
    async def test(opened: Opened) -> None:
        status, _ = await raw(opened, request(opened, target, b"", method=method))
        assert status in (400, 403)
        if status == 403:
            assert opened.findings == (f"asked for {target}",)

    assert len(at_a_door(test).asked) == 1


@pytest.mark.parametrize("host", ["evil.example", "api.anthropic.com", "127.0.0.1", "127.0.0.1:1"])
def test_the_host_must_be_its_own(host: str) -> None:
    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, host=host)))[0] == 421
        assert opened.findings == (f"asked for host {host}",)

    assert len(at_a_door(test).asked) == 1


def test_two_lengths_smuggle_nothing() -> None:
    """What follows the shorter reading would be a second request."""

    async def test(opened: Opened) -> None:
        inner = request(opened, "/v1/files", b"")
        for order in ((0, 1), (1, 0)):
            lines = [
                f"Content-Length: {len(inner) + 5}\r\n",
                "Transfer-Encoding: chunked\r\n",
            ]
            head = f"POST /v1/messages HTTP/1.1\r\nHost: {opened.url[7:]}\r\n"
            head += f"x-api-key: {opened.token}\r\n{lines[order[0]]}{lines[order[1]]}\r\n"
            status, reply = await raw(opened, head.encode() + b"0\r\n\r\n" + inner)
            assert status == 400
            assert reply.count(b"HTTP/1.") == 1
        for doubled in ("Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: -1\r\n"):
            head = f"POST /v1/messages HTTP/1.1\r\nHost: {opened.url[7:]}\r\n"
            head += f"x-api-key: {opened.token}\r\n{doubled}\r\n"
            assert (await raw(opened, head.encode() + b"0\r\n\r\n" + inner))[0] == 400
        assert opened.findings == ()

    assert len(at_a_door(test).asked) == 1


def test_headers_of_an_agent_go_no_further() -> None:
    async def test(opened: Opened) -> None:
        more = "Cookie: a=b\r\nX-Forwarded-For: 1.2.3.4\r\nOpenAI-Organization: other\r\n"
        more += "Proxy-Authorization: Basic eA==\r\nTE: trailers\r\nAnthropic-Beta: new\r\n"
        more += "Authorization: Bearer mine\r\nX-Anything: sk\r\nUser-Agent: cli/1\r\n"
        assert (await raw(opened, request(opened, more=more)))[0] == 200

    seen = at_a_door(test).asked[0].headers
    assert seen["anthropic-beta"] == "new"
    assert seen["user-agent"] == "cli/1"
    assert seen["authorization"] == f"Bearer {KEY}"
    for name in ("cookie", "x-forwarded-for", "openai-organization", "te", "x-anything"):
        assert name not in seen
    assert "proxy-authorization" not in seen


@pytest.mark.parametrize("value", ["a\rx-injected: 1", "a\nx-injected: 1", "a\0b", "a\r\n x: 1"])
def test_a_header_brings_no_other(value: str) -> None:
    async def test(opened: Opened) -> None:
        await raw(opened, request(opened, more=f"Anthropic-Beta: {value}\r\n"))

    for asked in at_a_door(test).asked:
        assert "x-injected" not in asked.headers


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\0" * 100,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 100_000 + b"\r\n",
        b"\r\n" * 1000,
    ],
)
def test_garbage_is_no_request(garbage: bytes) -> None:
    async def test(opened: Opened) -> None:
        status, _ = await raw(opened, garbage, 0.3)
        assert status in (0, 400, 421)

    assert len(at_a_door(test).asked) == 1


def _deep(levels: int) -> bytes:
    """As deep as can still be read, but not walked through."""
    said = b'{"type": "image", "source": ' * levels + b"1" + b"}" * levels
    return b'{"model": "model-1", "messages": [{"role": "user", "content": [%s]}]}' % said


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"no JSON", 400),
        (b"[]", 400),
        (b"[" * 100_000, 400),
        (b"\xff\xfe", 400),
        (b'{"model": "model-1"}', 400),
        (b'{"model": "model-1", "messages": 5}', 400),
        # The server's own refusals: what it makes of them is its own business.
        (b'{"model": "model-1", "messages": [1, null, "a", {"content": {"a": 1}}]}', -400),
        (b'{"model": "model-1", "messages": [{"role": [], "content": [[], {"type": {}}]}]}', -400),
        (b'{"model": "model-1", "messages": [], "tools": [1, {"type": 5}], "system": 7}', 200),
        (b'{"a": [' + b"[]," * 600_000 + b"[]]}", 413),
        (_deep(900), 400),
    ],
)
def test_odd_bodies(body: bytes, status: int) -> None:
    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, body=body)))[0] == abs(status)
        assert bool(opened.findings) == (status != 200)

    at_a_door(test)


def test_a_request_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """As sent, and unpacked."""
    monkeypatch.setattr("pytest_upskill.agents.gateway.door._MOST_BYTES", 100_000)

    async def test(opened: Opened) -> None:
        large = {**GOOD, "system": "a" * 200_000}
        packed = gzip.compress(json.dumps(large).encode())
        assert (await raw(opened, request(opened, body=large)))[0] in (0, 413)
        more = "Content-Encoding: gzip\r\n"
        assert (await raw(opened, request(opened, body=packed, more=more)))[0] == 413
        small = gzip.compress(json.dumps(GOOD).encode())
        assert (await raw(opened, request(opened, body=small, more=more)))[0] == 200

    at_a_door(test)


@pytest.mark.parametrize(
    ("encoding", "status", "finding"),
    [
        ("identity", 200, ()),
        ("deflate", 400, ("sent a body that can't be read",)),
        ("zstd", 415, ("sent a body in zstd",)),
        ("br", 415, ("sent a body in br",)),
        ("gzip, zstd", 415, ("sent a body in gzip, zstd",)),
    ],
)
def test_a_body_in_another_encoding_is_refused_with_the_reason(
    encoding: str, status: int, finding: tuple[str, ...]
) -> None:
    async def test(opened: Opened) -> None:
        more = f"Content-Encoding: {encoding}\r\n"
        answered, text = await raw(opened, request(opened, body=GOOD, more=more))
        assert answered == status
        assert status != 415 or f"a body in {encoding} can't be read here" in text.decode()
        assert opened.findings == finding

    at_a_door(test)


def test_a_thousand_connections_take_few_descriptors() -> None:
    """Other doors, and the engine, need some too."""

    async def run(url: str) -> None:
        spec = spec_of("anthropic", url)
        async with open_door(spec) as flooded, open_door(spec) as other:
            port = int(flooded.url.rpartition(":")[2])
            open_ones = list[asyncio.StreamWriter]()
            ended = list[asyncio.Task[bytes]]()
            for _ in range(300):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"POST /v1/messages HTTP/1.1\r\nX-Slow: ")
                open_ones.append(writer)
                ended.append(asyncio.ensure_future(reader.read()))
            async with asyncio.timeout(20):
                while sum(one.done() for one in ended) < 300 - 64:
                    await asyncio.sleep(0.01)
            assert (await raw(other, request(other)))[0] == 200
            for writer in open_ones:
                writer.transport.abort()
            await asyncio.gather(*ended, return_exceptions=True)
            async with asyncio.timeout(20):
                while (await raw(flooded, request(flooded)))[0] != 200:
                    await asyncio.sleep(0.01)

    with LoopbackServer(lambda _: Reply("Done.")) as server:
        asyncio.run(run(server.url))


def test_a_provider_does_nothing_else_for_an_agent() -> None:
    """It would search, fetch and run code with a network that the agent does not have."""
    reaching = [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "code_execution_20250825", "name": "code"},
    ]
    own = {"name": "bash", "description": "", "input_schema": {"type": "object"}}
    body = {**GOOD, "tools": [*reaching, own], "mcp_servers": [{"url": "https://evil.example"}]}

    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, body=body)))[0] == 200
        assert opened.findings == (
            "asked the provider for mcp_servers, which was left out",
            "asked the provider for web_search_20250305, which was left out",
            "asked the provider for code_execution_20250825, which was left out",
        )

    seen = at_a_door(test).asked[0].body
    assert seen["tools"] == [own]
    assert "mcp_servers" not in seen


def test_with_a_network_it_may() -> None:
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    source = {"type": "url", "url": "https://example.com/a.png"}
    said = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    task = Task("cli", needs=Needs(network=True))

    async def run(url: str) -> None:
        question = QUESTION.__class__(**{**_fields(), "task": task})
        async with open_door(spec_of("anthropic", url), question=question) as opened:
            body = {**GOOD, "tools": tools, "messages": said}
            assert (await raw(opened, request(opened, body=body)))[0] == 200
            assert opened.findings == ()

    with LoopbackServer(lambda _: Reply("Done.")) as server:
        asyncio.run(run(server.url))
    assert server.asked[0].body["tools"] == tools


def _fields() -> dict[str, Any]:
    names = ("model", "system", "messages", "max_output", "run")
    return {name: getattr(QUESTION, name) for name in names}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/v1/messages",
            {"type": "image", "source": {"type": "url", "url": "https://evil.example/?q=1"}},
        ),
        (
            "/v1/chat/completions",
            {"type": "image_url", "image_url": {"url": "https://evil.example/?q=1"}},
        ),
        ("/v1/responses", {"type": "input_image", "image_url": "https://evil.example/?q=1"}),
        ("/v1/responses", {"type": "input_file", "file_url": "https://evil.example/?q=1"}),
    ],
)
def test_a_provider_fetches_nothing_for_an_agent(path: str, body: dict[str, Any]) -> None:
    said = [{"role": "user", "content": [{"type": "text", "text": "Look."}, body]}]

    async def test(opened: Opened) -> None:
        whole = {**GOOD, "messages": said, "input": said}
        assert (await raw(opened, request(opened, path, whole)))[0] == 400
        assert opened.findings == ("asked the provider to fetch https://evil.example/?q=1",)

    assert len(at_a_door(test, "generic").asked) == 1


@pytest.mark.parametrize("before", [1, 70])
def test_the_token_is_in_no_finding(before: int) -> None:
    async def test(opened: Opened) -> None:
        await raw(opened, request(opened, f"/{'a' * before}/{opened.token}"))
        model = f"{'m' * before} {opened.token}"
        await raw(opened, request(opened, body={**GOOD, "model": model}))
        assert len(opened.findings) == 2
        assert opened.token[:9] not in str(opened.findings)

    at_a_door(test)


def test_a_key_in_a_request_goes_nowhere() -> None:
    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, body={**GOOD, "system": KEY})))[0] == 200

    assert KEY not in json.dumps(at_a_door(test).asked[0].body)


def test_no_header_of_a_server_reaches_the_agent_but_a_few() -> None:
    headers = {"x-key-echo": KEY, "set-cookie": "a=b", "request-id": f"r-{KEY}"}

    async def run(url: str) -> None:
        async with open_door(spec_of("anthropic", url)) as opened:
            status, reply = await raw(opened, request(opened))
            assert status == 200
            assert KEY.encode() not in reply
            assert b"cookie" not in reply.lower()
            assert b"request-id: r-***" in reply.lower()

    with LoopbackServer(lambda _: Reply(f"Your key is {KEY}.", headers=headers)) as server:
        asyncio.run(run(server.url))


def test_beyond_its_turns_nothing_is_asked() -> None:
    async def test(opened: Opened) -> None:
        for number in range(4):
            status, reply = await raw(opened, request(opened))
            assert status == (200 if number < 2 else 400)
        assert b"limit of this trial" in reply
        assert b"x-should-retry: false" in reply.lower()
        assert opened.door.stop == "max_turns"

    server = at_a_door(test, question=replace(QUESTION, task=Task("cli", max_turns=2)))
    assert len(server.asked) == 2


def test_calls_beside_the_conversation_have_an_end_too() -> None:
    tools = [{"name": "bash", "description": "", "input_schema": {"type": "object"}}]

    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, body={**GOOD, "tools": tools})))[0] == 200
        statuses = [(await raw(opened, request(opened)))[0] for _ in range(25)]
        assert statuses == [200] * 19 + [400] * 6
        assert opened.door.stop == "max_turns"

    at_a_door(test, question=replace(QUESTION, task=Task("cli", max_turns=1)))


@pytest.mark.parametrize(
    ("path", "choice"),
    [
        ("/v1/chat/completions", {"type": "function", "function": {"name": "title"}}),
        ("/v1/responses", {"type": "function", "name": "title"}),
        ("/v1/messages", {"type": "tool", "name": "title"}),
    ],
)
def test_a_tool_that_must_be_called_begins_no_conversation(path: str, choice: Any) -> None:
    """As Grok asks for the title of its session."""
    tools = [{"name": "bash", "input_schema": {"type": "object"}}]
    titled = {**GOOD, "input": "Title.", "tools": [{"name": "title"}], "tool_choice": choice}

    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, path, titled)))[0] == 200
        body = {**GOOD, "input": "Go.", "tools": tools, "tool_choice": {"type": "auto"}}
        assert (await raw(opened, request(opened, path, body)))[0] == 200
        answer = opened.answer()
        assert answer.activity
        assert answer.activity.turns == 1
        assert answer.text == "Done."

    assert at_a_door(test, "generic").asked[0].body["tool_choice"] == choice


def test_a_connection_that_comes_while_the_door_closes_is_closed_too() -> None:
    async def run() -> bytes:
        async with open_door(spec_of("anthropic", "http://127.0.0.1:9")) as opened:
            port = int(opened.url.rpartition(":")[2])
            client = socket.create_connection(("127.0.0.1", port))
            await asyncio.sleep(0)  # it is accepted,
            await asyncio.sleep(0)  # and gets its protocol in the next step
        client.settimeout(10)
        with client, suppress(ConnectionResetError):
            return await asyncio.to_thread(client.recv, 1)
        return b""

    assert asyncio.run(run()) == b""
