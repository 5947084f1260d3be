"""The questions to one model on their way: queued, limited, asked again."""

import asyncio
import math
from bisect import insort
from collections import deque
from collections.abc import MutableSequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from heapq import merge
from random import Random
from threading import Condition, Lock
from typing import Any, Final

from ..agents.agent import Send
from ..errors import ModelError
from ..models import Model
from ..models.choosing import Chooser
from ..trials.answer import Answer, NoAnswer, Reply, Usage
from ..trials.trial import Question, Shared
from .pace import LONG, PATIENCE, Limit, Pace
from .prefixes import Prefixes, Use
from .quotas import Quotas

_MAX_ATTEMPTS: Final = 5
# A question that was refused this often waits for all others: perhaps no server ever takes it.
_MOST_REFUSED: Final = 4
# A filter may forbid one question, and one server of many may not know the key or the model. So
# many refusals in a row, after answers, are no accident.
_MOST_FATAL: Final = 3
_NO_LIMIT: Final = 1_000_000


_shared: Final = Condition()
_nobody: Final = list[Any]()


class ReplyToCome(Future[Reply]):
    """A reply that takes little room: a run has one for every question, until it ends.

    All share a condition, as each takes 800 bytes; so who waits has a lock of their own.
    """

    _result: Reply | None
    _done_callbacks: list[Any]
    _waiters: list[Any]

    def __init__(self) -> None:
        super().__init__()
        self._condition = _shared

    def done(self) -> bool:
        return self._result is not None or super().done()  # the first needs no lock

    def result(self, timeout: float | None = None) -> Reply:
        if not self.done():
            there = Lock()
            there.acquire()
            self.add_done_callback(lambda _: there.release())
            there.acquire(timeout=-1 if timeout is None else timeout)
        return super().result(timeout=0) if self._result is None else self._result

    def set_result(self, result: Reply) -> None:
        super().set_result(result)
        self._done_callbacks = self._waiters = _nobody  # they were called


@dataclass(eq=False, slots=True)
class Job:
    """A question, its attempts so far, and the reply to come."""

    question: Question
    number: int
    reply: "Future[Reply]" = field(default_factory=ReplyToCome)
    attempts: int = 0  # without refused ones
    refused: int = 0
    spent: float = 0.0  # seconds of attempts, and of the pauses after them
    asked: float = 0.0  # when the last attempt started
    call: int = 0  # its number in the lane
    paid: Usage | None = None  # for the last attempt; None is nothing
    send: Send | None = None  # asks in place of the model's ``ask``
    part: bool = False  # a call of a trial, whose number it has
    use: Use | None = None  # of the provider's cache
    shared: tuple[Shared, ...] = ()  # what the provider should keep, by the last attempt
    task: "asyncio.Task[None] | None" = None  # of the last attempt
    submitted: int = 0  # times in a batch that refused it

    def may_retry(self, wait: float, error: ModelError, timeout: float) -> bool:
        """Whether to ask again after ``wait`` seconds."""
        return error.transient and self.attempts < _MAX_ATTEMPTS and self.spent + wait < timeout

    def settle(self, reply: Reply) -> None:
        if not self.reply.done():  # else the engine gave up in the meantime
            self.reply.set_result(reply.without_keys())


