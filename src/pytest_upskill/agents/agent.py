"""What it takes to be an agent."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from ..models import Model, ModelSpec
from ..models.model import PROTOCOLS, ProtocolName
from ..trials.answer import Answer, Reply
from ..trials.trial import Question, Task
from .logins import Login
from .recorder import Recorder
from .sandboxes.sandbox import SKILLS, Mount, Sandbox

NO_MCP: Final = "it can't be given the MCP servers of the case"
Send = Callable[[Model], Awaitable[Answer]]


class Call(Protocol):
    """A call of the trial's model by the engine, with its limits, retries and budget.

    ``send`` replaces ``Model.ask``: the gateway passes a request on as it is.
    """

    async def __call__(self, question: Question, send: Send | None = None) -> Reply: ...


class Agent(ABC):
    """What carries out a case; one object serves all trials of a run."""

    name: str
    memory: int = 50  # megabytes of a trial, about
    protocols: tuple[ProtocolName, ...] = PROTOCOLS  # that it speaks with models
    skills_folder: str = SKILLS  # where it looks for skills
    bundled: tuple[str, ...] = ()  # skills that it always has
    login: Login | None = None  # of its vendor, which its requests may carry
    mcp: bool = False  # whether it can be given MCP servers
    takes_answers: bool = False  # whether it goes on with what UserTurns say

    def require(self) -> None:
        """SettingsError if it is not installed."""
        return  # or linters would take the method for an abstract one

    @abstractmethod
    def version(self) -> str:
        """Part of the key of stored answers; SettingsError if it can't be found out."""

    def how_to_install(self, version: str) -> str:  # noqa: ARG002
        """The command that installs a version of it; empty if unknown."""
        return ""

    def mounts(self) -> tuple[Mount, ...]:
        """Files and folders of the host that it needs inside."""
        return ()

    def answer_at_once(self, task: Task) -> Answer | None:  # noqa: ARG002
        """The answer to a task that needs no sandbox; None if it does, as mostly."""
        return None

    @abstractmethod
    async def run(
        self, sandbox: Sandbox, call: Call, recorder: Recorder, spec: ModelSpec
    ) -> Answer:
        """Carry out ``recorder.question`` with ``recorder.skills``:
        ``recorder.answer(stop)``.

        ``spec`` is its model, which is asked by ``call`` or through the gateway.
        Messages, replies and results go to the recorder as they happen, so the
        caller may cancel this when the time is up, and use
        ``recorder.answer("time")``. The caller adds the files. An agent that reached
        its limit of turns stops with ``max_turns``. NoAnswerError if its model gave
        no answer, SandboxError if the sandbox broke.
        """

    async def close(self) -> None:
        """Free what it holds, at the end of the run."""
        return  # or linters would take the method for an abstract one
