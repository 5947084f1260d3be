"""HTTP, server-sent events and JSON of strangers, without knowing trials or
protocols.
"""

import asyncio
import json
import logging
import re
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..._util.json_forms import whole_number
from ..._util.texts import one_line
from ...models.sdk import CONNECT_SECONDS
from ...models.tool_turns import dicts_in
from ..sandboxes.sandbox import close_server

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from aiohttp.web import BaseRequest, Response, StreamResponse

Body = dict[str, Any]  # a JSON object
_MOST_OUTPUT: Final = 10_000_000  # tokens; more is nonsense
# Of a trial; each takes a file descriptor of this process
_MOST_CONNECTIONS: Final = 64
_IDLE: Final = 60.0  # seconds until a connection without a whole request is closed
# What agents send is reported as findings; a log would be shown with a failing test.
_SILENT: Final = logging.Logger("pytest_upskill.gateway", logging.CRITICAL + 1)


@dataclass(frozen=True)
class ReplyHead:
    """The start of a reply for the agent."""

    status: int
    headers: Mapping[str, str]


class Refusal(Exception):
    """A request that is not passed on; ``finding`` is for the report."""

    def __init__(self, status: int, message: str, finding: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.finding = finding


def tokens_in(headers: Mapping[str, str], query: Mapping[str, str]) -> Iterator[bytes]:
    """The keys that a client sends, wherever its protocol has them."""
    for name in ("x-api-key", "x-goog-api-key", "authorization"):
        value = headers.get(name, "").strip()
        if name == "authorization":
            scheme, _, value = value.partition(" ")
            value = value.strip() if scheme.lower() == "bearer" else ""
        if value:
            yield value.encode("utf-8", "surrogateescape")
    if value := query.get("key", ""):  # Google's protocol
        yield value.encode("utf-8", "surrogateescape")


async def read(request: "BaseRequest", most: int, seconds: float) -> bytes:
    """The body of a request, unpacked; Refusal if it is too large, too slow or
    broken.
    """
    from aiohttp import ClientPayloadError, web

    if (request.content_length or 0) > most:
        raise Refusal(
            413, "the request is too large", "sent a request that is too large"
        )
    data, unpack = bytearray(), _unpacker(request.headers.get("Content-Encoding", ""))
    try:
        async with asyncio.timeout(seconds):
            async for part in request.content.iter_any():
                data += (
                    unpack.decompress(part, most + 1 - len(data)) if unpack else part
                )
                if len(data) > most:
                    finding = "sent a request that is too large"
                    raise Refusal(413, "the request is too large", finding)
    except TimeoutError:
        raise Refusal(408, "the request did not arrive in time") from None
    except (web.RequestPayloadError, ClientPayloadError, zlib.error):
        raise Refusal(
            400, "the body can't be read", "sent a body that can't be read"
        ) from None
    return bytes(data)


def _unpacker(encoding: str) -> "zlib._Decompress | None":
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(zlib.MAX_WBITS | 32)  # it detects which
    name = one_line(encoding, 40)
    problem = f"a body in {name} can't be read here; send it as it is, or in gzip"
    raise Refusal(415, problem, f"sent a body in {name}")


def answer(
    status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> "Response":
    from aiohttp import web

    return web.json_response(body, status=status, headers=headers)


def response(head: ReplyHead, body: bytes) -> "Response":
    from aiohttp import web

    return web.Response(status=head.status, headers=head.headers, body=body)


_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r|\r\n\n|\n\r\n")


@dataclass(frozen=True)
class Event:
    """A server-sent event, and the JSON object in it, if there is one."""

    raw: bytes
    data: dict[str, Any] | None

    @property
    def is_error(self) -> bool:
        """Whether it is an error in any of the protocols."""
        if self.data is None:
            return False
        return self.data.get("type") in ("error", "response.failed") or (
            bool(self.data.get("error")) and not self.data.get("choices")
        )


class Splitter:
    """Splits a stream into events, as its parts arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, part: bytes) -> list[Event]:
        self._buffer += part
        events, start = list[Event](), 0
        while end := _END.search(self._buffer, max(start, self._searched)):
            events.append(event_of(bytes(self._buffer[start : end.end()])))
            start = self._searched = end.end()
        del self._buffer[:start]
        # An end may have arrived in part
        self._searched = max(0, len(self._buffer) - 3)
        return events

    @property
    def tail(self) -> bytes:
        """What follows the last complete event."""
        return bytes(self._buffer)


def event_of(raw: bytes) -> Event:
    lines = re.split(r"\r\n|\n|\r", raw.decode("utf-8", "replace"))
    data = [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]
    try:
        value = json.loads("\n".join(data)) if data else None
    except (ValueError, RecursionError):
        value = None
    return Event(raw, value if isinstance(value, dict) else None)


@asynccontextmanager
async def serving(
    listener: socket.socket,
    handle: "Callable[[BaseRequest], Awaitable[StreamResponse]]",
    close: Callable[[], Awaitable[None]],
) -> AsyncIterator[None]:
    """Serve a socket within the block. ``close`` is awaited once
    nobody can connect any more.
    """
    from aiohttp import web

    http = web.Server(
        handle,
        handler_cancellation=True,
        access_log=None,
        logger=_SILENT,
        keepalive_timeout=_IDLE,
        lingering_time=0,
        auto_decompress=False,  # or it would refuse bodies without our knowledge
    )

    def connect() -> asyncio.Protocol:
        return http() if len(http.connections) < _MOST_CONNECTIONS else _Refused()

    server = await asyncio.get_running_loop().create_server(connect, sock=listener)
    try:
        yield
    finally:
        await close_server(server)
        await close()
        await http.shutdown(0.01)  # no reply matters any more


def client_session() -> "ClientSession":
    """Connections to the servers of models, without cookies and passwords from
    files.
    """
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),  # the engine has its limits
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        headers={"Accept-Encoding": "identity"},
        max_line_size=64 * 1024,
        max_field_size=64 * 1024,
    )


class _Refused(asyncio.Protocol):
    """A connection beyond the limit."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


def limit_of(body: Body, *names: str) -> int | None:
    limits = (whole_number(body.get(name)) for name in names)
    return next(
        (limit for limit in limits if limit is not None and limit <= _MOST_OUTPUT), None
    )


def dict_of(value: object) -> Body:
    """An object of JSON, or an empty one."""
    return value if isinstance(value, dict) else {}


def json_text(value: object) -> str:
    """Arguments of a call as text: mostly that already, else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def texts_in(content: object) -> str:
    """The text of a message: a string, or a list of blocks with texts."""
    if isinstance(content, str):
        return content
    return "\n".join(
        filter(None, (text_of(part.get("text")) for part in dicts_in(content)))
    )
