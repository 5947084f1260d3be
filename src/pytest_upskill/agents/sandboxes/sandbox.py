"""The port to a sandbox: where the commands of an agent run, and what they may use there."""

import asyncio
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from ...skills.task_forms import DEFAULT_WORKDIR

WORKSPACE: Final = DEFAULT_WORKDIR  # as an agent sees it
SKILLS: Final = "/skills"  # where our own agent has its skills: /skills/NAME/SKILL.md
HOME: Final = "/home/agent"
PLUGINS: Final = f"{HOME}/plugins"  # where a plugin is that is under test: PLUGINS/NAME
PROGRAMS: Final = "/programs"  # of the host: /programs/NAME
PACKAGES: Final = "/packages"  # Python packages: on PYTHONPATH and PATH
MCP: Final = "/mcp"  # the stand-in for MCP servers, and what it answers
_TRY_SECONDS: Final = 60.0
_ACCEPTING: Final = 3  # steps of the loop from a connection to its protocol

CommandLine = str | Sequence[str]  # for bash (or sh without it), or arguments
Env = Mapping[str, str]


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


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host, read-only inside."""

    host: str
    inside: str


@dataclass(frozen=True)
class SandboxSpec:
    """What a sandbox is to have."""

    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)  # besides PATH, HOME, LANG and TMPDIR
    network: bool = False
    image: str = ""
    limits: SandboxLimits = SandboxLimits()

    def with_packages(self, path: str) -> dict[str, str]:
        """PATH, and PYTHONPATH, with the Python packages if there are any."""
        if not any(mount.inside == PACKAGES for mount in self.mounts):
            return {"PATH": path}
        return {"PATH": f"{path}:{PACKAGES}/bin", "PYTHONPATH": PACKAGES}


@dataclass(frozen=True)
class CommandResult:
    """The result of a command, with standard output and errors in order.

    Lines in the output say what was cut out of it, and why the sandbox ended the command.
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
    executable: bool = False
    link: str | None = None  # its target
    folder: bool = False


class Sandbox(ABC):
    """An open sandbox. Paths are as inside, or relative to the workspace.

    ``read`` and ``write`` raise OSError like the system calls. All methods raise SandboxError if
    the sandbox is gone.
    """

    python = "python3"  # inside

    def path(self, path: str) -> str:
        """The path as commands see it, which differs in the sandbox ``none`` only."""
        return path

    @abstractmethod
    async def run(
        self, command: CommandLine, *, timeout: float, env: Env | None = None, stdin: bytes = b""
    ) -> CommandResult:
        """Run a command in the workspace."""

    @abstractmethod
    async def read(self, path: str, most: int) -> bytes:
        """Read the first ``most`` bytes of a file."""

    @abstractmethod
    async def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Write a file, with the folders above it."""

    @abstractmethod
    async def tree(self, path: str = WORKSPACE) -> list[TreeEntry]:
        """Files, links and empty folders below a folder, sorted; as many as the limits allow."""

    @abstractmethod
    async def listen(self, port: int) -> socket.socket:
        """A socket that listens on 127.0.0.1 inside, and is served outside; 0 is any port."""

    @property
    def findings(self) -> tuple[str, ...]:
        """What was tried inside and refused, as far as the sandbox can see it."""
        return ()

    @abstractmethod
    async def close(self) -> None:
        """End all its processes and remove what it wrote; safe to call twice."""


class SandboxKind(ABC):
    """A way to make sandboxes."""

    name: str

    @abstractmethod
    def why_not(self, image: str = "") -> str | None:
        """Why it can't be used here, and how to fix that; None if it works."""

    @property
    def limited_by(self) -> str:
        """Who limits memory and processes."""
        return self.name

    @abstractmethod
    async def open(self, spec: SandboxSpec) -> Sandbox:
        """SandboxError if it can't."""

    def failure(self, image: str = "") -> str:
        """Try to run a command: the error, or empty if it works.

        It runs in a thread, so that callers may have a running event loop.
        """
        reasons = list[str]()

        def try_it() -> None:
            try:
                reasons.append(asyncio.run(asyncio.wait_for(self._tried(image), _TRY_SECONDS)))
            except (SandboxError, OSError) as error:
                reasons.append(str(error).rstrip("."))
            except TimeoutError:
                reasons.append(f"it did not start within {_TRY_SECONDS:.0f} s")

        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
        return reasons[0] if reasons else "it could not be tried"

    async def _tried(self, image: str) -> str:
        sandbox = await self.open(SandboxSpec(image=image))
        try:
            ran = await sandbox.run("true", timeout=_TRY_SECONDS)
            return "" if ran.exit == 0 else f"the command true ended with {ran.exit}"
        finally:
            await sandbox.close()


async def close_server(server: asyncio.Server) -> None:
    """Close a server, without the connections that asyncio is about to accept and would lose."""
    for listener in server.sockets:
        with suppress(NotImplementedError):  # Windows has another event loop
            asyncio.get_running_loop().remove_reader(listener)
    try:
        for _ in range(_ACCEPTING):
            await asyncio.sleep(0)
    finally:
        server.close()
