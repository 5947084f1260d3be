"""The questions to one model: queued, limited, retried."""

import asyncio
import math
from bisect import insort
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from .._util.keys import hide_keys, without_keys
from .._util.texts import one_line
from ..errors import ModelError, Spell, Text, spelled
from ..models import Model
from ..models.choosing import Chooser
from ..trials.answer import Answer, NoAnswer, Reply, Usage
from ..trials.trial import Question, Shared
from .pace import LONG, PATIENCE, Limit, Pace
from .prefixes import Prefixes, PrefixUse

if TYPE_CHECKING:
    from ..agents.agent import Send

_MAX_ATTEMPTS: Final = 5
# A question that was refused this often waits for all that were not:
# perhaps it is never taken.
_MAX_REFUSALS: Final = 4
# A filter may forbid one question, and one server of many may not know the key or the
# model. After answers, it takes this many fatal errors in a row to give up on a model.
_MAX_FATAL_ERRORS: Final = 3
STOPPED: Final = "not asked: the run was stopped"


def unexpected(bug: BaseException) -> str:
    """Why there is no answer after a bug of ours."""
    return f"unexpected error: {_shown_error(bug)}. Please report it"


def adapter_error(model: str, bug: BaseException) -> str:
    """Why there is no answer if an adapter raised something other than ModelError."""
    return f"{model}: the adapter raised {_shown_error(bug)}"


def over_budget(refusal: Text, spell: Spell) -> NoAnswer:
    """No answer to what was not asked."""
    return NoAnswer(spelled(refusal, spell), over_budget=True)


def _shown_error(bug: BaseException) -> str:
    try:
        return one_line(without_keys(repr(bug)), 200)
    except Exception:  # foreign code may raise what can't even be shown
        return type(bug).__name__


@dataclass(eq=False, slots=True)
class Job:
    """A question, its attempts so far, and its reply once there is one.

    Only the engine's thread settles it and waits for it.
    """

    question: Question
    number: int
    reply: Reply | None = None
    attempts: int = 0  # without refused ones
    refused: int = 0
    retries: int = 0  # after errors
    spent: float = 0.0  # seconds of attempts, and of the pauses after them
    started_at: float = 0.0  # of the last attempt
    paid: Usage | None = None  # for the last attempt; None is nothing
    send: "Send | None" = None  # asks in place of the model's ``ask``
    of_trial: bool = False  # a call of an agent's trial, whose number it has
    prefix_use: PrefixUse = field(default_factory=PrefixUse)
    # What the provider should cache, in the last attempt
    shared: tuple[Shared, ...] = ()
    task: "asyncio.Task[None] | None" = None  # of the last attempt
    outdated: Answer | None = None  # stored; used if the question can't be asked again
    not_renewed: str = ""  # why that was used
    # The key of its answer while this run asks it; empty if it needs no lease
    lease: str | None = None
    _watchers: list[Callable[[Reply], object]] = field(default_factory=list)

    @property
    def place(self) -> tuple[int, int]:
        """Where it is in the queue: by its number, but behind
        others if it was refused often.
        """
        return self.refused // _MAX_REFUSALS, self.number

    def may_retry(self, wait: float, error: ModelError, timeout: float) -> bool:
        """Whether to ask again after ``wait`` seconds."""
        return (
            error.transient
            and self.attempts < _MAX_ATTEMPTS
            and self.spent + wait < timeout
        )

    @property
    def used_stored(self) -> bool:
        """Whether it has a stored answer that no call of this run was to replace."""
        is_stored = isinstance(self.reply, Answer) and self.reply.stored
        return is_stored and self.outdated is None

    def settle(self, reply: Reply) -> None:
        if self.reply is not None:
            return  # The engine has given up.

        if isinstance(reply, NoAnswer) and self.outdated:
            self.not_renewed = reply.reason
            reply = self.outdated
        self.reply = hide_keys(reply)
        for watch in self._watchers:
            watch(self.reply)
        self._watchers.clear()

    def when_settled(self, watch: Callable[[Reply], object]) -> None:
        """Call ``watch`` with the reply, now or later."""
        if self.reply is None:
            self._watchers.append(watch)
        else:
            watch(self.reply)

    async def wait(self) -> Reply:
        settled = asyncio.Event()
        self.when_settled(lambda _: settled.set())
        await settled.wait()
        assert self.reply is not None
        return self.reply

    def future(self) -> "Future[Reply]":
        """The reply, for other threads."""
        future = Future[Reply]()
        self.when_settled(future.set_result)
        return future


