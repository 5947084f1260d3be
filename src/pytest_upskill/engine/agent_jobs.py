"""Trials of agents: each waits for a place, and runs on the engine's loop.

There are as many places as the memory that this process could use has room for.
"""

import asyncio
import os
from bisect import insort
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from .._util.files import read_file
from ..agents.agent import Call, Send
from ..checks.judging import is_worth_keeping
from ..errors import Spell, UpskillError
from ..trials.answer import Answer, NoAnswer, Reply
from ..trials.answer_times import dated
from ..trials.transcript import Activity
from ..trials.trial import Question, Task
from .budget import Budget, PaidCall
from .lane import STOPPED, Job, Lane, over_budget, unexpected
from .store import KnownAnswers

_SHARE: Final = 0.8  # of the memory that is available, for agents


class Trials(Protocol):
    """What carries out trials."""

    @property
    def places(self) -> int | None:
        """How many can be handed out at once; None: as many as
        this machine has room for.
        """

    @property
    def at_work(self) -> int | None:
        """How many of those that were handed out have begun; None: all."""

    @property
    def note(self) -> str:
        """What to report at the end."""

    def memory_of(self, task: Task) -> int:
        """Megabytes of this machine."""

    async def run(self, question: Question, call: Call) -> Reply: ...

    async def close(self) -> None: ...


Begin = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]


