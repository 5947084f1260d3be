"""What trials start with: copies of skills, and workspaces that a setup prepared.

Both are made once per run. A setup runs in a sandbox without a skill, so all arms and
runs of a case start with the same bytes. Only what it leaves in the workspace counts.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import Any, Final, TypeVar

from .._util.files import read_file
from .._util.texts import digest, one_line, plain, slug
from ..errors import InputError, NoAnswerError
from ..skills.case import SandboxNeeds, WorkspaceFile
from ..skills.folder import SKILL_NAMES
from ..skills.skill import summary_of
from ..trials.arm import SkillCopy, digest_of_copy
from ..trials.trial import Task
from .needs import spec_for
from .run_folder import remove, run_folder
from .sandboxes.container_program import ended_by
from .sandboxes.sandbox import (
    PLUGINS,
    SKILLS,
    SOLUTION,
    Mount,
    Sandbox,
    SandboxSpec,
)
from .snapshot import (
    MOST_START_BYTES,
    MOST_START_FILES,
    Snapshot,
    TooLargeError,
    fill,
    is_safe,
    pack,
    take_snapshot,
    tree_of,
    unpack,
)
from .task_sandbox import TaskSandbox

_LONGEST_OUTPUT: Final = 300  # characters of a failed setup's output

SandboxFor = Callable[[SandboxNeeds], TaskSandbox]
_T = TypeVar("_T")


@dataclass(frozen=True)
class InstalledSkill:
    """An installed skill as an agent needs it."""

    name: str
    description: str
    body: str
    files: tuple[str, ...]  # relative to its folder, with SKILL.md
    host: str  # its staged copy on the host
    skills_folder: str = SKILLS  # of its agent
    tested: bool = False  # a skill under test, not one that all arms have
    in_plugin: str | None = None  # its folder, if it is installed as part of a plugin
    users_only: bool = False  # no model opens it by itself

    @property
    def inside(self) -> str:
        """Its folder as the agent sees it, named like the skill."""
        return self.in_plugin or f"{self.skills_folder}/{_folder_name(self.name)}"

    @property
    def plugin(self) -> str:
        """The name of the plugin that it is part of; empty if
        it is installed by itself.
        """
        return (
            self.in_plugin.removeprefix(f"{PLUGINS}/").split("/")[0]
            if self.in_plugin
            else ""
        )


def plugin_folder(task: Task | None) -> str:
    """The folder of the plugin under test as an agent sees it; empty without one."""
    plugin = task.plugin if task else None
    return f"{PLUGINS}/{_folder_name(plugin.name)}" if plugin else ""


def _folder_name(name: str) -> str:
    plain = name.isprintable() and "/" not in name and not name.startswith(".")
    return name if plain else slug(name) or "skill"


@dataclass(frozen=True)
class StartState:
    """The workspace at the start of a trial."""

    file: Path | None  # a packed workspace that a setup made
    files: tuple[WorkspaceFile, ...]
    seconds: float = 0.0  # of the setup

    async def workspace(self) -> Snapshot:
        if self.file is None:
            return Snapshot(self.files)
        packed = await asyncio.to_thread(read_file, self.file)
        return unpack(packed, (), MOST_START_BYTES, MOST_START_FILES)


class Staging:
    """What the trials of a run start with, made when a trial first needs it.

    What is made is shielded: a cancelled trial must not take it from the others.
    """

    def __init__(self, sandbox_for: SandboxFor, timeout: float) -> None:
        self._sandbox_for = sandbox_for
        self._timeout = timeout
        self._folder = Path(mkdtemp(dir=run_folder()))
        self._ended = threading.Event()
        self._made: dict[Hashable, asyncio.Future[Any]] = {}
        self._starts: dict[str, asyncio.Task[StartState]] = {}

    async def _once(self, key: Hashable, make: Callable[..., _T], *args: Any) -> _T:
        """The result of a function, called once in a thread for each key."""
        if key not in self._made:
            self._made[key] = asyncio.ensure_future(asyncio.to_thread(make, *args))
        made: _T = await asyncio.shield(self._made[key])
        return made

    async def skill(self, copy: SkillCopy) -> InstalledSkill:
        """NoAnswerError if the skill has changed since the run began, or can't be
        read.
        """
        target = self._folder / f"skill-{len(self._made)}"
        return await self._once(copy, _copied, copy, target)

    async def sandbox_of(self, task: Task) -> TaskSandbox:
        """Where a task runs, once its image is there. SandboxError if it can't."""
        return await self._once(("sandbox", task.needs), self._prepared, task.needs)

    async def solution_mounts(self, task: Task) -> tuple[Mount, ...]:
        """The folder of the script that solves a task, where no model is asked."""
        reference = task.reference
        if reference is None or not reference.run:
            return ()
        folder = self._folder / f"solution-{len(self._made)}"
        files = reference.files
        written = await self._once(reference.digest, _write_all, folder, files)
        return (Mount(str(written), SOLUTION),)

    def _prepared(self, needs: SandboxNeeds) -> TaskSandbox:
        with ended_by(self._ended):
            return self._sandbox_for(needs)

    async def spec_for(self, task: Task) -> SandboxSpec:
        """The sandbox that a task needs, without a skill.
        SandboxError if a need can't be met.
        """
        sandbox = await self.sandbox_of(task)
        inside = sandbox.needs_inside(task.needs)
        return await self._once(("spec", task.needs), spec_for, inside)

    async def start_of(self, task: Task) -> StartState:
        """NoAnswerError if the setup fails, SandboxError if it can't run."""
        place, spec = await self.sandbox_of(task), await self.spec_for(task)
        for file in task.files:
            if not is_safe(file.path) or not (place.is_own or spec.keeps(file.path)):
                raise NoAnswerError(
                    f"the path {file.path!r} leads out of the workspace"
                )
        if not place.is_own and not task.setup:
            return StartState(None, task.files)
        key = setup_key(task)
        if key not in self._starts:
            self._starts[key] = asyncio.create_task(self._set_up(task))
        return await asyncio.shield(self._starts[key])

    def add_start(self, task: Task, workspace: bytes, seconds: float) -> None:
        """The workspace that the setup of a task made on another machine."""
        if (key := setup_key(task)) not in self._starts:
            self._starts[key] = asyncio.create_task(
                self._saved(task, workspace, seconds)
            )

    async def close(self) -> None:
        """Threads that copy skills or install packages can't be stopped,
        so wait for them.
        """
        self._ended.set()
        for running in self._starts.values():
            running.cancel()
        await asyncio.gather(
            *self._starts.values(), *self._made.values(), return_exceptions=True
        )
        remove(self._folder)

    async def _set_up(self, task: Task) -> StartState:
        """Take the files of the task's own image, and run its setup."""
        place, start = await self.sandbox_of(task), Snapshot(task.files)
        if place.is_own:
            start = await asyncio.to_thread(place.start, task.needs, task.files)
        setup = task.setup
        if not setup:
            return await self._saved(task, pack(start, limited=False), 0.0)
        sandbox = await place.kind.open(await self.spec_for(task))
        try:
            await fill(sandbox, start)
            ran = await sandbox.run(setup, timeout=self._timeout)
            output = ran.output.decode("utf-8", "replace").strip()[-_LONGEST_OUTPUT:]
            tail = f": {one_line(output, _LONGEST_OUTPUT)}" if output else ""
            if ran.timed_out:
                raise NoAnswerError(
                    f"setup failed: no end within {plain(self._timeout)} s{tail}"
                )
            if ran.exit:
                raise NoAnswerError(f"setup failed: {ran.status}{tail}")
            try:
                taken = await take_snapshot(sandbox, await tree_of(sandbox))
                workspace = await asyncio.to_thread(pack, taken, limited=False)
            except TooLargeError as error:
                raise NoAnswerError(
                    f"setup failed: it makes a workspace of {error}"
                ) from None
        finally:
            await close_sandbox(sandbox)
        return await self._saved(task, workspace, ran.seconds)

    async def _saved(self, task: Task, workspace: bytes, seconds: float) -> StartState:
        file = self._folder / f"start-{setup_key(task)}"
        await asyncio.to_thread(file.write_bytes, workspace)
        return StartState(file, (), seconds)


