"""Trials of agents: each waits for a place, and runs on the engine's loop.

There are as many places as the memory that this process could use has room for.
"""

import asyncio
from bisect import insort
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from .._util.keys import hide_keys
from ..checks.judging import is_worth_keeping
from ..errors import Spell, UpskillError
from ..trials.answer import Answer, NoAnswer, Reply
from ..trials.answer_times import dated
from ..trials.transcript import Activity
from ..trials.trial import Question, Task
from .budget import Budget
from .forecast import PaidCall
from .known_replies import KnownReplies
from .lane import STOPPED, Job, Lane, over_budget, unexpected
from .machine import default_at_once, memory_for_agents

if TYPE_CHECKING:
    from ..agents.agent import Call, Send


class Trials(Protocol):
    """What carries out trials."""

    def memory_of(self, task: Task) -> int:  # noqa: ARG002
        """Megabytes of this machine."""
        return 0

    async def run(self, question: Question, call: "Call") -> Reply: ...

    async def close(self) -> None:
        """Free what trials hold, at the end of the run."""
        return  # else type checkers take the method for an abstract one


@dataclass(frozen=True)
class AgentPlaces:
    """Who carries out trials, and how many at once."""

    open_trials: Callable[[], Trials] | None = None
    at_once: int | None = None  # None: as many as this machine has cores for


class Queue(Protocol):
    """What trials need of the scheduler."""

    lanes: dict[str, Lane]

    def lane(self, name: str) -> Lane: ...
    def waits_for_judge(self, job: Job) -> bool: ...
    def lease(self, jobs: Sequence[Job]) -> set[Job]: ...
    def begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]: ...
    def pump_soon(self) -> None: ...


@dataclass(eq=False)
class _RunningTrial:
    job: Job
    memory: int  # megabytes
    task: "asyncio.Task[None] | None" = None
    spent: list[PaidCall] = field(default_factory=list)  # on calls that were answered
    retries: int = 0  # of its calls
    timed_out: bool = False  # whether a call of it reached the time limit


class AgentJobs:
    """Starts trials as there are places for them."""

    def __init__(
        self,
        queue: Queue,
        places: AgentPlaces,
        known: KnownReplies,
        budget: Budget,
        spell: Spell,
    ) -> None:
        self._queue = queue
        self._open_trials = places.open_trials
        self._at_once = places.at_once or default_at_once()
        self._memory = memory_for_agents()
        self._answers = known.answers
        self._budget = budget
        self._spell = spell
        self._trials: Trials | None = None
        # Megabytes of the largest agent that had to wait for memory
        self._held_back = 0
        self._waiting: list[Job] = []
        self._running: list[_RunningTrial] = []

    @property
    def at_work(self) -> int:
        return len(self._running)

    @property
    def spent(self) -> list[PaidCall]:
        """All replies that the running agents have got so far."""
        return [call for trial in list(self._running) for call in trial.spent]

    @property
    def note(self) -> str:
        """That there was too little memory for all places."""
        if not self._held_back:
            return ""
        return (
            f"Fewer than {self._at_once} agents ran at once: one takes about"
            f" {self._held_back:,} MB, and {self._memory:,.0f} MB of memory could be"
            " used."
        )

    def add(self, job: Job) -> None:
        insort(self._waiting, job, key=lambda job: job.number)  # a judge comes first

    @property
    def next(self) -> list[Job]:
        """The trial to begin next, if there is one."""
        return self._waiting[:1]

    def begin(self) -> None:
        """Start as many as there are places for."""
        for job in list(self._waiting):
            lane = self._queue.lanes.get(job.question.asked_as)
            if lane and lane.dead:
                self._settle(job, NoAnswer(lane.dead))
                continue
            if len(self._running) >= self._at_once:
                continue
            trial = self._trial_with_place(job)
            if trial is None:
                continue
            if refusal := self._budget.refusal_of_case(job.question):
                self._settle(job, over_budget(refusal, self._spell))
            elif self._is_affordable(job) and not self._queue.waits_for_judge(job):
                self._waiting.remove(job)
                if not self._queue.lease([job]):
                    self._running.append(trial)
                    trial.task = self._queue.begin(self._run(trial))

    def _settle(self, job: Job, reply: NoAnswer) -> None:
        self._waiting.remove(job)
        job.settle(reply)

    def _is_affordable(self, job: Job) -> bool:
        """Whether the budget has room for a trial beside others."""
        running = [(trial.job.question, trial.spent) for trial in self._running]
        return self._budget.fits_trial(job.question, running)

    def stop(self, reason: str) -> None:
        """End all trials."""
        for job in list(self._waiting):
            self._settle(job, NoAnswer(reason))
        for trial in self._running:
            # Once, or it could not close its sandbox.
            if trial.task and not trial.task.cancelling():
                trial.task.cancel()

    async def close(self) -> None:
        if self._trials:
            await self._trials.close()

    def _trial_with_place(self, job: Job) -> _RunningTrial | None:
        """None if there is no memory for a trial beside others."""
        assert job.question.task
        assert self._open_trials
        if self._trials is None:
            self._trials = self._open_trials()
        memory = self._trials.memory_of(job.question.task)
        taken = sum(trial.memory for trial in self._running)
        # Even the largest agent may run alone: it would never start otherwise.
        if self._running and taken + memory > self._memory:
            self._held_back = max(memory, self._held_back)
            return None
        return _RunningTrial(job, memory)

    async def _run(self, trial: _RunningTrial) -> None:
        assert self._trials
        question = trial.job.question
        reply: Reply
        try:
            reply = await self._trials.run(question, partial(self._call, trial))
        except asyncio.CancelledError:
            reply = NoAnswer(STOPPED)
        except UpskillError as error:
            reply = NoAnswer(error.message(self._spell))
        except Exception as bug:
            reply = NoAnswer(unexpected(bug))

        self._running.remove(trial)
        reply = replace(reply, retries=reply.retries + trial.retries)
        if isinstance(reply, Answer):
            reply = dated(hide_keys(reply))
            if reply.stop == "time":
                self._answers.put_late(question, reply)
            elif is_worth_keeping(question, reply):
                self._answers.put(question, reply)
            self._budget.end_trial(question, trial.spent)
        else:
            self._budget.lose(trial.spent)
            if trial.timed_out:
                late = Answer("", stop="time", activity=Activity())
                reply = self._answers.put_late(question, late) or reply
        trial.job.settle(reply)
        self._queue.pump_soon()

    async def _call(
        self, trial: _RunningTrial, question: Question, send: "Send | None" = None
    ) -> Reply:
        """A call of a trial: it has the trial's number, and is stored with the
        trial.
        """
        lane = self._queue.lane(question.asked_as)
        job = Job(question, trial.job.number, send=send, of_trial=True)
        lane.add(job)
        self._queue.pump_soon()
        try:
            reply = await job.wait()
        except asyncio.CancelledError:
            lane.forget(job)
            raise

        trial.retries += reply.retries
        if isinstance(reply, Answer):
            trial.spent.append(PaidCall(question.model, reply.usage))
            return reply
        trial.timed_out = reply.timed_out
        return replace(reply, over_budget=False)  # the trial was begun