@dataclass(eq=False)
class Lane:
    """The jobs of one model. The first starts alone: it shows whether any call can work."""

    name: str
    chooser: Chooser = field(default_factory=Chooser)
    waiting: deque[Job] = field(default_factory=deque)
    refused: list[Job] = field(default_factory=list)  # wait for the server, before all others
    stubborn: deque[Job] = field(default_factory=deque)  # refused often, wait for all others
    pausing: set[Job] = field(default_factory=set)  # wait after an error
    held: list[Job] = field(default_factory=list)  # wait for the first with their prefix
    held_until: float = math.inf
    prefixes: Prefixes = field(default_factory=Prefixes)
    by_batch: list[Job] = field(default_factory=list)  # gathered for one
    submitting: bool = False
    model: Model | None = None
    limit: Limit | None = None
    opening: bool = False
    in_flight: int = 0
    tried: bool = False
    answered: bool = False
    dead: str | None = None  # why nothing more is asked
    retries: int = 0
    fatal: int = 0  # fatal errors since the last answer

    def __post_init__(self) -> None:
        self._pace = Pace()
        self._quotas = Quotas()

    def add(self, job: Job) -> None:
        """Put a job in its place, by number; most come last."""
        if not job.part:
            job.use = self.prefixes.use_of(job.question)
        elif job.send is None and self.prefixes.least is not None:
            job.shared = ("system", "steps")  # which the next turn sends again
        if self.waiting and self.waiting[-1].number > job.number:
            insort(self.waiting, job, key=lambda job: job.number)
        else:
            self.waiting.append(job)

    def forget(self, job: Job) -> None:
        """Nobody waits for a job any more."""
        for queue in (self.waiting, self.refused, self.stubborn, self.held):
            if job in queue:
                queue.remove(job)
        self.pausing.discard(job)
        if job.task:
            job.task.cancel()

    @property
    def next(self) -> Job:
        """The question to ask next."""
        return self._queue()[0]

    def prove(self) -> None:
        """Stored answers show that calls work: none has to go alone."""
        if not self._pace.sent:
            self._pace.alone = False

    def ready(self, now: float) -> bool:
        """Whether the next question may be asked now."""
        self._hold(now)
        return self.has_room() and self.opens_at(now) <= now

    def opens_at(self, now: float) -> float:
        """When the next question may be asked, if nothing else happens until then."""
        return max(self._pace.opens_at, self._quotas.opens_at(now))

    def has_room(self) -> bool:
        """Whether the next question may be asked once it is time."""
        if not self._queue() or self.model is None or self.limit is None:
            return False
        if self.pausing and self._pace.alone and not self.tried:
            return False
        own = self.model.most_in_flight
        return (
            self.limit.has_room()
            and self.in_flight < (_NO_LIMIT if own is None else own)
            and self._pace.lets_in(self.in_flight)
        )

    def take(self, now: float) -> Job:
        """Start a call with the next question."""
        assert self.limit is not None
        self.in_flight += 1
        self.limit.in_flight += 1
        job = self.drop()
        job.asked = now
        job.attempts += 1
        job.call = self._pace.start(now)
        self._quotas.start(job.call, now)
        if job.use:
            job.shared = self.prefixes.start(job.use, now)
        return job

    def drop(self) -> Job:
        """Take the next question out of the lane."""
        job = self.next
        del self._queue()[0]
        return job

    def _queue(self) -> MutableSequence[Job]:
        """Where the next question is, if there is any."""
        return self.refused or self.waiting or self.stubborn

    def _hold(self, now: float) -> None:
        """Take questions out of the way that wait until their prefix is in the cache."""
        if now >= self.held_until:
            self._release()
        while (queue := self._queue()) and (use := queue[0].use):
            if (until := use.waits_until(now)) <= now:
                break
            self.held.append(self.drop())
            self.held_until = min(self.held_until, until)

    def _release(self) -> None:
        self.waiting = deque(merge(self.held, self.waiting, key=lambda job: job.number))
        self.held.clear()
        self.held_until = math.inf

    @property
    def is_busy(self) -> bool:
        """Whether questions are being asked, or wait for that, one by one."""
        return bool(self.in_flight or self._queue() or self.pausing or self.held)

    @property
    def to_retry(self) -> int:
        """How many questions wait to be asked again."""
        return len(self.pausing) + len(self.refused) + len(self.stubborn)

    def give_back(self, job: Job) -> None:
        """The call ended, somehow."""
        assert self.limit is not None
        if job.use and self.prefixes.end(job.use):
            self._release()
        self._quotas.ended(job.call)
        self.in_flight -= 1
        self.limit.in_flight -= 1

    def note_answer(self, job: Job, answer: Answer) -> None:
        assert self.limit is not None
        self.answered = True
        self.fatal = 0
        self.limit.answered()
        self._pace.answered(job.call)
        if job.use:
            self.prefixes.answered(job.use, job.asked)
        self._quotas.answered(job.call, answer.quotas, answer.usage)

    def is_hopeless(self) -> bool:
        """Note a fatal error; whether all other questions would meet it too."""
        self.fatal += 1
        return not self.answered or self.fatal >= _MOST_FATAL

    def note_failure(self) -> None:
        """A call failed without being refused."""
        assert self.limit is not None
        self.limit.failed()
        if not self.tried:
            self._pace.alone = True

    def note_refusal(self, job: Job, error: ModelError, now: float, random: Random) -> bool:
        """A call was refused: ask again later, which is no further attempt.

        Returns False if the server takes nothing for too long.
        """
        assert self.limit is not None
        job.attempts -= 1
        job.refused += 1
        self._quotas.refused(job.call, now)
        if job.use:
            self.prefixes.refused(job.use)
        if not self._pace.refused_again(job.call):
            self.limit.refused()
        if self.in_flight > 1:
            return True
        closed = self._pace.close(now, now - job.asked, error.retry_after, random)
        if closed > LONG:
            self.limit.start_over()
        return closed <= PATIENCE

    def ask_again(self, job: Job) -> None:
        """Put a refused question back into the queue."""
        self.retries += 1
        if job.refused % _MOST_REFUSED:
            insort(self.refused, job, key=lambda job: job.number)
        else:
            self.stubborn.append(job)

    def settle_all(self, reason: str) -> None:
        """Answer all that still waits with ``reason``."""
        jobs = [*self.refused, *self.waiting, *self.stubborn, *self.pausing]
        jobs += [*self.held, *self.by_batch]
        self.by_batch.clear()
        self.refused.clear()
        self.held.clear()
        self.stubborn.clear()
        self.waiting.clear()
        self.pausing.clear()
        for job in jobs:
            job.settle(NoAnswer(reason))
