"""Trials of agents: each waits for a place, works in the engine's loop, calls its model there."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from .._util.memory import available
from ..agents.agent import Call, Send
from ..errors import Spell, UpskillError
from ..trials.answer import Answer, NoAnswer, Reply, Usage
from ..trials.trial import Question
from .budget import Budget
from .lane import Job, Lane
from .reasons import STOPPED, unexpected
from .store import KnownAnswers

_SHARE: Final = 0.8  # of the memory that is available, for agents


class Calls(Call, Protocol):
    """The calls of a trial, those included that were made elsewhere."""

    def paid(self, usage: Usage) -> None:
        """A call of the trial was answered on another machine."""


class Trials(Protocol):
    """Who carries out trials."""

    @property
    def places(self) -> int | None:
        """How many can be handed out at once; None: as many as there is room for here."""

    @property
    def at_work(self) -> int | None:
        """How many of those that were handed out are at work; None: all."""

    @property
    def note(self) -> str:
        """What is to be told of them at the end."""

    def memory_of(self, agent: str) -> int:
        """Megabytes of this machine."""

    async def run(self, question: Question, call: Calls) -> Reply: ...

    async def close(self) -> None: ...


Begin = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]


def default_at_once() -> int:
    """Twice the cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return 2 * (len(affinity(0)) if affinity else os.cpu_count() or 1)


def memory_for_agents() -> float:
    """Megabytes that agents may take; without end where the system does not tell."""
    return _SHARE * available() / 10**6


@dataclass(eq=False)
class _AtWork:
    job: Job
    memory: int  # megabytes
    task: "asyncio.Task[None] | None" = None
    spent: list[Usage] = field(default_factory=list)  # on calls that were answered


@dataclass(frozen=True)
class _Calls:
    make: Callable[["_AtWork", Question, Send | None], Coroutine[None, None, Reply]]
    one: _AtWork

    async def __call__(self, question: Question, send: Send | None = None) -> Reply:
        return await self.make(self.one, question, send)

    def paid(self, usage: Usage) -> None:
        self.one.spent.append(usage)


class AgentJobs:
    """The places for agents, and who has one."""

    def __init__(
        self,
        open_trials: Callable[[], Trials] | None,
        at_once: int | None,
        lane_of: Callable[[str], Lane],
        pump: Callable[[], None],
        answers: KnownAnswers,
        budget: Budget,
        spell: Spell,
    ) -> None:
        self._open_trials = open_trials
        self._at_once = at_once or default_at_once()
        self._memory = memory_for_agents()
        self._lane_of = lane_of
        self._pump = pump
        self._answers = answers
        self._budget = budget
        self._spell = spell
        self._trials: Trials | None = None
        self._held_back = 0  # megabytes that an agent takes for which there was no memory left
        self._waiting: list[Job] = []
        self._at_work: list[_AtWork] = []

    @property
    def at_work(self) -> int:
        begun = self._trials.at_work if self._trials else None
        return len(self._at_work) if begun is None else begun

    @property
    def is_busy(self) -> bool:
        return bool(self._at_work or self._waiting)

    @property
    def turns(self) -> int:
        """Replies that the agents at work have got so far."""
        return sum(len(one.spent) for one in list(self._at_work))

    @property
    def note(self) -> str:
        """That there was less memory than places, if that is so, or what became of a cluster."""
        if not self._held_back:
            return self._trials.note if self._trials else ""
        return (
            f"Fewer than {self._at_once} agents ran at once: one takes about "
            f"{self._held_back:,} MB, and {self._memory:,.0f} MB of memory could be used."
        )

    def add(self, job: Job) -> None:
        self._waiting.append(job)

    def begin(self, dead: Mapping[str, str], start: Begin) -> None:
        """Start as many as there are places for; ``dead``: models that can't be asked, and why."""
        left = list[Job]()
        for job in self._waiting:
            if reason := dead.get(job.question.model):
                job.settle(NoAnswer(reason))
            elif len(self._at_work) < self._places and (one := self._placed(job)):
                self._at_work.append(one)
                one.task = start(self._work(one))
            else:
                left.append(job)
        self._waiting = left

    @property
    def _places(self) -> int:
        elsewhere = self._trials.places if self._trials else None
        return self._at_once if elsewhere is None else elsewhere

    def end(self, job: Job) -> None:
        """End one of them."""
        if job in self._waiting:
            self._waiting.remove(job)
            job.settle(NoAnswer(STOPPED))
        for one in self._at_work:
            if one.job is job and one.task and not one.task.cancelling():
                one.task.cancel()

    def stop(self, reason: str) -> None:
        """End all of them."""
        waiting, self._waiting = self._waiting, []
        for job in waiting:
            job.settle(NoAnswer(reason))
        for one in self._at_work:
            if one.task and not one.task.cancelling():  # once, or it could not close its sandbox
                one.task.cancel()

    async def close(self) -> None:
        if self._trials:
            await self._trials.close()

    def _placed(self, job: Job) -> _AtWork | None:
        """A place for a trial; None if there is no memory for it. One always has a place."""
        assert job.question.task
        assert self._open_trials
        if self._trials is None:
            self._trials = self._open_trials()
        memory = self._trials.memory_of(job.question.task.agent)
        taken = sum(one.memory for one in self._at_work)
        if self._at_work and taken + memory > self._memory:
            self._held_back = max(memory, self._held_back)
            return None
        return _AtWork(job, memory)

    async def _work(self, one: _AtWork) -> None:
        assert self._trials
        try:
            reply = await self._trials.run(one.job.question, _Calls(self._call, one))
        except asyncio.CancelledError:
            reply = NoAnswer(STOPPED)
        except UpskillError as error:
            reply = NoAnswer(error.message(self._spell))
        except Exception as bug:
            reply = NoAnswer(unexpected(bug))
        self._at_work.remove(one)
        if isinstance(reply, Answer):
            reply = reply.without_keys()
            if reply.stop != "time":  # another time it may be faster
                self._answers.put(one.job.question, reply)
        else:
            self._budget.lose(one.job.question, one.spent)
        one.job.settle(reply)
        self._pump()

    async def _call(self, one: _AtWork, question: Question, send: Send | None) -> Reply:
        """A call of a trial: it goes by the trial's number, and is stored with the trial."""
        lane, job = self._lane_of(question.model), Job(question, one.job.number, send=send)
        job.part = True
        lane.add(job)
        self._pump()
        try:
            reply = await asyncio.wrap_future(job.reply)
        except asyncio.CancelledError:
            lane.forget(job)
            raise
        if isinstance(reply, Answer):
            one.spent.append(reply.usage)
        return reply
