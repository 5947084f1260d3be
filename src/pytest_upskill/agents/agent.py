"""What it takes to be an agent."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Protocol

from ..models import Model, ModelSpec
from ..models.model import PROTOCOLS, ProtocolName
from ..trials.answer import Answer, Reply
from ..trials.trial import Question
from .recorder import Recorder
from .sandboxes.sandbox import SKILLS, Mount, Sandbox

Send = Callable[[Model], Awaitable[Answer]]


class Call(Protocol):
    """One call of a trial's model, through the engine: its limits, retries and budget apply.

    ``send`` makes the call in place of ``Model.ask``: the gateway passes a request on as it is.
    """

    async def __call__(self, question: Question, send: Send | None = None) -> Reply: ...


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
        self, sandbox: Sandbox, call: Call, recorder: Recorder, spec: ModelSpec
    ) -> Answer:
        """Carry out ``recorder.question`` with ``recorder.skills``: ``recorder.answer(stop)``.

        ``spec`` is its model, which is asked by ``call`` or through the gateway.
        All that goes between the agent and its model is told to the recorder as it happens, so the
        caller, which adds the files, may cancel this when the time is up and take what is there:
        ``recorder.answer("time")``. ``max_turns`` is the stop of an agent that reached that limit.
        NoAnswerError with the reason if its model gave no answer, SandboxError if that broke.
        """

    async def close(self) -> None:
        """Free what it holds, at the end of the run."""
        return  # or linters would take the method for an abstract one
