"""What a sandbox does for an agent, and what it takes to add one of either."""

import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from .._util.texts import slug
from ..models import Model, ModelSpec
from ..models.port import PROTOCOLS, ProtocolName
from ..trials.answer import Answer, Reply
from ..trials.task import Installed
from ..trials.trial import Question

if TYPE_CHECKING:
    from .recorder import Recorder

WORKSPACE: Final = "/workspace"  # as an agent sees it
SKILLS: Final = "/skills"  # where our own agent has its skills: /skills/NAME/SKILL.md
HOME: Final = "/home/agent"
PROGRAMS: Final = "/programs"  # agents that are programs of the host: /programs/NAME
PACKAGES: Final = "/packages"  # a mount of Python packages, if there is one: on PYTHONPATH and PATH


class SandboxError(Exception):
    """A sandbox could not be opened, or broke: the trial is errored, not failed."""


@dataclass(frozen=True)
class Limits:
    """What may be used inside of a sandbox, by all of its processes together."""

    memory: int = 4 * 2**30  # bytes
    processes: int = 512
    disk: int = 2**30  # bytes in all of its writable folders
    files: int = 100_000  # in the same
    file_size: int = 512 * 2**20  # bytes of one file
    output: int = 2**20  # bytes of output that a command's result keeps; the rest is dropped


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host that can be read inside."""

    host: str
    inside: str


@dataclass(frozen=True)
class Room:
    """How to furnish a sandbox."""

    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)  # besides PATH, HOME, LANG and TMPDIR
    network: bool = False
    image: str = ""
    limits: Limits = Limits()

    def with_packages(self, path: str) -> dict[str, str]:
        """The variables that let packages be found, besides what is on this PATH."""
        if not any(mount.inside == PACKAGES for mount in self.mounts):
            return {"PATH": path}
        return {"PATH": f"{path}:{PACKAGES}/bin", "PYTHONPATH": PACKAGES}


@dataclass(frozen=True)
class Ran:
    """What came of a command: its output and errors in one text, in order.

    A line in the middle tells what was cut, and one at the end why the sandbox ended the command.
    """

    exit: int  # -N if signal N ended it
    output: bytes
    cut: int = 0  # bytes left out of the middle
    timed_out: bool = False
    seconds: float = 0.0

    @property
    def how(self) -> str:
        """How it ended, in words."""
        return f"signal {-self.exit}" if self.exit < 0 else f"exit {self.exit}"


@dataclass(frozen=True)
class Entry:
    """A file, a link or an empty folder in the workspace."""

    path: str  # relative, with forward slashes
    size: int
    digest: str  # SHA-256 of the content, or of the target of a link
    executable: bool = False
    link: str | None = None  # its target
    folder: bool = False  # an empty one


class Sandbox(ABC):
    """An open sandbox: run a command, read, write. Paths are as inside, or in the workspace.

    ``read`` and ``write`` raise OSError as the same calls inside would. Anything raises
    SandboxError if the sandbox is gone.
    """

    def path(self, path: str) -> str:
        """What commands call this path: the same, unless nothing confines them (``none``)."""
        return path

    @abstractmethod
    async def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
    ) -> Ran:
        """Run a command in the workspace: a line for bash, or sh without one, or arguments.

        Where output was cut, or a limit ended the command, a line of the output says so.
        """

    @abstractmethod
    async def read(self, path: str, most: int) -> bytes:
        """The first ``most`` bytes of a file."""

    @abstractmethod
    async def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Write a file, with the folders above it."""

    @abstractmethod
    async def tree(self, path: str = WORKSPACE) -> list[Entry]:
        """The files, links and empty folders below one, sorted; as many as the limits allow."""

    @abstractmethod
    async def listen(self, port: int) -> socket.socket:
        """A socket that listens on 127.0.0.1 inside, to be served outside; 0 is any free port."""

    @property
    def findings(self) -> tuple[str, ...]:
        """What was tried inside and refused, in words, as far as the sandbox can see it."""
        return ()

    @abstractmethod
    async def close(self) -> None:
        """End all its processes and remove what it wrote; safe to call twice."""


class SandboxKind(ABC):
    """A way to make sandboxes."""

    name: str

    @abstractmethod
    def why_not(self, image: str = "") -> str | None:
        """Why it can't be used here, and what to do about it; None if it works."""

    @abstractmethod
    async def open(self, room: Room) -> Sandbox:
        """SandboxError if it can't."""


Send = Callable[[Model], Awaitable[Answer]]


class Call(Protocol):
    """One call of a trial's model, through the engine: its limits, retries and budget apply.

    ``send`` makes the call in place of ``Model.ask``: the gateway passes a request on as it is.
    """

    async def __call__(self, question: Question, send: Send | None = None) -> Reply: ...


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


class Agent(ABC):
    """What carries out a case; one object serves all trials of a run."""

    name: str
    memory: int = 50  # megabytes that a trial takes, about
    protocols: tuple[ProtocolName, ...] = PROTOCOLS  # it can ask models by
    skills_folder: str = SKILLS  # where it looks for skills
    bundled: tuple[str, ...] = ()  # skills of its own that can't be switched off

    def require(self) -> None:
        """SettingsError if it is not installed."""
        return  # or linters would take the method for an abstract one

    @abstractmethod
    def version(self) -> str:
        """Part of the key of stored answers; SettingsError if it can't be told."""

    def how_to_install(self, version: str) -> str:  # noqa: ARG002
        """The command that installs a version of it; empty if nobody knows."""
        return ""

    def mounts(self) -> tuple[Mount, ...]:
        """What of the host it needs inside."""
        return ()

    @abstractmethod
    async def run(
        self, sandbox: Sandbox, call: Call, recorder: "Recorder", spec: ModelSpec
    ) -> Answer:
        """Carry out ``recorder.question`` with ``recorder.skills``: ``recorder.answer(stop)``.

        ``spec`` is its model, which is asked by ``call`` or through a door of the gateway.
        All that goes between the agent and its model is told to the recorder as it happens, so the
        caller, which adds the files, may cancel this when the time is up and take what is there:
        ``recorder.answer("time")``. ``max_turns`` is the stop of an agent that reached that limit.
        NoAnswerError with the reason if its model gave no answer, SandboxError if that broke.
        """

    async def close(self) -> None:
        """Free what it holds, at the end of the run."""
        return  # or linters would take the method for an abstract one


class NoAnswerError(Exception):
    """The model of an agent could not be asked: the trial is errored."""
