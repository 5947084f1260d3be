"""The workspace that trials start with: a case's files, and what its setup made of them.

The setup runs once for all trials of a case, in a sandbox that has no skill, so all arms and runs
start with the same bytes. Only what it leaves in the workspace counts.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .._util.files import read_file
from .._util.texts import digest, one_line, plain
from ..trials.task import StartFile, Task
from .port import NoAnswerError, Room, Sandbox, SandboxKind
from .snapshot import TooLargeError, Workspace, contents, fill, is_safe, packed, unpack

_SHOWN: Final = 300  # characters of what a setup said

RoomOf = Callable[[Task], Awaitable[Room]]


@dataclass(frozen=True)
class Start:
    """How a workspace starts."""

    file: Path | None  # the packed workspace, if a setup made it
    files: tuple[StartFile, ...]
    seconds: float = 0.0  # of the setup

    async def workspace(self) -> Workspace:
        if self.file is None:
            return Workspace(self.files)
        return unpack(await asyncio.to_thread(read_file, self.file))


class Setups:
    """The setups of a run, each run when a trial first needs it."""

    def __init__(self, kind: SandboxKind, folder: Path, timeout: float, room_of: RoomOf) -> None:
        self._kind = kind
        self._folder = folder
        self._timeout = timeout
        self._room_of = room_of
        self._starts: dict[str, asyncio.Task[Start]] = {}
        self._begun: list[asyncio.Task[Start]] = []
        self._waiting: Counter[str] = Counter()  # trials

    async def start_of(self, task: Task) -> Start:
        """NoAnswerError if the setup fails, SandboxError if it can't run."""
        for file in task.files:
            if not is_safe(file.path):
                raise NoAnswerError(f"the path {file.path!r} leads out of the workspace")
        if not task.setup:
            return Start(None, task.files)
        key = key_of(task)
        if key not in self._starts:
            target = self._folder / f"start-{key}"
            self._begin(key, self._run(task, target))
        running = self._starts[key]
        self._waiting[key] += 1
        try:
            # Shielded, as one trial that is cancelled must not take it from the others.
            return await asyncio.shield(running)
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key] and not running.done():
                running.cancel()
                del self._starts[key]

    def know(self, task: Task, made: bytes, seconds: float) -> None:
        """What the setup of a task made on another machine."""
        if (key := key_of(task)) not in self._starts:
            self._begin(key, _kept(self._folder / f"start-{key}", made, seconds))

    def _begin(self, key: str, work: Coroutine[None, None, Start]) -> None:
        self._starts[key] = asyncio.create_task(work)
        self._begun.append(self._starts[key])

    async def close(self) -> None:
        for running in self._begun:
            running.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)

    async def _run(self, task: Task, target: Path) -> Start:
        sandbox = await self._kind.open(await self._room_of(task))
        try:
            await fill(sandbox, Workspace(task.files))
            ran = await sandbox.run(task.setup, timeout=self._timeout)
            said = ran.output.decode("utf-8", "replace").strip()[-_SHOWN:]
            tail = f": {one_line(said, _SHOWN)}" if said else ""
            if ran.timed_out:
                raise NoAnswerError(f"setup failed: no end within {plain(self._timeout)} s{tail}")
            if ran.exit:
                raise NoAnswerError(f"setup failed: {ran.how}{tail}")
            try:
                made = packed(await contents(sandbox, await sandbox.tree()))
            except TooLargeError as error:
                raise NoAnswerError(f"setup failed: it makes a workspace of {error}") from None
        finally:
            await closed(sandbox)
        return await _kept(target, made, ran.seconds)


def key_of(task: Task) -> str:
    """The same for all trials that have the same setup and the same files."""
    return digest(task.setup, task.image, repr(task.needs), *(one.digest for one in task.files))


async def _kept(target: Path, made: bytes, seconds: float) -> Start:
    await asyncio.to_thread(target.write_bytes, made)
    return Start(target, (), seconds)


async def closed(sandbox: Sandbox) -> None:
    """Close a sandbox, even if whoever waits for that is cancelled."""
    closing = asyncio.ensure_future(sandbox.close())
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await closing
        raise
