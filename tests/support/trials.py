"""Trials of agents without a sandbox, and trials whose time is not the machine's."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, Final, TypeVar

import pytest

from pytest_upskill.agents.agent import Agent, Call
from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.agents.sandboxes.sandbox import Sandbox, SandboxKind, SandboxSpec
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.scripted import ScriptedProvider
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply
from pytest_upskill.trials.trial import Question, Task
from support.agents import Command, MemorySandbox, no_commands
from support.simulated_clock import SimulatedLoop

T = TypeVar("T")


def trial_question(text: str, model: str = "m", **task: object) -> Question:
    return Question(
        model,
        "",
        (("user", text),),
        100,
        1,
        task=Task("fake", **task),  # type: ignore[arg-type]
    )


class MemoryKind(SandboxKind):
    """Opens sandboxes in memory, and keeps them to be looked at."""

    name = "memory"

    def __init__(self, command: Command = no_commands) -> None:
        self.opened = list[tuple[SandboxSpec, MemorySandbox]]()
        self.closed = 0
        self._command = command

    def why_not(self, image: str = "") -> str | None:  # noqa: ARG002
        return None

    async def open(self, room: SandboxSpec) -> Sandbox:
        kind = self

        class Counted(MemorySandbox):
            async def close(self) -> None:
                kind.closed += 1

        sandbox = Counted(command=self._command)
        self.opened.append((room, sandbox))
        return sandbox


SPEC = ModelSpec("m", ScriptedProvider("scripted", ""), "m")


def spec_of(name: str) -> ModelSpec:  # noqa: ARG001
    """Of a model that nobody asks through a gateway."""
    return SPEC


Act = Callable[[Sandbox, Call, Recorder], Awaitable[Answer]]


class FakeAgent(Agent):
    """Does what a test says."""

    name = "fake"

    def __init__(self, act: Act, *, memory: int = 50) -> None:
        self._act = act
        self.memory = memory

    def version(self) -> str:
        return "1"

    async def run(
        self,
        sandbox: Sandbox,
        call: Call,
        recorder: Recorder,
        spec: ModelSpec,  # noqa: ARG002
    ) -> Answer:
        return await self._act(sandbox, call, recorder)


class FakeTrials:
    """Trials whose agent asks its model a few times and answers with what it said."""

    places: Final = None
    at_work: Final = None
    note: Final = ""

    def __init__(self, turns: int = 2, memory: int = 50) -> None:
        self._turns = turns
        self._memory = memory
        self.begun = list[str]()
        self.now = self.most = 0
        self.closed = False

    def memory_of(self, task: Task) -> int:  # noqa: ARG002
        return self._memory

    async def run(self, question: Question, call: Call) -> Reply:
        text = question.messages[0][1]
        self.begun.append(text)
        self.now += 1
        self.most = max(self.most, self.now)
        said = list[str]()
        try:
            for turn in range(self._turns):
                asked = replace(
                    question, messages=(("user", f"{text}{turn}"),), task=None
                )
                reply = await call(asked)
                if isinstance(reply, NoAnswer):
                    return reply
                said.append(reply.text)
        finally:
            self.now -= 1
        return Answer(" ".join(said))

    async def close(self) -> None:
        self.closed = True


class _OneThreadLoop(SimulatedLoop):
    """What would run in a thread is done at once: no timer can overtake it."""

    def run_in_executor(  # type: ignore[override]
        self,
        executor: object,  # noqa: ARG002
        func: Callable[..., T],
        *args: Any,
    ) -> "asyncio.Future[T]":
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def run_simulated(work: Coroutine[Any, Any, T]) -> T:
    """The result of work that has no sockets: its clock moves
    only while nothing else can.
    """
    with asyncio.Runner(loop_factory=_OneThreadLoop) as runner:
        return runner.run(work)


def end_time_once(
    monkeypatch: pytest.MonkeyPatch, condition: Callable[[], bool]
) -> None:
    """Stop the clock of trials just before their limit, until a condition holds."""
    seconds = property(lambda clock: clock.limit - (0.0 if condition() else 0.01))
    monkeypatch.setattr("pytest_upskill.agents.agent_trials._Clock.seconds", seconds)
