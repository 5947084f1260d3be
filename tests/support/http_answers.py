"""Answers over HTTP/1.1: whole, in parts, late, or broken as a fault wants it."""

import asyncio
import socket
import struct
import sys
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    head: bytes
    body: bytes
    way: str = "whole"  # or the kind of fault
    delay: float = 0.0
    parts: tuple[bytes, ...] = ()  # of a stream, in place of the body
    gate: threading.Event | None = None


def answer(
    body: bytes, content_type: str = JSON, status: int = 200, more: str = ""
) -> Answer:
    # The reason phrase may be empty; statuses such as Anthropic's 529 have none.
    head = f"HTTP/1.1 {status} \r\ncontent-type: {content_type}\r\n{more}"
    return Answer(f"{head}content-length: {len(body)}\r\n\r\n".encode("latin-1"), body)


def stream(parts: Sequence[bytes], more: str) -> Answer:
    head = f"HTTP/1.1 200 \r\ncontent-type: text/event-stream\r\n{more}"
    return Answer(
        f"{head}transfer-encoding: chunked\r\n\r\n".encode(), b"", parts=tuple(parts)
    )


def header_lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


async def send(what: Answer, reader: StreamReader, writer: StreamWriter) -> bool:
    """Send the answer; return False if the connection can't be used again."""
    if what.way == "hang":
        await client_left(reader, None)
        return False
    if what.way == "reset":
        await _reset(what, writer)
        return False
    if what.delay and await client_left(reader, what.delay):
        return False
    if what.parts:
        if not await _send_parts(what, reader, writer):
            return False
    elif what.way == "trickle":
        writer.write(what.head)
        for byte in what.body:
            writer.write(bytes([byte]))
            if await client_left(reader, 1.0):
                return False
    else:
        writer.write(what.head + what.body)
    await writer.drain()
    return True


async def _reset(what: Answer, writer: StreamWriter) -> None:
    writer.write(what.head + what.body[: len(what.body) // 2] + _half(what.parts))
    if what.parts:
        await writer.drain()
        # An RST takes back what the client has not read yet
        await asyncio.sleep(0.05)
    # Without lingering, closing the socket sends RST instead of FIN.
    no_linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, no_linger
    )
    writer.transport.abort()


async def _send_parts(what: Answer, reader: StreamReader, writer: StreamWriter) -> bool:
    """Send a stream in two halves; return False if it ends before its time."""
    writer.write(what.head + _half(what.parts))
    await writer.drain()
    if what.way == "stall":
        await client_left(reader, None)
    if what.way in ("cut", "stall"):
        return False
    while what.gate and not what.gate.is_set():
        if await client_left(reader, 0.01):
            return False
    rest = what.parts[len(what.parts) // 2 :]
    writer.write(b"".join(map(_chunk, rest)) + b"0\r\n\r\n")
    return True


def _half(parts: tuple[bytes, ...]) -> bytes:
    return b"".join(map(_chunk, parts[: len(parts) // 2]))


def _chunk(part: bytes) -> bytes:
    return f"{len(part):x}\r\n".encode() + part + b"\r\n"


async def client_left(reader: StreamReader, seconds: float | None) -> bool:
    """Wait, but no longer than the client does."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            # A waiting client sends nothing, so this returns when the connection ends.
            await reader.read(1)
            return True
    return False
