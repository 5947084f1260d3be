"""An endpoint without an engine: calls go straight to a real adapter,
with or without retries.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_upskill._util.keys import hide_keys
from pytest_upskill.agents.agent import Send
from pytest_upskill.agents.gateway.endpoint import Endpoint, Gateway
from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model, ModelSpec
from pytest_upskill.models.providers import PROVIDERS
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply
from pytest_upskill.trials.trial import Question, Task
from support.loopback import LoopbackServer
from support.loopback import Reply as Said

KEY = "sk-only-outside-4f7a1c9e2b"
GOOD = {
    "model": "model-1",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "Go."}],
}
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
                return hide_keys(answer)
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
    endpoint: Endpoint
    calls: Calls

    @property
    def url(self) -> str:
        return self.endpoint.url

    @property
    def token(self) -> str:
        return self.endpoint.token

    def answer(self, stop: str = "end") -> Answer:
        """What came of the trial so far."""
        recorder = Recorder(QUESTION)
        return recorder.answer(stop, self.endpoint.write_to(recorder))

    @property
    def findings(self) -> tuple[str, ...]:
        activity = self.answer().activity
        assert activity
        return activity.findings


@asynccontextmanager
async def open_endpoint(
    spec: ModelSpec,
    *,
    attempts: int = 1,
    question: Question = QUESTION,
) -> AsyncIterator[Opened]:
    calls, gateway = Calls(spec, attempts), Gateway()
    listener = socket.create_server(("127.0.0.1", 0))
    try:
        async with gateway.endpoint(question, spec, calls, listener) as endpoint:
            yield Opened(endpoint, calls)
    finally:
        await gateway.close()
        await calls.close()


async def settled(task: "asyncio.Future[Any]") -> Any:
    """The result of a task that must not take long."""
    async with asyncio.timeout(60):
        return await task


async def raw(opened: Opened, data: bytes, patience: float = 60) -> tuple[int, bytes]:
    """Send bytes as they are; returns the status and all that comes back,
    0 if nothing does.
    """
    port = int(opened.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(patience):
            writer.write(data)
            await writer.drain()
            reply = await reader.read(1_000_000)
            while reply and (more := await reader.read(1_000_000)):
                reply += more
    except (ConnectionError, TimeoutError):
        return 0, b""
    finally:
        writer.close()
    return (int(reply.split(b" ")[1]) if reply else 0), reply


def request(
    opened: Opened,
    target: str = "/v1/messages",
    body: Any = GOOD,
    *,
    method: str = "POST",
    token: str | None = "",
    host: str = "",
    more: str = "",
) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    host = host or opened.url.removeprefix("http://")
    head = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
    if token is not None:
        head += f"x-api-key: {token or opened.token}\r\n"
    head += f"{more}Content-Length: {len(data)}\r\n\r\n"
    return head.encode("utf-8", "surrogateescape") + data


def at_endpoint(
    test: Callable[[Opened], Awaitable[None]],
    provider: str = "anthropic",
    **options: Any,
) -> LoopbackServer:
    """Run a test at an open endpoint, then see that it still serves."""

    async def run(url: str) -> None:
        async with open_endpoint(spec_of(provider, url), **options) as opened:
            await test(opened)
            if not opened.endpoint.stop:
                path = (
                    "/v1/messages"
                    if provider == "anthropic"
                    else "/v1/chat/completions"
                )
                status, _ = await raw(opened, request(opened, path))
                assert status == 200

    with LoopbackServer(lambda _: Said("Done.")) as server:
        asyncio.run(run(server.url))
    return server
