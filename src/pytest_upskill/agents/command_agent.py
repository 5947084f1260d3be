"""Agents that are commands: they run in the sandbox and reach their model by a door."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from .._util.texts import one_line
from ..models import ModelSpec
from ..trials.answer import Answer
from .gateway import Door, Gateway
from .port import Agent, Call, NoAnswerError, Ran, Sandbox
from .recorder import Recorder

_NO_END: Final = 7 * 86_400.0  # seconds; the trial has its own time, and ends the command with it


@dataclass(frozen=True)
class Command:
    """How to start an agent in its workspace."""

    arguments: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""


class CommandAgent(Agent):
    """A command with a door. What it did is told by what went through the door alone.

    Its exit status counts only where it left no answer: some agents exit with 0 after an error.
    """

    def __init__(self, spec_of: Callable[[str], ModelSpec]) -> None:
        self._spec_of = spec_of  # of a model by its name in the run
        self._gateway = Gateway()

    @abstractmethod
    async def prepare(self, sandbox: Sandbox, door: Door, recorder: Recorder) -> Command:
        """Write the agent's settings into the sandbox, and say how it is started.

        It asks for ``door.model`` at ``door.url`` with ``door.token`` as its key.
        """

    async def run(self, sandbox: Sandbox, call: Call, recorder: Recorder) -> Answer:
        question = recorder.question
        spec = self._spec_of(question.model)
        listener = await sandbox.listen(0)
        async with self._gateway.door(question, spec, call, listener) as door:
            command = await self.prepare(sandbox, door, recorder)
            try:
                ran = await sandbox.run(
                    command.arguments, timeout=_NO_END, env=command.env, stdin=command.stdin
                )
            finally:  # also if its time is up
                final = door.tell(recorder)
        return self._answer(door, ran, recorder, final)

    def _answer(self, door: Door, ran: Ran, recorder: Recorder, final: str) -> Answer:
        last = door.record.last
        if door.stop:
            return recorder.answer(door.stop, final)
        if door.no_answer:
            raise NoAnswerError(door.no_answer)
        if last is None:
            raise NoAnswerError(f"{self.name} asked its model nothing ({_told(ran)})")
        if last.calls and ran.exit:
            raise NoAnswerError(f"{self.name} broke off after a tool call ({_told(ran)})")
        return recorder.answer("end" if last.stop == "tools" else last.stop, final)

    async def close(self) -> None:
        await self._gateway.close()


def _told(ran: Ran) -> str:
    """How a command ended, and its last words."""
    lines = ran.output.decode("utf-8", "replace").strip().splitlines()
    return f"{ran.how}: {one_line(lines[-1], 200)}" if lines else ran.how
