"""The one gateway of a run: it opens doors and holds the connections to the models' servers."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from ...models import ModelSpec
from ...models.sdk import CONNECT_SECONDS
from ...trials.trial import Question
from ..closing import close_server
from ..port import Call, InstalledSkill
from .door import Door

if TYPE_CHECKING:
    from aiohttp import ClientSession

_MOST_CONNECTIONS: Final = 64  # of a door; each takes a file descriptor of this process
_IDLE: Final = 60.0  # seconds until a connection without a whole request is closed
# What agents send is told as findings; a log would be shown with a failing test.
_SILENT: Final = logging.Logger("pytest_upskill.gateway", logging.CRITICAL + 1)


class Gateway:
    """Serves the doors of all trials, in the loop that it is used in."""

    def __init__(self) -> None:
        self._session: ClientSession | None = None

    @asynccontextmanager
    async def door(
        self,
        question: Question,
        spec: ModelSpec,
        call: Call,
        listener: socket.socket,
        skills: Sequence[InstalledSkill] = (),
    ) -> AsyncIterator[Door]:
        """A door for a trial, open inside the block, on a socket that ``Sandbox.listen`` gave."""
        from aiohttp import web

        port = listener.getsockname()[1]
        door = Door(question, spec, call, self._connections(), port, skills)
        http = web.Server(
            door.handle,
            handler_cancellation=True,
            access_log=None,
            logger=_SILENT,
            keepalive_timeout=_IDLE,
            lingering_time=0,
            auto_decompress=False,  # or it would refuse what it can't unpack without our knowledge
        )

        def connect() -> asyncio.Protocol:
            return http() if len(http.connections) < _MOST_CONNECTIONS else _Refused()

        server = await asyncio.get_running_loop().create_server(connect, sock=listener)
        try:
            yield door
        finally:
            await close_server(server)
            await door.close()
            await http.shutdown(0.01)  # nothing that it still does matters to anyone

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    def _connections(self) -> "ClientSession":
        """Shared by all doors; it knows no cookies and no passwords from files."""
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),  # the engine has its limits
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                headers={"Accept-Encoding": "identity"},
                max_line_size=64 * 1024,
                max_field_size=64 * 1024,
            )
        return self._session


class _Refused(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()
