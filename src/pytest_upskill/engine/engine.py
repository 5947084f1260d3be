"""The one place that calls models: an asyncio loop on one background thread.

It starts on a whole plan at once, in its order, and keeps as many calls in flight as the limit
allows; callers wait for the reply to their own question. Each model has a lane. The first
question of a lane goes alone: a wrong key or a wrong name is found by one call, and every
other question of that lane gets the same reply without being asked.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Final

from ..errors import ModelError, UpskillError
from ..models import Model
from ..records import NoAnswer, Reply
from ..texts import one_line
from ..trials import Plan, Question

STOPPED: Final = "not asked: the run was stopped"

OpenModel = Callable[[str], Awaitable[Model]]


@dataclass
class _Job:
    question: Question
    number: int
    reply: "Future[Reply]" = field(default_factory=Future)


@dataclass
class _Lane:
    """The questions to one model, and what is known of it."""

    name: str
    waiting: deque[_Job] = field(default_factory=deque)
    model: Model | None = None
    in_flight: int = 0
    tried: bool = False
    answered: bool = False
    dead: str | None = None

    def ready(self) -> bool:
        if not self.waiting:
            return False
        if not self.tried:
            return self.in_flight == 0
        limit = self.model.most_in_flight if self.model else None
        return limit is None or self.in_flight < limit


class Engine:
    """Asks questions and hands out replies; safe to use from any thread."""

    def __init__(self, open_model: OpenModel, *, concurrency: int, timeout: float) -> None:
        self._open_model = open_model
        self._concurrency = concurrency
        self._timeout = timeout
        self._jobs: dict[str, _Job] = {}
        self._lanes: dict[str, _Lane] = {}
        self._in_flight = 0
        self._stopped = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # Called from other threads.

    def start(self, plan: Plan) -> None:
        """Begin to ask all that a plan holds."""
        self._submit(plan.questions())

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        """The replies to some questions, asked now unless they were before; waits for them."""
        return [future.result() for future in self._submit(questions)]

    def replies_to(self, keys: Sequence[str]) -> "list[Future[Reply]] | None":
        """The coming replies to questions known by their keys; None if one is not known."""
        with self._lock:
            jobs = [self._jobs.get(key) for key in keys]
        return [job.reply for job in jobs if job] if all(jobs) else None

    def stop(self) -> None:
        """Ask nothing more; what is in flight may still end."""
        self._stopped = True
        if self._loop:
            self._loop.call_soon_threadsafe(self._drop_waiting)

    def close(self) -> None:
        """Stop, end what is in flight, close the models, end the thread."""
        self._stopped = True
        if self._loop and self._thread:
            asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = None

    def _submit(self, questions: Iterable[Question]) -> "list[Future[Reply]]":
        new: list[_Job] = []
        futures: list[Future[Reply]] = []
        with self._lock:
            for question in questions:
                job = self._jobs.get(question.key)
                if job is None:
                    job = self._jobs[question.key] = _Job(question, len(self._jobs))
                    if self._stopped:
                        job.reply.set_result(NoAnswer(STOPPED))
                    else:
                        new.append(job)
                futures.append(job.reply)
            if new:
                self._running_loop().call_soon_threadsafe(self._enqueue, new)
        return futures

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="upskill-engine", daemon=True
            )
            self._thread.start()
        return self._loop

    # Called on the engine's own thread.

    def _enqueue(self, jobs: list[_Job]) -> None:
        for job in jobs:
            lane = self._lanes.setdefault(job.question.model, _Lane(job.question.model))
            lane.waiting.append(job)
        self._pump()

    def _pump(self) -> None:
        """Start as many calls as the limits allow, the earliest question first."""
        if self._stopped:
            return self._drop_waiting()
        for lane in self._lanes.values():
            if lane.dead:
                self._settle_all(lane, lane.dead)
        while self._in_flight < self._concurrency:
            ready = [lane for lane in self._lanes.values() if lane.ready()]
            if not ready:
                return None
            lane = min(ready, key=lambda lane: lane.waiting[0].number)
            lane.in_flight += 1
            self._in_flight += 1
            task = asyncio.get_running_loop().create_task(self._run(lane, lane.waiting.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return None

    async def _run(self, lane: _Lane, job: _Job) -> None:
        try:
            reply = await self._reply(lane, job.question)
        except asyncio.CancelledError:
            reply = NoAnswer(STOPPED)
        lane.in_flight -= 1
        self._in_flight -= 1
        lane.tried = True
        job.reply.set_result(reply)
        self._pump()

    async def _reply(self, lane: _Lane, question: Question) -> Reply:
        try:
            if lane.model is None:
                lane.model = await self._open_model(lane.name)
            started = time.monotonic()
            async with asyncio.timeout(self._timeout):
                answer = await lane.model.ask(question)
            lane.answered = True
            return replace(answer, seconds=time.monotonic() - started)
        except TimeoutError:
            error = f"no answer within {self._timeout:g} s. Raise --skill-timeout, or ask less"
            return NoAnswer(f"{lane.name}: {error}")
        except ModelError as model_error:
            reason = f"{lane.name}: {model_error}"
            # Nobody there from the first question on: asking the rest would only take time.
            if model_error.fatal or (model_error.unreachable and not lane.answered):
                lane.dead = reason
            return NoAnswer(reason)
        except UpskillError as error_:
            lane.dead = str(error_)
            return NoAnswer(lane.dead)
        except Exception as bug:
            # An adapter broke its promise: one trial errs with a word of what it was, and the
            # engine, which everybody waits for, lives on.
            return NoAnswer(f"{lane.name}: internal error, {one_line(repr(bug), 200)}")

    def _settle_all(self, lane: _Lane, reason: str) -> None:
        while lane.waiting:
            lane.waiting.popleft().reply.set_result(NoAnswer(reason))

    def _drop_waiting(self) -> None:
        for lane in self._lanes.values():
            self._settle_all(lane, STOPPED)

    async def _shut_down(self) -> None:
        self._drop_waiting()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for lane in self._lanes.values():
            if lane.model:
                await lane.model.close()
