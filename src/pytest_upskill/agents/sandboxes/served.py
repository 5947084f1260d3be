"""A sandbox with a helper inside that carries out requests;
its replies are hostile data.
"""

import asyncio
import errno
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ..._util.files import PLAIN
from .inside import FRAME, PART, packed, unpacked
from .sandbox import (
    CommandLine,
    CommandResult,
    Env,
    Sandbox,
    SandboxError,
    SandboxSpec,
    TreeEntry,
    gone,
)

_PATIENCE: Final = 30.0  # seconds for a reply, beyond the time of a command
_MARGIN: Final = 2**20  # bytes of a message besides output or a part of a file
_TREE_TEXT: Final = 64 * 2**20  # bytes of all paths of a tree
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_Replies = asyncio.Queue[list[bytes] | SandboxError]


class ServedSandbox(Sandbox):
    """Requests are sent in order; replies arrive in any order."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        channel: socket.socket,
        spec: SandboxSpec,
    ) -> None:
        self._process = process
        self._channel = channel
        self.spec = spec
        self._most = max(spec.limits.output, PART) + _MARGIN  # bytes of a message
        self._loop = asyncio.get_running_loop()
        self._sending = asyncio.Lock()
        self._number = 0
        self._replies = dict[int, _Replies]()
        self._received = bytearray()
        self._sockets = list[int]()  # received, not yet used
        self._broken: str | None = None
        channel.settimeout(0)
        self._loop.add_reader(channel.fileno(), self._receive)

    async def start(self, code: bytes, env: Mapping[str, str]) -> None:
        """Send the helper its code and limits; SandboxError if it does not start."""
        limits = self.spec.limits
        folders = dict.fromkeys((self.spec.workdir, *self.spec.disk))
        numbers = (
            *(limits.memory, limits.processes, limits.disk),
            *(limits.files, limits.file_size, limits.output, len(folders)),
        )
        fields = [*map(_number, numbers), *map(_encoded, folders), *_pairs(env)]
        async with self._sending:
            await self._send_all(code)
        await self._ask(b"start", *fields, expected=b"done", seconds=_PATIENCE)

    async def run(
        self,
        command: CommandLine,
        *,
        timeout: float,
        env: Env | None = None,
        stdin: bytes = b"",
    ) -> CommandResult:
        words = ["", command] if isinstance(command, str) else [*command]
        fields = [_number(timeout), stdin, _number(len(words)), *map(_encoded, words)]
        fields += _pairs(env or {})
        reply = await self._ask(
            b"run", *fields, expected=b"ran", seconds=timeout + _PATIENCE
        )
        try:
            code, timed_out, cut, micros = (int(field) for field in reply[:4])
            (output,) = reply[4:]
        except ValueError:
            raise self._break("its helper sent no result of a command") from None
        return CommandResult(code, output, max(cut, 0), bool(timed_out), micros / 1e6)

    async def read(self, path: str, most: int) -> bytes:
        data = bytearray()
        while len(data) < most:
            part = min(most - len(data), PART)
            fields = (_encoded(path), _number(len(data)), _number(part))
            (new,) = await self._ask(
                b"read", *fields, expected=b"data", path=path, count=1
            )
            if not new:
                break
            data += new[:part]
        return bytes(data)

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        for at in range(0, max(len(data), 1), PART):
            is_last = at + PART >= len(data)  # it may be read-only from then on
            set_mode = b"" if mode is None or not is_last else _number(mode)
            fields = (_encoded(path), _number(at), set_mode, data[at : at + PART])
            await self._ask(b"write", *fields, expected=b"done", path=path, count=0)

    async def tree(self, path: str = ".") -> list[TreeEntry]:
        number, replies = await self._send(b"tree", _encoded(path))
        entries, size = list[TreeEntry](), 0
        try:
            while True:
                fields = await self._reply(replies, None, path)
                if fields[0] == b"done":
                    return sorted(entries, key=lambda entry: entry.path)
                entries += self._entries(fields)
                size += sum(map(len, fields))
                if len(entries) > self.spec.limits.files or size > _TREE_TEXT:
                    raise self._break("its helper lists more files than there can be")
        finally:
            del self._replies[number]

    def _entries(self, fields: list[bytes]) -> list[TreeEntry]:
        try:
            rows = zip(*[iter(fields[1:])] * 5, strict=True)
            return [tree_entry(*row) for row in rows]
        except ValueError:
            raise self._break("its helper sent no list of files") from None

    async def listen(self, port: int) -> socket.socket:
        await self._ask(
            b"listen", _number(port), expected=b"socket", path=f"127.0.0.1:{port}"
        )
        try:
            listener = socket.socket(fileno=self._sockets.pop(0))
        except (IndexError, OSError):
            raise self._break("its helper passed no socket out") from None
        listener.settimeout(0)
        try:
            listens = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            right = (
                listener.family == socket.AF_INET
                and listener.getsockname()[0] == "127.0.0.1"
            )
            right = right and port in (0, listener.getsockname()[1])
        except OSError:
            listens = right = False
        if not (listens and right):
            listener.close()
            raise self._break("its helper passed a wrong socket out")
        return listener

    async def close(self) -> None:
        self._break("it is closed")
        # The helper, the first process, ends as its socket is closed,
        # and all others with it.
        waiting = asyncio.ensure_future(asyncio.to_thread(self._end))
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self._process.kill()
            raise

    def _end(self) -> None:
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    async def _ask(
        self,
        kind: bytes,
        *fields: bytes,
        expected: bytes,
        path: str = "",
        count: int | None = None,
        seconds: float | None = None,
    ) -> list[bytes]:
        """The fields of the reply."""
        number, replies = await self._send(kind, *fields)
        try:
            async with asyncio.timeout(seconds or _PATIENCE):
                reply = await self._reply(replies, expected, path)
        except TimeoutError:
            raise self._break("its helper does not reply") from None
        finally:
            del self._replies[number]
        if count is not None and len(reply) != count + 1:
            raise self._break("its helper sent a reply of another form")
        return reply[1:]

    async def _send(self, kind: bytes, *fields: bytes) -> tuple[int, _Replies]:
        self._number += 1
        number, replies = self._number, _Replies()
        self._replies[number] = replies
        try:
            async with self._sending:
                await self._send_all(packed(_number(number), kind, *fields))
        except BaseException:
            del self._replies[number]
            raise
        return number, replies

    async def _send_all(self, data: bytes) -> None:
        if self._broken is not None:
            raise gone(self._broken)
        try:
            await self._loop.sock_sendall(self._channel, data)
        except OSError:
            raise self._break("it ended") from None
        except asyncio.CancelledError:
            self._break("a request was interrupted")
            raise

    async def _reply(
        self, replies: _Replies, expected: bytes | None, path: str
    ) -> list[bytes]:
        if self._broken is not None and replies.empty():
            raise gone(self._broken)
        reply = await replies.get()
        if isinstance(reply, SandboxError):
            raise reply
        if reply[0] == b"error":
            raise _os_error(reply, path)
        if reply[0] not in ((expected,) if expected else (b"entries", b"done")):
            raise self._break("its helper sent a reply to another question")
        return reply

    def _receive(self) -> None:
        try:
            data, extra, _, _ = self._channel.recvmsg(2**18, socket.CMSG_SPACE(4))
        except BlockingIOError:
            return
        except OSError:
            data, extra = b"", []
        for level, kind, passed in extra:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                # The buffer may hold a second one
                for at in range(0, len(passed) - 3, 4):
                    self._take(int.from_bytes(passed[at : at + 4], sys.byteorder))
        if not data:
            self._break("it ended")
            return
        self._received += data
        while len(self._received) >= FRAME:
            size = FRAME + int.from_bytes(self._received[:FRAME], "big")
            if size > self._most:
                self._break("its helper sent too much at once")
                return
            if len(self._received) < size:
                return
            body = bytes(self._received[FRAME:size])
            del self._received[:size]
            try:
                number, *fields = unpacked(body)
                replies = self._replies.get(int(number))
            except ValueError:
                self._break("its helper sent no message")
                return
            if replies and fields:  # or the caller was cancelled
                replies.put_nowait(fields)

    def _take(self, passed: int) -> None:
        os.set_inheritable(passed, False)
        if len(self._sockets) < 16 and stat.S_ISSOCK(os.fstat(passed).st_mode):
            self._sockets.append(passed)
        else:
            os.close(passed)

    def _break(self, reason: str) -> SandboxError:
        """Close the connection: everything inside ends, and all requests fail."""
        if self._broken is None:
            self._broken = reason
            self._loop.remove_reader(self._channel.fileno())
            self._channel.close()
            while self._sockets:
                os.close(self._sockets.pop())
            for replies in self._replies.values():
                replies.put_nowait(gone(reason))
        return gone(self._broken)


def tree_entry(
    path: bytes, size: bytes, digest: bytes, flags: bytes, link: bytes
) -> TreeEntry:
    """An entry of a tree by its fields; ValueError if they are invalid."""
    text, hexadecimal = os.fsdecode(path), digest.decode("ascii")
    parts = text.split("/")
    if "\0" in text or not {"", ".", ".."}.isdisjoint(parts) or int(size) < 0:
        raise ValueError(text)
    if not _DIGEST.fullmatch(hexadecimal):
        raise ValueError(hexadecimal)
    target = os.fsdecode(link) if flags == b"l" else None
    mode = PLAIN if flags in (b"l", b"d") else int(flags) & 0o777
    return TreeEntry(text, int(size), hexadecimal, mode, target, flags == b"d")


def _os_error(reply: list[bytes], path: str) -> OSError:
    number = errno.EIO
    with suppress(ValueError, IndexError):
        number = int(reply[1]) if 0 < int(reply[1]) < 200 else number
    return OSError(number, os.strerror(number), path)


def _pairs(env: Mapping[str, str]) -> list[bytes]:
    return [_encoded(text) for pair in env.items() for text in pair]


def _number(value: float) -> bytes:
    return str(value).encode()


def _encoded(text: str) -> bytes:
    """A text of an agent, which may have surrogates."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
