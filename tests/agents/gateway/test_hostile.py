"""Requests that no honest agent makes. The gateway refuses them, reports them,
and lives on.
"""

import asyncio
import gzip
import json
import socket
from contextlib import suppress

import pytest

from support.endpoints import (
    GOOD,
    KEY,
    Opened,
    at_endpoint,
    open_endpoint,
    raw,
    request,
    spec_of,
)
from support.loopback import LoopbackServer, Reply


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_what_is_right_goes_through(provider: str) -> None:
    async def nothing(_: Opened) -> None: ...

    assert len(at_endpoint(nothing, provider).asked) == 1


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
def test_without_the_token_nobody_comes_in(
    token: str | None, more: str, finding: str
) -> None:
    async def test(opened: Opened) -> None:
        status, reply = await raw(opened, request(opened, token=token, more=more))
        assert status == 401
        assert b"authentication_error" in reply
        assert opened.findings == (finding,)
        assert not opened.calls.questions

    at_endpoint(test)


@pytest.mark.parametrize(
    "name", ["x-api-key: ", "authorization: Bearer ", "x-goog-api-key: "]
)
def test_the_token_is_taken_where_protocols_have_it(name: str) -> None:
    async def test(opened: Opened) -> None:
        more = f"{name}{opened.token}\r\n"
        assert (await raw(opened, request(opened, token=None, more=more)))[0] == 200

    server = at_endpoint(test)
    seen = server.asked[0].headers
    assert seen["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in seen
    assert "x-goog-api-key" not in seen


@pytest.mark.parametrize(
    "target",
    [
        *(
            "/v1/files",
            "/v1/messages/batches",
            "/v1/models/other",
            "/v1/organizations/api_keys",
        ),
        *(
            "/v1/../v1/messages",
            "/v1//messages",
            "/v1/messages/",
            "/v1/%6dessages",
            "//messages",
        ),
        *(
            "/v1/messages/../files",
            "/v1/messages%2f..%2ffiles",
            "/",
            "/v1/chat/completions",
        ),
    ],
)
def test_other_paths_are_refused(target: str) -> None:
    async def test(opened: Opened) -> None:
        status, reply = await raw(opened, request(opened, target))
        assert status == 404
        assert b"not_found_error" in reply or b"model_not_found" in reply
        assert opened.findings == (f"asked for POST {target}",)

    assert len(at_endpoint(test).asked) == 1


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused(method: str) -> None:
    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, method=method)))[0] == 404
        assert opened.findings == (f"asked for {method} /v1/messages",)

    assert len(at_endpoint(test).asked) == 1


@pytest.mark.parametrize(
    "model", ["claude-opus-5-5", "", None, ["model-1"], "model-1:online"]
)
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_other_models_are_refused(provider: str, model: object) -> None:
    path = "/v1/messages" if provider == "anthropic" else "/v1/chat/completions"

    async def test(opened: Opened) -> None:
        for _ in range(2):
            status, reply = await raw(
                opened, request(opened, path, {**GOOD, "model": model})
            )
            assert status == 404
        body = json.loads(reply.partition(b"\r\n\r\n")[2])
        if provider == "anthropic":
            assert body["error"]["type"] == "not_found_error"
        else:
            assert body["error"]["code"] == "model_not_found"
        named = model if isinstance(model, str) and model else "no model"
        assert opened.findings == (f"asked for model {named} (2 times)",)

    assert len(at_endpoint(test, provider).asked) == 1


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
        assert status in (400, 404)
        if status == 404:
            assert opened.findings == (f"asked for {method} {target}",)

    assert len(at_endpoint(test).asked) == 1


@pytest.mark.parametrize(
    "host", ["evil.example", "api.anthropic.com", "127.0.0.1", "127.0.0.1:1"]
)
def test_the_host_must_be_its_own(host: str) -> None:
    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, host=host)))[0] == 421
        assert opened.findings == (f"asked for host {host}",)

    assert len(at_endpoint(test).asked) == 1


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
            head += (
                f"x-api-key: {opened.token}\r\n{lines[order[0]]}{lines[order[1]]}\r\n"
            )
            status, reply = await raw(opened, head.encode() + b"0\r\n\r\n" + inner)
            assert status == 400
            assert reply.count(b"HTTP/1.") == 1
        for doubled in (
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: -1\r\n",
        ):
            head = f"POST /v1/messages HTTP/1.1\r\nHost: {opened.url[7:]}\r\n"
            head += f"x-api-key: {opened.token}\r\n{doubled}\r\n"
            assert (await raw(opened, head.encode() + b"0\r\n\r\n" + inner))[0] == 400
        assert opened.findings == ()

    assert len(at_endpoint(test).asked) == 1


