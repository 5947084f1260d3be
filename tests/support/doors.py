"""A door without an engine: calls go straight to a real adapter, as one attempt, or as the engine
would retry them."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_upskill.agents.gateway import Door, Gateway
from pytest_upskill.agents.port import Send
from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model, ModelSpec
from pytest_upskill.models.names import PROVIDERS
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply
from pytest_upskill.trials.task import Task
from pytest_upskill.trials.trial import Question

KEY = "sk-only-outside-4f7a1c9e2b"
QUESTION = Question("m", "", (("user", "Open the gate."),), 1000, 1, task=Task("cli"))


_BASES = {"anthropic": "", "gemini": "/v1beta/openai"}


def spec_of(provider: str, url: str, **changed: Any) -> ModelSpec:
    base = f"{url}{_BASES.get(provider, '/v1')}"
    return replace(ModelSpec("m", PROVIDERS[provider], "model-1", base), **changed)


@dataclass
class Calls:
    """Stands for the engine: up to ``attempts`` of each call."""

    spec: ModelSpec
    attempts: int = 1
    questions: list[Question] = field(default_factory=list)
    errors: list[ModelError] = field(default_factory=list)
    model: Model | None = None

    async def __call__(self, question: Question, send: Send | None = None) -> Reply:
        self.questions.append(question)
        if self.model is None:
            self.model = await self.spec.provider.open(self.spec, 30)
        for _ in range(self.attempts):
            try:
                answer = await (send(self.model) if send else self.model.ask(question))
                return answer.without_keys()
            except ModelError as error:
                self.errors.append(error)
                if not error.transient:
                    break
        return NoAnswer(str(self.errors[-1]))

    async def close(self) -> None:
        if self.model:
            await self.model.close()


@dataclass
class Opened:
    door: Door
    calls: Calls

    @property
    def url(self) -> str:
        return self.door.url

    @property
    def token(self) -> str:
        return self.door.token

    def answer(self, stop: str = "end") -> Answer:
        """What came of the trial so far."""
        recorder = Recorder(QUESTION)
        return recorder.answer(stop, self.door.tell(recorder))

    @property
    def findings(self) -> tuple[str, ...]:
        activity = self.answer().activity
        assert activity
        return activity.findings


@asynccontextmanager
async def open_door(
    spec: ModelSpec,
    *,
    attempts: int = 1,
    question: Question = QUESTION,
) -> AsyncIterator[Opened]:
    calls, gateway = Calls(spec, attempts), Gateway()
    listener = socket.create_server(("127.0.0.1", 0))
    try:
        async with gateway.door(question, spec, calls, listener) as door:
            yield Opened(door, calls)
    finally:
        await gateway.close()
        await calls.close()


async def settled(task: "asyncio.Future[Any]") -> Any:
    """The result of a task that must not take long."""
    async with asyncio.timeout(20):
        return await task
