"""What trials start with: copies of skills, and workspaces that a setup prepared.

Both are made once per run. A setup runs in a sandbox without a skill, so all arms and runs of a
case start with the same bytes. Only what it leaves in the workspace counts.
"""

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
    files: tuple[str, ...]  # relative to its folder, with SKILL.md
    host: str  # its staged copy on the host
    skills_folder: str = SKILLS  # of its agent

    @property
    def inside(self) -> str:
        """Its folder as the agent sees it, named like the skill."""
        name = self.installed.name
        plain = name.isprintable() and "/" not in name and not name.startswith(".")
        return f"{self.skills_folder}/{name if plain else slug(name) or 'skill'}"


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
        # Shielded: a cancelled trial must not take the copy from the others.
        return await asyncio.shield(self._copies[installed])

    async def close(self) -> None:
        """Wait for copies in the making: a thread can't be stopped."""
        await asyncio.gather(*self._copies.values(), return_exceptions=True)


def installed_skill(
    installed: Installed, target: Path, files_of: FilesOf = files_to_install
) -> InstalledSkill:
    """Copy a skill's files into ``target``, in a folder of the skill's name."""
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


_LONGEST_OUTPUT: Final = 300  # characters of a failed setup's output

SpecFor = Callable[[Task], Awaitable[SandboxSpec]]


@dataclass(frozen=True)
class StartState:
    """The workspace at the start of a trial."""

    file: Path | None  # a packed workspace that a setup made
    files: tuple[StartFile, ...]
    seconds: float = 0.0  # of the setup

    async def workspace(self) -> Snapshot:
        if self.file is None:
            return Snapshot(self.files)
        return unpack(await asyncio.to_thread(read_file, self.file))


class Setups:
    """The setups of a run; each runs when a trial first needs it."""

    def __init__(self, kind: SandboxKind, folder: Path, timeout: float, spec_for: SpecFor) -> None:
        self._kind = kind
        self._folder = folder
        self._timeout = timeout
        self._spec_for = spec_for
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
            # Shielded: a cancelled trial must not take it from the others.
            return await asyncio.shield(running)
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key] and not running.done():
                running.cancel()
                del self._starts[key]

    def add(self, task: Task, workspace: bytes, seconds: float) -> None:
        """The workspace that the setup of a task made on another machine."""
        if (key := setup_key(task)) not in self._starts:
            self._begin(key, _saved(self._folder / f"start-{key}", workspace, seconds))

    def _begin(self, key: str, work: Coroutine[None, None, StartState]) -> None:
        self._starts[key] = asyncio.create_task(work)
        self._begun.append(self._starts[key])

    async def close(self) -> None:
        for running in self._begun:
            running.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)

    async def _run(self, task: Task, target: Path) -> StartState:
        sandbox = await self._kind.open(await self._spec_for(task))
        try:
            await fill(sandbox, Snapshot(task.files))
            ran = await sandbox.run(task.setup, timeout=self._timeout)
            output = ran.output.decode("utf-8", "replace").strip()[-_LONGEST_OUTPUT:]
            tail = f": {one_line(output, _LONGEST_OUTPUT)}" if output else ""
            if ran.timed_out:
                raise NoAnswerError(f"setup failed: no end within {plain(self._timeout)} s{tail}")
            if ran.exit:
                raise NoAnswerError(f"setup failed: {ran.status}{tail}")
            try:
                workspace = pack(await take_snapshot(sandbox, await sandbox.tree()))
            except TooLargeError as error:
                raise NoAnswerError(f"setup failed: it makes a workspace of {error}") from None
        finally:
            await close_sandbox(sandbox)
        return await _saved(target, workspace, ran.seconds)


def setup_key(task: Task) -> str:
    """Equal for trials with the same setup, files, image and needs."""
    return digest(task.setup, task.image, repr(task.needs), *(file.digest for file in task.files))


async def _saved(target: Path, workspace: bytes, seconds: float) -> StartState:
    await asyncio.to_thread(target.write_bytes, workspace)
    return StartState(target, (), seconds)


async def close_sandbox(sandbox: Sandbox) -> None:
    """Close a sandbox, even if the caller is cancelled meanwhile."""
    closing = asyncio.ensure_future(sandbox.close())
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await closing
        raise
