"""Closing a server without losing whoever is at its door."""

import asyncio
from contextlib import suppress
from typing import Final

_ACCEPTING: Final = 3  # steps of the loop, from a connection to its protocol


async def close_server(server: asyncio.Server) -> None:
    """asyncio loses a connection that it is about to accept when its server closes."""
    for listener in server.sockets:
        with suppress(NotImplementedError):  # Windows has another event loop
            asyncio.get_running_loop().remove_reader(listener)
    try:
        for _ in range(_ACCEPTING):
            await asyncio.sleep(0)
    finally:
        server.close()
