"""Skills as agents get them: a read-only copy, made once per run."""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from .._util.files import read_file
from .._util.texts import digest, one_line, plain, slug
from ..errors import InputError, NoAnswerError
from ..skills.folder import SKILL_NAMES
from ..skills.skill import summary_of
from ..trials.task import Installed, StartFile, Task, digest_of_copy, files_to_install
from .sandboxes.sandbox import SKILLS, Sandbox, SandboxKind, SandboxSpec
from .snapshot import Snapshot, TooLargeError, fill, is_safe, pack, take_snapshot, unpack

FilesOf = Callable[[Installed], Sequence[StartFile]]


@dataclass(frozen=True)
class InstalledSkill:
    """An installed skill as an agent needs it."""

    installed: Installed
    description: str
    body: str
    files: tuple[str, ...]  # all its files, relative to its folder, SKILL.md included
    host: str  # its staged copy on the host
    among: str = SKILLS  # the folder where its agent looks for skills

    @property
    def inside(self) -> str:
        """Its folder as the agent sees it: named like the skill, as agents expect."""
        name = self.installed.name
        plain = name.isprintable() and "/" not in name and not name.startswith(".")
        return f"{self.among}/{name if plain else slug(name) or 'skill'}"


class Staging:
    """The copies of a run, each made when a trial first needs it."""

    def __init__(self, folder: Path, files_of: FilesOf = files_to_install) -> None:
        self._folder = folder
        self._files_of = files_of
        self._copies: dict[Installed, asyncio.Future[InstalledSkill]] = {}

    async def installed_skill(self, installed: Installed) -> InstalledSkill:
        """NoAnswerError if the skill has changed since the run began, or can't be read."""
        if installed not in self._copies:
            target = self._folder / f"skill-{len(self._copies)}"
            making = asyncio.to_thread(installed_skill, installed, target, self._files_of)
            self._copies[installed] = asyncio.ensure_future(making)
        # Shielded, as one trial that is cancelled must not take the copy from the others.
        return await asyncio.shield(self._copies[installed])

    async def close(self) -> None:
        """Wait for copies that nobody waits for any more: a thread can't be stopped."""
        await asyncio.gather(*self._copies.values(), return_exceptions=True)


def installed_skill(
    installed: Installed, target: Path, files_of: FilesOf = files_to_install
) -> InstalledSkill:
    """Copy a skill's files into a folder of its name in a new one."""
    try:
        files = files_of(installed)
    except InputError as error:
        raise NoAnswerError(f"the skill {installed.name} can't be read: {error}") from None
    if digest_of_copy(files) != installed.digest:
        raise NoAnswerError(f"the skill {installed.name} has changed since the run began")
    texts = {file.path: file.data for file in files}
    description, body = summary_of(next((texts[n] for n in SKILL_NAMES if n in texts), b""))
    skill = InstalledSkill(installed, description, body, tuple(texts), "")
    host = target / PurePosixPath(skill.inside).name
    try:
        for file in files:
            _write(file, host / file.path)
        for folder, _, _ in os.walk(target, topdown=False):
            Path(folder).chmod(0o555)
    except OSError as error:
        raise NoAnswerError(f"the skill {installed.name} can't be copied: {error}") from None
    return replace(skill, host=str(host))


def _write(file: StartFile, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(file.data)
    target.chmod(0o555 if file.executable else 0o444)


_SHOWN: Final = 300  # characters of what a setup said

SpecFor = Callable[[Task], Awaitable[SandboxSpec]]


@dataclass(frozen=True)
class StartState:
    """How a workspace starts."""

    file: Path | None  # the packed workspace, if a setup made it
    files: tuple[StartFile, ...]
    seconds: float = 0.0  # of the setup

    async def workspace(self) -> Snapshot:
        if self.file is None:
            return Snapshot(self.files)
        return unpack(await asyncio.to_thread(read_file, self.file))


class Setups:
    """The setups of a run, each run when a trial first needs it."""

    def __init__(self, kind: SandboxKind, folder: Path, timeout: float, room_of: SpecFor) -> None:
        self._kind = kind
        self._folder = folder
        self._timeout = timeout
        self._room_of = room_of
        self._starts: dict[str, asyncio.Task[StartState]] = {}
        self._begun: list[asyncio.Task[StartState]] = []
        self._waiting: Counter[str] = Counter()  # trials

    async def start_of(self, task: Task) -> StartState:
        """NoAnswerError if the setup fails, SandboxError if it can't run."""
        for file in task.files:
            if not is_safe(file.path):
                raise NoAnswerError(f"the path {file.path!r} leads out of the workspace")
        if not task.setup:
            return StartState(None, task.files)
        key = setup_key(task)
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
        if (key := setup_key(task)) not in self._starts:
            self._begin(key, _kept(self._folder / f"start-{key}", made, seconds))

    def _begin(self, key: str, work: Coroutine[None, None, StartState]) -> None:
        self._starts[key] = asyncio.create_task(work)
        self._begun.append(self._starts[key])

    async def close(self) -> None:
        for running in self._begun:
            running.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)

    async def _run(self, task: Task, target: Path) -> StartState:
        sandbox = await self._kind.open(await self._room_of(task))
        try:
            await fill(sandbox, Snapshot(task.files))
            ran = await sandbox.run(task.setup, timeout=self._timeout)
            said = ran.output.decode("utf-8", "replace").strip()[-_SHOWN:]
            tail = f": {one_line(said, _SHOWN)}" if said else ""
            if ran.timed_out:
                raise NoAnswerError(f"setup failed: no end within {plain(self._timeout)} s{tail}")
            if ran.exit:
                raise NoAnswerError(f"setup failed: {ran.how}{tail}")
            try:
                made = pack(await take_snapshot(sandbox, await sandbox.tree()))
            except TooLargeError as error:
                raise NoAnswerError(f"setup failed: it makes a workspace of {error}") from None
        finally:
            await close_sandbox(sandbox)
        return await _kept(target, made, ran.seconds)


def setup_key(task: Task) -> str:
    """The same for all trials that have the same setup and the same files."""
    return digest(task.setup, task.image, repr(task.needs), *(one.digest for one in task.files))


async def _kept(target: Path, made: bytes, seconds: float) -> StartState:
    await asyncio.to_thread(target.write_bytes, made)
    return StartState(target, (), seconds)


async def close_sandbox(sandbox: Sandbox) -> None:
    """Close a sandbox, even if whoever waits for that is cancelled."""
    closing = asyncio.ensure_future(sandbox.close())
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await closing
        raise
