"""Answers programs in a sandbox line by line, from what they must not read there."""

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

from .sandboxes.sandbox import Sandbox, close_server

_MAX_LINE_BYTES: Final = 2**20
_MAX_CONNECTIONS: Final = 64  # each takes a file descriptor of this process
_HELLO_SECONDS: Final = 10.0

# From a line to its answer, empty if there is none; ValueError hangs up.
AnswerLine = Callable[[bytes], Awaitable[bytes]]


class LineAddress(NamedTuple):
    """Where programs in a sandbox connect to, and what they have to send first."""

    port: int
    token: str


@asynccontextmanager
async def answering(sandbox: Sandbox, answer: AnswerLine) -> AsyncIterator[LineAddress]:
    """Answer the lines of programs in a sandbox within the block."""
    listener = await sandbox.listen(0)
    # Without a sandbox, other programs of this machine can connect, too.
    address = LineAddress(listener.getsockname()[1], secrets.token_hex(16))
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        connections.add(task)
        task.add_done_callback(connections.discard)
        # Lines that are too long are ValueErrors, too.
        try:
            with suppress(OSError, ValueError, TimeoutError):
                if len(connections) <= _MAX_CONNECTIONS:
                    hello = await asyncio.wait_for(reader.readline(), _HELLO_SECONDS)
                    if hmac.compare_digest(hello.strip(), address.token.encode()):
                        while line := await reader.readline():
                            writer.write(await answer(line))
                            await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, sock=listener, limit=_MAX_LINE_BYTES)
    try:
        yield address
    finally:
        await close_server(server)
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
