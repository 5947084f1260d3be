"""What a feature sets up around the trials of a case."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from .._util.texts import digest
from ..skills.case_forms import CaseForm
from ..trials.answer import Answer
from ..trials.transcript import Tool
from .sandboxes.sandbox import Sandbox

# From arguments, and the longest text, to the text and whether the call failed.
CallTool = Callable[[dict[str, Any], int], Awaitable[tuple[str, bool]]]


class PartTool(NamedTuple):
    """A tool for our own agent, which is called outside of the sandbox."""

    tool: Tool
    call: CallTool


class ServerProgram(NamedTuple):
    """How an agent starts an MCP server in its sandbox."""

    name: str
    name_in_plugin: str  # where agents name servers after their plugin
    command: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Prepared:
    """What a part has prepared for an agent, and adds to its answer."""

    add_to: Callable[[Answer], Answer]
    tools: tuple[PartTool, ...] = ()
    servers: tuple[ServerProgram, ...] = ()


class TrialPart(ABC):
    """What stands around each trial of a case, the same in all arms: a frozen value."""

    path: ClassVar[str] = ""  # a folder inside that comes first on PATH

    @property
    def digest(self) -> str:
        """A key of all of it."""
        return digest(repr(self))

    @property
    def servers(self) -> tuple[str, ...]:
        """The MCP servers that an agent has to be given."""
        return ()

    @property
    def checks(self) -> tuple[Any, ...]:
        """A `Check` of every answer for each that nobody has to write."""
        return ()

    def tool_name(self, written: str) -> str:
        """The name in transcripts of a tool that agents and people call differently."""
        return written

    @abstractmethod
    def around(self, sandbox: Sandbox) -> AbstractAsyncContextManager[Prepared]:
        """Prepare an open sandbox for its agent, and clean up once that has ended."""


class PartReader(ABC):
    """Reads a part of cases, whose files are in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def part_of(self, form: CaseForm) -> TrialPart | None:
        """The part of a case. CasesError if a file can't be used; the paths of a
        FormError start at the case.
        """

    def notes(self) -> tuple[str, ...]:
        """What a run says of files that are left out."""
        return ()
