"""The engine on a simulated clock, where a busy server takes no time to wait for."""

import asyncio
import selectors
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from pytest_upskill.engine import Engine, ModelFacts
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model
from pytest_upskill.models.sdk_errors import retry_after
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply, Usage
from pytest_upskill.trials.plan import Plan, PlannedCase
from pytest_upskill.trials.trial import Question, Trial
from support.busy import Busy, Verdict

Event = tuple[selectors.SelectorKey, int]
START = 6000.0  # of the clock; a whole minute
MOST_CALLS = 10_000  # to one model, many times what any test needs


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer: hours pass in no time."""

    def __init__(self) -> None:
        self.clock = START
        loop = self

        class Jumping(selectors.DefaultSelector):
            def select(self, timeout: float | None = None) -> list[Event]:
                if timeout is None:
                    return super().select(None)
                if found := super().select(0):
                    return found
                loop.clock += timeout
                return found

        super().__init__(Jumping())

    def time(self) -> float:
        return self.clock


class SimulatedModel(Model):
    """A model behind a busy server, a few milliseconds away."""

    def __init__(
        self, server: Busy, away: float = 0.01, endpoint: str = "server"
    ) -> None:
        self.server = server
        self.away = away
        self._endpoint = endpoint
        self.asked: list[str] = []

    @property
    def endpoint(self) -> str:
        return self._endpoint

    def visit(self, _question: Question, now: float) -> Verdict:
        return self.server.visit(now)

    async def ask(self, question: Question) -> Answer:
        loop = asyncio.get_running_loop()
        self.asked.append(question.messages[-1][1])
        # Else a test would go on until its time is over
        if len(self.asked) > MOST_CALLS:
            raise ModelError(f"a storm of more than {MOST_CALLS:,} calls", fatal=True)
        await asyncio.sleep(self.away / 2)
        verdict = self.visit(question, loop.time())
        await asyncio.sleep(
            self.away / 2 + (self.server.latency if verdict.taken else 0.0)
        )
        if not verdict.taken:
            wait = retry_after(
                verdict.headers, datetime.fromtimestamp(loop.time(), UTC)
            )
            raise ModelError("429 from the server", rate_limited=True, retry_after=wait)
        cost = self.server.cost
        return Answer(question.messages[-1][1].upper(), Usage(cost - 5, 5, 0))


@dataclass
class Outcome:
    """A simulated run."""

    replies: list[Reply]
    seconds: float

    @property
    def reasons(self) -> list[str]:
        """Why there are no answers."""
        return [reply.reason for reply in self.replies if isinstance(reply, NoAnswer)]


def simulated(
    monkeypatch: pytest.MonkeyPatch,
    models: Mapping[str, Model],
    questions: Sequence[Question],
    *,
    in_flight: int = 64,
    timeout: float = 120,
) -> Outcome:
    """Ask all questions on a simulated clock."""

    async def open_model(name: str) -> Model:
        return models[name]

    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "new_event_loop", SimulatedLoop)
        engine = Engine(
            ModelFacts(open_model, timeout=lambda _: timeout),
            concurrency=in_flight,
        )
        engine._scheduler.calls.random.seed(0)
        trials = tuple(Trial("s", "c", one.model, "skill", 1, one) for one in questions)
        try:
            engine.start(Plan((), (PlannedCase("nodeid", "s", "c", "m", trials),)))
            replies = engine.ask(questions)
            assert isinstance(engine._loop, SimulatedLoop)
            return Outcome(replies, engine._loop.clock - START)
        finally:
            engine.close()


def questions_to(model: str, number: int) -> list[Question]:
    return [
        Question(model, "", (("user", f"{model} {n}"),), 100, 1) for n in range(number)
    ]