def test_headers_of_an_agent_go_no_further() -> None:
    async def test(opened: Opened) -> None:
        more = (
            "Cookie: a=b\r\nX-Forwarded-For: 1.2.3.4\r\nOpenAI-Organization: other\r\n"
        )
        more += "Proxy-Authorization: Basic eA==\r\nTE: trailers\r\n"
        more += "Anthropic-Beta: effort-2025-11-24\r\n"
        more += "Authorization: Bearer mine\r\nX-Anything: sk\r\nUser-Agent: cli/1\r\n"
        assert (await raw(opened, request(opened, more=more)))[0] == 200

    seen = at_endpoint(test).asked[0].headers
    assert seen["anthropic-beta"] == "effort-2025-11-24"
    assert seen["user-agent"] == "cli/1"
    assert seen["authorization"] == f"Bearer {KEY}"
    for name in (
        "cookie",
        "x-forwarded-for",
        "openai-organization",
        "te",
        "x-anything",
    ):
        assert name not in seen
    assert "proxy-authorization" not in seen


@pytest.mark.parametrize(
    "value", ["a\rx-injected: 1", "a\nx-injected: 1", "a\0b", "a\r\n x: 1"]
)
def test_a_header_brings_no_other(value: str) -> None:
    async def test(opened: Opened) -> None:
        await raw(opened, request(opened, more=f"Anthropic-Beta: {value}\r\n"))

    for asked in at_endpoint(test).asked:
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

    assert len(at_endpoint(test).asked) == 1


def _deep(levels: int) -> bytes:
    """As deep as can still be read, but not walked through."""
    said = b'{"type": "image", "source": ' * levels + b"1" + b"}" * levels
    return (
        b'{"model": "model-1", "messages": [{"role": "user", "content": [%s]}]}' % said
    )


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
        (
            b'{"model": "model-1", "messages": [1, null, "a", {"content": {"a": 1}}]}',
            400,
        ),
        (
            (
                b'{"model": "model-1", "messages": [{"role": [], "content": [[],'
                b' {"type": {}}]}]}'
            ),
            400,
        ),
        (b'{"model": "model-1", "messages": [], "system": 7}', 400),
        (b'{"model": "model-1", "messages": [], "stream": null}', 200),
        (b'{"a": [' + b"[]," * 600_000 + b"[]]}", 413),
        (_deep(900), 400),
    ],
)
def test_odd_bodies(body: bytes, status: int) -> None:
    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, body=body)))[0] == status
        assert bool(opened.findings) == (status != 200)

    at_endpoint(test)


def test_a_request_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """As sent, and unpacked."""
    monkeypatch.setattr("pytest_upskill.agents.gateway.endpoint._MOST_BYTES", 100_000)

    async def test(opened: Opened) -> None:
        large = {**GOOD, "system": "a" * 200_000}
        packed = gzip.compress(json.dumps(large).encode())
        assert (await raw(opened, request(opened, body=large)))[0] in (0, 413)
        more = "Content-Encoding: gzip\r\n"
        assert (await raw(opened, request(opened, body=packed, more=more)))[0] == 413
        small = gzip.compress(json.dumps(GOOD).encode())
        assert (await raw(opened, request(opened, body=small, more=more)))[0] == 200

    at_endpoint(test)


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
        assert (
            status != 415 or f"a body in {encoding} can't be read here" in text.decode()
        )
        assert opened.findings == finding

    at_endpoint(test)


def test_a_thousand_connections_take_few_descriptors() -> None:
    """Other trials, and the engine, need some too."""

    async def run(url: str) -> None:
        spec = spec_of("anthropic", url)
        async with open_endpoint(spec) as flooded, open_endpoint(spec) as other:
            port = int(flooded.url.rpartition(":")[2])
            open_ones = list[asyncio.StreamWriter]()
            ended = list[asyncio.Task[bytes]]()
            for _ in range(300):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"POST /v1/messages HTTP/1.1\r\nX-Slow: ")
                open_ones.append(writer)
                ended.append(asyncio.ensure_future(reader.read()))
            async with asyncio.timeout(60):
                while sum(one.done() for one in ended) < 300 - 64:
                    await asyncio.sleep(0.01)
            assert (await raw(other, request(other)))[0] == 200
            for writer in open_ones:
                writer.transport.abort()
            await asyncio.gather(*ended, return_exceptions=True)
            async with asyncio.timeout(60):
                while (await raw(flooded, request(flooded)))[0] != 200:
                    await asyncio.sleep(0.01)

    with LoopbackServer(lambda _: Reply("Done.")) as server:
        asyncio.run(run(server.url))


def test_a_connection_that_comes_while_the_endpoint_closes_is_closed_too() -> None:
    async def run() -> bytes:
        async with open_endpoint(spec_of("anthropic", "http://127.0.0.1:9")) as opened:
            port = int(opened.url.rpartition(":")[2])
            client = socket.create_connection(("127.0.0.1", port))
            await asyncio.sleep(0)  # it is accepted,
            await asyncio.sleep(0)  # and gets its protocol in the next step
        client.settimeout(60)
        with client, suppress(ConnectionResetError):
            return await asyncio.to_thread(client.recv, 1)
        return b""

    assert asyncio.run(run()) == b""
