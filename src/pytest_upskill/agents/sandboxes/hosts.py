"""Counts the hosts that programs look up in a sandbox without a network.

A name server would need port 53, which is privileged. But glibc asks the name cache
(nscd) first, by a Unix socket: here we reply at once that the host is unknown. Other
programs, such as those with musl, find no name server, and are not counted.
"""

import asyncio
import struct
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from ..._util.texts import one_line
from ..run_folder import remove, run_folder
from .sandbox import close_server

INSIDE: Final = "/var/run/nscd"
_VERSION: Final = 2  # of nscd's protocol
_HEAD: Final = struct.Struct("3i")  # version, kind of request, length of the key
_LONGEST: Final = 1024  # bytes of a key
_BY_NAME: Final = (4, 5)  # gethostbyname, for each kind of address
_ALL: Final = 14  # getaddrinfo
_NOT_FOUND: Final = 1
_KIND: Final = 2  # of an address: IPv4
_OWN_NAMES: Final = ("localhost", "sandbox")
_LOOPBACK: Final = bytes((127, 0, 0, 1))
_MOST_REQUESTS: Final = 10_000  # in all; then the socket is closed
_MOST_HOSTS: Final = 20  # that are reported by name
_AT_ONCE: Final = 16
_SECONDS: Final = 5.0  # for a request


class AskedHosts:
    """Serves the socket in the event loop that opens it."""

    def __init__(self) -> None:
        self.folder = Path(mkdtemp(dir=run_folder()))
        self._hosts = Counter[str]()
        self._unnamed = 0
        self._remaining = _MOST_REQUESTS
        self._open = set[asyncio.Transport]()
        self._server: asyncio.Server | None = None
        self._closing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # the path may be too long: then nothing is counted
            path = str(self.folder / "socket")
            self._server = await loop.create_unix_server(
                lambda: _HostRequest(self), path
            )

    @property
    def findings(self) -> tuple[str, ...]:
        by_name = [
            _times(f"asked for host {host}", n) for host, n in self._hosts.items()
        ]
        unnamed = (
            [_times("asked for other hosts", self._unnamed)] if self._unnamed else []
        )
        return (*by_name, *unnamed)

    async def close(self) -> None:
        self._stop()
        if self._closing:
            await self._closing
        for transport in self._open:
            transport.abort()
        await asyncio.to_thread(remove, self.folder)

    def enter(self, transport: asyncio.Transport) -> bool:
        """Whether one more request is within the limits."""
        if len(self._open) >= _AT_ONCE or not self._remaining:
            return False
        self._open.add(transport)
        self._remaining -= 1
        if not self._remaining:
            self._stop()
        return True

    def _stop(self) -> None:
        """Accept no more connections."""
        if self._server and not self._closing:
            self._closing = asyncio.create_task(close_server(self._server))

    def leave(self, transport: asyncio.Transport) -> None:
        self._open.discard(transport)

    def reply(self, kind: int, key: bytes) -> bytes:
        """The reply to a look-up; empty for other requests."""
        if kind not in (*_BY_NAME, _ALL):
            return b""
        host = one_line(key.rstrip(b"\0").decode("utf-8", "replace"), 100)
        if host in _OWN_NAMES:
            return _own_address(kind, key)
        if host in self._hosts or len(self._hosts) < _MOST_HOSTS:
            self._hosts[host] += 1
        else:
            self._unnamed += 1
        return _not_found(kind)


class _HostRequest(asyncio.Protocol):
    """A connection with one request."""

    def __init__(self, hosts: AskedHosts) -> None:
        self._hosts = hosts
        self._received = bytearray()
        self._entered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._entered = self._hosts.enter(transport)
        if self._entered:
            loop = asyncio.get_running_loop()
            self._end = loop.call_later(_SECONDS, transport.abort)
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) < _HEAD.size:
            return
        _, kind, size = _HEAD.unpack_from(self._received)
        end = _HEAD.size + size
        if not 0 <= size <= _LONGEST:
            self._transport.abort()
        elif len(self._received) >= end:
            self._transport.write(
                self._hosts.reply(kind, bytes(self._received[_HEAD.size : end]))
            )
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if self._entered:
            self._hosts.leave(self._transport)
            self._end.cancel()


def _not_found(kind: int) -> bytes:
    numbers = 3 if kind == _ALL else 5
    return struct.pack(f"{3 + numbers}i", _VERSION, 0, *[0] * numbers, _NOT_FOUND)


def _own_address(kind: int, key: bytes) -> bytes:
    """The reply to a look-up of the sandbox itself."""
    if kind == _ALL:
        return struct.pack("6i", _VERSION, 1, 1, 4, 0, 0) + _LOOPBACK + bytes((_KIND,))
    if kind == _BY_NAME[0]:
        return (
            struct.pack("8i", _VERSION, 1, len(key), 0, _KIND, 4, 1, 0)
            + key
            + _LOOPBACK
        )
    return _not_found(kind)


def _times(text: str, number: int) -> str:
    return text if number == 1 else f"{text} ({number:,} times)"
