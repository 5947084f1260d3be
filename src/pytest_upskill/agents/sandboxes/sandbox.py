"""The port to a sandbox: where the commands of an agent run,
and what they may use there.
"""

import asyncio
import posixpath
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from ..._util.files import PLAIN
from ...skills.task_forms import DEFAULT_WORKDIR

# As an agent sees it, unless a task has another workdir
WORKSPACE: Final = DEFAULT_WORKDIR
SKILLS: Final = "/skills"  # where our own agent has its skills: /skills/NAME/SKILL.md
HOME: Final = "/home/agent"
PLUGINS: Final = f"{HOME}/plugins"  # where a plugin is that is under test: PLUGINS/NAME
PROGRAMS: Final = "/programs"  # of the host: /programs/NAME
PACKAGES: Final = "/packages"  # Python packages: on PYTHONPATH and PATH
SOLUTION: Final = "/solution"  # the script that solves a case, no model sees it
# What no writable folder may hide, with all that is in it.
_SYSTEM: Final = (
    *(
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/gnu",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/nix",
    ),
    *("/proc", "/run", "/sbin", "/sys", "/usr", "/var/lib", "/var/run"),
)
_NO_SYSTEM: Final = ("/dev/shm", "/usr/src")  # folders of these that have nothing of it
_OWN: Final = (SKILLS, HOME, PROGRAMS, PACKAGES, SOLUTION)
_PARTS: Final = {"/tmp": 4, HOME: 3, "/dev/shm": 1}  # of the disk
_PARTS_OF_WORKDIR: Final = 8
_PARTS_OF_PLACE: Final = 4
_SMALLEST: Final = 2**16  # bytes of a folder
_ENV: Final = {"LANG": "C.UTF-8", "TERM": "dumb", "TZ": "UTC"}
_FIXED_ENV: Final = {"HOME": HOME, "USER": "agent", "TMPDIR": "/tmp"}
_TRY_SECONDS: Final = 60.0
_FILES_AT_ONCE: Final = 32
_ACCEPTING: Final = 3  # steps of the loop from a connection to its protocol

CommandLine = str | Sequence[str]  # for bash (or sh without it), or arguments
Env = Mapping[str, str]
FileToWrite = tuple[str, bytes, int]  # its path, its content and its mode


class SandboxError(Exception):
    """A sandbox could not be opened, or broke: the trial is errored, not failed."""


def gone(reason: str) -> SandboxError:
    return SandboxError(f"The sandbox is gone: {reason}.")


@dataclass(frozen=True)
class SandboxLimits:
    """What all processes of a sandbox together may use."""

    memory: int = 4 * 2**30  # bytes
    processes: int = 512
    disk: int = 2**30  # bytes in all of its writable folders
    files: int = 100_000  # in these folders
    file_size: int = 512 * 2**20  # bytes of one file
    output: int = 2**20  # bytes of a command's output; the middle of more is dropped
    cpus: float | None = None  # None is all, and so it is in bubblewrap


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host, read-only inside."""

    host: str
    inside: str


@dataclass(frozen=True)
class SandboxSpec:
    """What a sandbox is to have."""

    mounts: tuple[Mount, ...] = ()
    # Its PATH is in front of the usual one
    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    limits: SandboxLimits = SandboxLimits()
    workdir: str = WORKSPACE  # where commands run
    places: tuple[str, ...] = ()  # further folders that can be written and are kept

    def __post_init__(self) -> None:
        for folder in (self.workdir, *self.places):
            if problem := why_not_writable(folder):
                raise SandboxError(f"{folder} can't be a folder of a task: {problem}.")
        for mount in self.mounts:
            if hidden := next(
                (own for own in self.disk if is_in(own, {mount.inside})), ""
            ):
                raise SandboxError(
                    f"{mount.inside} can't be mounted: it would hide {hidden}."
                )

    @property
    def kept(self) -> tuple[str, ...]:
        """The folders whose files are those of the task: the workdir first."""
        places = sorted({*self.places})
        return (
            self.workdir,
            *(p for p in places if not is_in(p, {self.workdir, *places} - {p})),
        )

    def keeps(self, path: str) -> bool:
        """Whether a path, relative to the workdir or absolute,
        is one of the task's files.
        """
        return not path.startswith("/") or is_in(path, self.kept)

    @property
    def disk(self) -> Mapping[str, int]:
        """Bytes for each writable folder; outer folders are before those in them."""
        parts = dict.fromkeys(self.kept, _PARTS_OF_PLACE)
        parts |= {**_PARTS, self.workdir: _PARTS_OF_WORKDIR}
        part = self.limits.disk // sum(parts.values())
        return {
            folder: max(part * parts[folder], _SMALLEST) for folder in sorted(parts)
        }

    def environment(self, path: str) -> dict[str, str]:
        """The variables of commands, with the Python packages in PATH and
        PYTHONPATH.
        """
        env = {**_ENV, **self.env, **_FIXED_ENV}
        env["PATH"] = f"{self.env['PATH']}:{path}" if "PATH" in self.env else path
        if any(mount.inside == PACKAGES for mount in self.mounts):
            env["PATH"] += f":{PACKAGES}/bin"
            env["PYTHONPATH"] = ":".join(
                filter(None, [PACKAGES, env.get("PYTHONPATH")])
            )
        return env


def why_not_writable(folder: str) -> str | None:
    """Why a folder can't be the workdir of a task, or a place; None if it can."""
    odd = (
        folder.startswith("//")
        or folder != posixpath.normpath(folder)
        or not folder.isprintable()
    )
    if odd or not folder.startswith("/") or {*',:"'} & {*folder}:
        return "it is no plain absolute path"
    if any(is_in(own, {folder}) or is_in(folder, {own}) for own in _OWN):
        return "the sandbox has its own files there"
    if is_in(folder, _NO_SYSTEM):
        return None
    if any(is_in(system, {folder}) or is_in(folder, {system}) for system in _SYSTEM):
        return "the system is there"
    return None


