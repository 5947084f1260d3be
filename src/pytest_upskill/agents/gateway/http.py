"""What the doors need of HTTP, without knowing trials or protocols."""

import asyncio
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..._util.texts import one_line
from .exchange import Exchange, Head

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, Response, StreamResponse


class Refusal(Exception):
    """A request that is not passed on, and what to tell of it."""

    def __init__(self, status: int, message: str, finding: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.finding = finding


def tokens_in(headers: Mapping[str, str], query: Mapping[str, str]) -> Iterator[bytes]:
    """What a client sends to be let in, wherever its protocol has it."""
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
    """The body of a request, unpacked; Refusal if it is too large, too slow or broken."""
    from aiohttp import ClientPayloadError, web

    if (request.content_length or 0) > most:
        raise Refusal(413, "the request is too large", "sent a request that is too large")
    data, unpack = bytearray(), _unpacker(request.headers.get("Content-Encoding", ""))
    try:
        async with asyncio.timeout(seconds):
            async for part in request.content.iter_any():
                data += unpack.decompress(part, most + 1 - len(data)) if unpack else part
                if len(data) > most:
                    finding = "sent a request that is too large"
                    raise Refusal(413, "the request is too large", finding)
    except TimeoutError:
        raise Refusal(408, "the request did not arrive in time") from None
    except (web.RequestPayloadError, ClientPayloadError, zlib.error):
        raise Refusal(400, "the body can't be read", "sent a body that can't be read") from None
    return bytes(data)


def _unpacker(encoding: str) -> "zlib._Decompress | None":
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(zlib.MAX_WBITS | 32)  # it sees which of them
    name = one_line(encoding, 40)
    problem = f"a body in {name} can't be read here; send it as it is, or in gzip"
    raise Refusal(415, problem, f"sent a body in {name}")


def answer(
    status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> "Response":
    from aiohttp import web

    return web.json_response(body, status=status, headers=headers)


def response(head: Head, body: bytes) -> "Response":
    from aiohttp import web

    return web.Response(status=head.status, headers=head.headers, body=body)


async def pass_on(
    request: "BaseRequest", head: Head, exchange: Exchange, seconds: float
) -> "StreamResponse":
    """Pass a reply on as it arrives; if it breaks off, so that the client can see it."""
    from aiohttp import web

    reply = web.StreamResponse(status=head.status, headers=head.headers)
    await reply.prepare(request)
    while (part := await exchange.parts.get()) is not None:
        assert isinstance(part, bytes)
        async with asyncio.timeout(seconds):
            await reply.write(part)
    if exchange.broken and request.transport:
        request.transport.close()  # once what there is was sent; the end mark is not
    return reply