def _copied(copy: SkillCopy, target: Path) -> InstalledSkill:
    """Copy a skill's files into ``target``, in a folder of the skill's name."""
    try:
        files = copy.files()
    except InputError as error:
        raise NoAnswerError(f"the skill {copy.name} can't be read: {error}") from None
    if digest_of_copy(files) != copy.digest:
        raise NoAnswerError(f"the skill {copy.name} has changed since the run began")
    texts = {file.path: file.data for file in files}
    summary = summary_of(next((texts[n] for n in SKILL_NAMES if n in texts), b""))
    described = (copy.name, summary.description, summary.body)
    skill = InstalledSkill(*described, tuple(texts), "", users_only=summary.users_only)
    host = target / PurePosixPath(skill.inside).name
    try:
        _write_all(host, files)
        target.chmod(0o555)
    except OSError as error:
        raise NoAnswerError(f"the skill {copy.name} can't be copied: {error}") from None
    return replace(skill, host=str(host))


def _write_all(folder: Path, files: Iterable[WorkspaceFile]) -> Path:
    """Write files that nobody may change into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        _write(file, folder / file.path)
    for inside, _, _ in os.walk(folder, topdown=False):
        Path(inside).chmod(0o555)
    return folder


def _write(file: WorkspaceFile, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(file.data)
    target.chmod(0o555 if file.is_executable else 0o444)


def setup_key(task: Task) -> str:
    """Equal for trials with the same setup, files, image and needs."""
    needs = repr(tuple(task.needs))
    return digest(task.setup, task.image, needs, *(file.digest for file in task.files))


async def close_sandbox(sandbox: Sandbox) -> None:
    """Close a sandbox, even if the caller is cancelled meanwhile."""
    closing = asyncio.ensure_future(sandbox.close())
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await closing
        raise