def is_in(path: str, folders: Iterable[str]) -> bool:
    """Whether it is one of the folders, or in one."""
    return any(
        path == folder or path.startswith(f"{folder.rstrip('/')}/")
        for folder in folders
    )


@dataclass(frozen=True)
class CommandResult:
    """The result of a command, with standard output and errors in order.

    Lines in the output say what was cut out of it, and why the
    sandbox ended the command.
    """

    exit: int  # -N if signal N ended it
    output: bytes
    cut: int = 0  # bytes
    timed_out: bool = False
    seconds: float = 0.0
    problem: str = ""  # why its exit status does not count

    @property
    def status(self) -> str:
        """The exit status, or the signal."""
        return f"signal {-self.exit}" if self.exit < 0 else f"exit {self.exit}"


@dataclass(frozen=True)
class TreeEntry:
    """A file, a link or an empty folder in the workspace."""

    path: str  # relative, with forward slashes
    size: int
    digest: str  # SHA-256 of the content, or of the target of a link
    mode: int = PLAIN  # of a file
    link: str | None = None  # its target
    folder: bool = False


class Sandbox(ABC):
    """An open sandbox. Paths are as inside, or relative to the workdir.

    ``read`` and ``write`` raise OSError like the system calls. All methods raise
    SandboxError if the sandbox is gone.
    """

    python = "python3"  # inside
    spec = SandboxSpec()

    def path(self, path: str) -> str:
        """The path as commands see it, which differs in the sandbox ``none`` only."""
        return path

    @abstractmethod
    async def run(
        self,
        command: CommandLine,
        *,
        timeout: float,
        env: Env | None = None,
        stdin: bytes = b"",
    ) -> CommandResult:
        """Run a command in the workdir."""

    @abstractmethod
    async def read(self, path: str, most: int) -> bytes:
        """Read the first ``most`` bytes of a file."""

    @abstractmethod
    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Write a file, with the folders above it; without a mode it keeps its own."""

    async def read_all(self, sizes: Mapping[str, int], most: int) -> dict[str, bytes]:
        """Read files up to their sizes, without those that can't be read.

        It stops once there are more than ``most`` bytes.
        """
        contents, paths = dict[str, bytes](), list(sizes)
        for at in range(0, len(paths), _FILES_AT_ONCE):
            batch = paths[at : at + _FILES_AT_ONCE]
            reading = (self.read(path, min(sizes[path], most + 1)) for path in batch)
            for path, data in zip(
                batch,
                await asyncio.gather(*reading, return_exceptions=True),
                strict=True,
            ):
                if isinstance(data, OSError):
                    continue  # unreadable, or gone in the meantime
                if isinstance(data, BaseException):
                    raise data
                contents[path] = data
                most -= len(data)
            if most < 0:
                break
        return contents

    async def write_all(self, files: Sequence[FileToWrite]) -> None:
        """Write files; OSError or SandboxError if one can't be written."""
        for at in range(0, len(files), _FILES_AT_ONCE):
            batch = files[at : at + _FILES_AT_ONCE]
            writing = (self.write(path, data, mode=mode) for path, data, mode in batch)
            await asyncio.gather(*writing)

    @abstractmethod
    async def tree(self, path: str = ".") -> list[TreeEntry]:
        """Files, links and empty folders below a folder, sorted;
        as many as the limits allow.
        """

    @abstractmethod
    async def listen(self, port: int) -> socket.socket:
        """A socket that listens on 127.0.0.1 inside, and is served outside;
        0 is any port.
        """

    @abstractmethod
    async def close(self) -> None:
        """End all its processes and remove what it wrote; safe to call twice."""


class SandboxKind(ABC):
    """A way to make sandboxes."""

    name: str

    @abstractmethod
    def why_not(self) -> str | None:
        """Why it can't be used here, and how to fix that; None if it works."""

    @abstractmethod
    async def open(self, spec: SandboxSpec) -> Sandbox:
        """SandboxError if it can't."""

    def failure(self) -> str:
        """Try to run a command: the error, or empty if it works."""
        # A caller, such as a notebook, may have a running event loop.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, self._try()).result()

    async def _try(self) -> str:
        try:
            async with asyncio.timeout(_TRY_SECONDS):
                sandbox = await self.open(SandboxSpec())
                try:
                    ran = await sandbox.run("true", timeout=_TRY_SECONDS)
                finally:
                    await sandbox.close()
        except TimeoutError:
            return f"it did not start within {_TRY_SECONDS:.0f} s"
        except (SandboxError, OSError) as error:
            return str(error).rstrip(".")
        return "" if ran.exit == 0 else f"the command true ended with {ran.exit}"


async def close_server(server: asyncio.Server) -> None:
    """Close a server, without the connections that asyncio is about
    to accept and would lose.
    """
    for listener in server.sockets:
        with suppress(NotImplementedError):  # Windows has another event loop
            asyncio.get_running_loop().remove_reader(listener)
    try:
        for _ in range(_ACCEPTING):
            await asyncio.sleep(0)
    finally:
        server.close()