@dataclass(eq=False)
class Lane:
    """The jobs of one model. The first starts alone: it shows whether calls work."""

    name: str
    limit: Limit  # of its server, which other models may share
    chooser: Chooser = field(default_factory=Chooser)
    waiting: list[Job] = field(default_factory=list)  # by their place
    pausing: set[Job] = field(default_factory=set)  # after an error
    held: list[Job] = field(default_factory=list)  # until their prefix is cached
    held_until: float = math.inf
    prefixes: Prefixes = field(default_factory=Prefixes)
    model: Model | None = None
    opening: bool = False
    in_flight: int = 0
    tried: bool = False
    answered: bool = False
    dead: str | None = None  # why nothing more is asked
    retries: int = 0
    fatal: int = 0  # fatal errors since the last answer
    pace: Pace = field(default_factory=Pace)

    def add(self, job: Job) -> None:
        """Queue a new job."""
        if not job.of_trial and not job.prefix_use.prefixes:
            job.prefix_use = self.prefixes.add(job.question)
        elif job.send is None and self.prefixes.min_tokens is not None:
            job.shared = ("system", "steps")  # the next turn sends them again
        self.enqueue(job)

    def enqueue(self, job: Job) -> None:
        insort(self.waiting, job, key=lambda job: job.place)

    def forget(self, job: Job) -> None:
        """Nobody waits for a job any more."""
        for queue in (self.waiting, self.held):
            if job in queue:
                queue.remove(job)
        self.pausing.discard(job)
        if job.task:
            job.task.cancel()

    @property
    def next(self) -> Job:
        """The question to ask next."""
        return self.waiting[0]

    def ready(self, now: float) -> bool:
        """Whether the next question may be asked now."""
        self._hold(now)
        return self.has_room() and self.pace.opens_at <= now

    def has_room(self) -> bool:
        """Whether the next question may be asked once it is time."""
        if not self.waiting or self.model is None:
            return False
        if self.pausing and self.pace.alone and not self.tried:
            return False
        model_limit = self.model.most_in_flight
        if model_limit is not None and self.in_flight >= model_limit:
            return False
        return self.limit.has_room() and self.pace.lets_in(self.in_flight)

    def take(self, now: float) -> Job:
        """Start a call with the next question."""
        self.in_flight += 1
        self.limit.in_flight += 1
        job = self.drop()
        job.started_at = now
        job.attempts += 1
        self.pace.start(now)
        if not job.of_trial:
            job.shared = job.prefix_use.start(now)
        return job

    def drop(self) -> Job:
        """Take the next question out of the lane."""
        return self.waiting.pop(0)

    def _hold(self, now: float) -> None:
        """Set questions aside until their prefix is cached."""
        if now >= self.held_until:
            self._release()
        while self.waiting:
            until = self.next.prefix_use.waits_until(now)
            if until <= now:
                break
            self.held.append(self.drop())
            self.held_until = min(self.held_until, until)

    def _release(self) -> None:
        for job in self.held:
            self.enqueue(job)
        self.held.clear()
        self.held_until = math.inf

    @property
    def to_retry(self) -> int:
        """How many questions wait to be asked again."""
        return len(self.pausing) + sum(job.refused > 0 for job in list(self.waiting))

    def end_call(self, job: Job) -> None:
        """The call ended, with an answer or without."""
        if job.prefix_use.end():
            self._release()
        self.in_flight -= 1
        self.limit.in_flight -= 1

    def note_answer(self, job: Job, now: float) -> None:
        self.answered = True
        self.fatal = 0
        self.limit.answered()
        if self.limit.may_queue:
            self.limit.deadlines.restart(now)
        self.pace.answered()
        job.prefix_use.answered(job.started_at)

    def waits_for_others(self) -> bool:
        """Whether the server may be busy with other calls of this lane."""
        return self.limit.may_queue and self.in_flight > 1

    def note_fatal_error(self) -> bool:
        """Returns whether all other questions would fail the same way."""
        self.fatal += 1
        return not self.answered or self.fatal >= _MAX_FATAL_ERRORS

    def note_failure(self, *, timed_out: bool = False) -> None:
        """A call failed without being refused."""
        if timed_out:
            self.limit.timed_out()
        else:
            self.limit.failed()
        if not self.tried:
            self.pace.alone = True

    def note_refusal(
        self, job: Job, error: ModelError, now: float, random: Random
    ) -> bool:
        """A call was refused: it will be repeated, which is no further attempt.

        Returns False if the server has taken nothing for too long.
        """
        job.attempts -= 1
        job.refused += 1
        self.limit.refused()
        if self.in_flight > 1:
            return True
        closed = self.pace.close(now, now - job.started_at, error.retry_after, random)
        if closed > LONG:
            self.limit.start_over()
        return closed <= PATIENCE

    def settle_all(self, reason: str) -> None:
        """Settle all jobs with ``reason``."""
        for queue in (self.waiting, self.pausing, self.held):
            jobs = list(queue)
            queue.clear()
            for job in jobs:
                job.settle(NoAnswer(reason))