def default_at_once() -> int:
    """Twice the cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return 2 * (len(affinity(0)) if affinity else os.cpu_count() or 1)


def memory_for_agents() -> float:
    """Megabytes that agents may take; infinite where the system does not say."""
    return _SHARE * available_memory() / 10**6


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
        open_trials: Callable[[], Trials] | None,
        *,
        at_once: int | None,
        lane_of: Callable[[str], Lane],
        pump: Callable[[], None],
        lease: Callable[[Job], bool],
        answers: KnownAnswers,
        budget: Budget,
        spell: Spell,
    ) -> None:
        self._lease = lease
        self._open_trials = open_trials
        self._at_once = at_once or default_at_once()
        self._memory = memory_for_agents()
        self._lane_of = lane_of
        self._pump = pump
        self._answers = answers
        self._budget = budget
        self._spell = spell
        self._trials: Trials | None = None
        # Megabytes of the largest agent that had to wait for memory
        self._held_back = 0
        self._waiting: list[Job] = []
        self._running: list[_RunningTrial] = []

    @property
    def at_work(self) -> int:
        begun = self._trials.at_work if self._trials else None
        return len(self._running) if begun is None else begun

    @property
    def spent(self) -> list[PaidCall]:
        """All replies that the running agents have got so far."""
        return [call for trial in list(self._running) for call in trial.spent]

    @property
    def note(self) -> str:
        """That there was too little memory for all places, or what became of a
        cluster.
        """
        if not self._held_back:
            return self._trials.note if self._trials else ""
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

    def begin(
        self, dead: Mapping[str, str], start: Begin, must_wait: Callable[[Job], bool]
    ) -> None:
        """Start as many as there are places for; ``dead``: models that can't be asked,
        and why.
        """
        for job in list(self._waiting):
            if reason := dead.get(job.question.asked_as):
                self._settle(job, NoAnswer(reason))
            elif len(self._running) >= self._places or not (trial := self._placed(job)):
                continue
            elif refusal := self._budget.refusal_of_case(job.question):
                self._settle(job, over_budget(refusal, self._spell))
            elif not must_wait(job) and self._is_affordable(job):
                self._waiting.remove(job)
                if self._lease(job):
                    self._running.append(trial)
                    trial.task = start(self._run(trial))

    def _settle(self, job: Job, reply: NoAnswer) -> None:
        self._waiting.remove(job)
        job.settle(reply)

    def _is_affordable(self, job: Job) -> bool:
        """Whether the budget has room for a trial beside others;
        a cluster sees to that itself.
        """
        if self._trials and self._trials.places is not None:
            return True
        running = [(trial.job.question, trial.spent) for trial in self._running]
        return self._budget.fits_trial(job.question, running)

    @property
    def _places(self) -> int:
        places = self._trials.places if self._trials else None
        return self._at_once if places is None else places

    def end(self, job: Job) -> None:
        """End the trial of a job."""
        if job in self._waiting:
            self._settle(job, NoAnswer(STOPPED))
        for trial in self._running:
            if trial.job is job:
                _cancel(trial)

    def stop(self, reason: str) -> None:
        """End all trials."""
        waiting, self._waiting = self._waiting, []
        for job in waiting:
            job.settle(NoAnswer(reason))
        for trial in self._running:
            _cancel(trial)

    async def close(self) -> None:
        if self._trials:
            await self._trials.close()

    def _placed(self, job: Job) -> _RunningTrial | None:
        """A place for a trial; None if there is no memory for it beside others."""
        assert job.question.task
        assert self._open_trials
        if self._trials is None:
            self._trials = self._open_trials()
        memory = self._trials.memory_of(job.question.task)
        taken = sum(trial.memory for trial in self._running)
        if self._running and taken + memory > self._memory:
            self._held_back = max(memory, self._held_back)
            return None
        return _RunningTrial(job, memory)

    async def _run(self, trial: _RunningTrial) -> None:
        assert self._trials
        try:
            call = partial(self._call, trial)
            reply = await self._trials.run(trial.job.question, call)
        except asyncio.CancelledError:
            reply = NoAnswer(STOPPED)
        except UpskillError as error:
            reply = NoAnswer(error.message(self._spell))
        except Exception as bug:
            reply = NoAnswer(unexpected(bug))
        self._running.remove(trial)
        reply = replace(reply, retries=reply.retries + trial.retries)
        if isinstance(reply, Answer):
            reply = dated(reply.without_keys())
            if reply.stop == "time":
                self._answers.put_late(trial.job.question, reply)
            elif is_worth_keeping(trial.job.question, reply):
                self._answers.put(trial.job.question, reply)
            self._budget.end_trial(trial.job.question, trial.spent)
        else:
            self._budget.lose(trial.spent)
            if trial.timed_out:
                late = Answer("", stop="time", activity=Activity())
                reply = self._answers.put_late(trial.job.question, late) or reply
        trial.job.settle(reply)
        self._pump()

    async def _call(
        self, trial: _RunningTrial, question: Question, send: Send | None = None
    ) -> Reply:
        """A call of a trial: it has the trial's number, and is stored with the
        trial.
        """
        lane, job = (
            self._lane_of(question.asked_as),
            Job(question, trial.job.number, send=send),
        )
        job.of_trial = True
        lane.add(job)
        self._pump()
        try:
            reply = await asyncio.wrap_future(job.reply)
        except asyncio.CancelledError:
            lane.forget(job)
            raise
        trial.retries += reply.retries
        if isinstance(reply, Answer):
            trial.spent.append(PaidCall(question.model, reply.usage))
            return reply
        trial.timed_out = reply.timed_out
        return replace(reply, over_budget=False)  # the trial was begun


def _cancel(trial: _RunningTrial) -> None:
    # once, or it could not close its sandbox
    if trial.task and not trial.task.cancelling():
        trial.task.cancel()


# Memory that this process could use.

# Of all memory, where the available part is unknown (macOS)
_UNKNOWN_SHARE: Final = 0.5
_ROOT: Final = Path("/")
_FILES: Final = ("max", "current")


def available_memory(root: Path = _ROOT) -> float:
    """Available bytes of the machine, or of the container if that has less;
    infinite if unknown.
    """
    return min(_of_machine(root), *_of_groups(root))


def _of_machine(root: Path) -> float:
    kilobytes = _table(root / "proc/meminfo").get("MemAvailable:")
    if kilobytes is not None:
        return kilobytes * 1024.0
    try:
        return _UNKNOWN_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _of_groups(root: Path) -> Iterator[float]:
    """What remains of the limit of each control group (version
    2) that this process is in.

    In a container, the path of a group may be the host's: its own files are at the top.
    """
    yield float("inf")
    for line in _text(root / "proc/self/cgroup").splitlines():
        if line.startswith("0::"):
            group = root / "sys/fs/cgroup"
            for part in ("", *Path(line[3:]).parts[1:]):
                group /= part
                with suppress(ValueError):
                    limit, used = (
                        int(_text(group / f"memory.{name}")) for name in _FILES
                    )
                    # Inactive pages of files count as used, but can be reclaimed.
                    reclaimable = _table(group / "memory.stat").get("inactive_file", 0)
                    yield max(0, limit - used + reclaimable)


def _table(file: Path) -> dict[str, int]:
    rows = (row.split() for row in _text(file).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def _text(file: Path) -> str:
    try:
        return read_file(file, 10**6).decode("utf-8", "replace")
    except OSError:
        return ""
