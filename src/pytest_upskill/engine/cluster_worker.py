"""What a worker of a cluster does: say what it has, and carry out the trials that it is handed.

Nothing here raises: Dask would write the arguments to the worker's log.
"""

import asyncio
import os
import pickle
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from .._util.keys import know, password_of
from .._util.memory import available
from .._util.values import frozen
from ..agents.names import Roster
from ..agents.port import SandboxKind, Send
from ..agents.probe import is_installed, probes
from ..agents.run_folder import end_run_folder, remove, run_folder
from ..agents.sandboxes.choice import kind_of
from ..agents.trial import AgentTrials
from ..errors import InputError
from ..models import Model, ModelSpec
from ..models.port import Progress
from ..models.prices import Price
from ..models.scripted import with_script_file
from ..trials.answer import Answer, NoAnswer, Reply
from ..trials.task import Installed, StartFile
from ..trials.trial import Question
from .agent_jobs import Calls
from .budget import Allowance, Budget, Unanswered
from .engine import Engine
from .reasons import unexpected

Worker = Any  # of Dask

MEMORY: Final = "upskill-memory"  # megabytes
CPU: Final = "upskill-cpu"
_PLENTY: Final = 1e9
_SHARE: Final = 0.8  # of a worker's memory, for agents
_LOOK: Final = 0.5  # seconds between looks whether a trial is still wanted
_SILENCE: Final = 120.0  # seconds without a sign of life, after which a run is over


@dataclass(frozen=True, repr=False)  # a repr could end in a log
class Brief:
    """What workers must know of a run. It goes to each of them by itself, and is in no task."""

    run: str
    specs: Mapping[str, ModelSpec]
    prices: Mapping[str, Price | None]
    scripts: Mapping[str, tuple[str, bytes]]  # of scripted models: name of the file, content
    agents: tuple[str, ...]
    sandbox: str
    image: str | None
    agent_timeout: float
    call_timeout: float
    concurrency: int
    keys: Mapping[str, str] = field(default_factory=dict)  # by environment variable


@frozen
class Found:
    """What a worker has, and lacks."""

    name: str
    sandbox: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)  # of agents that work
    lacks: tuple[str, ...] = ()
    places: int = 0
    memory: float = 0.0  # megabytes for agents


@frozen
class Parcel:
    """A trial, without the files of its skills; or just the setup of one."""

    trial: str
    question: Question
    allowance: Allowance
    is_setup: bool = False


@frozen
class Outcome:
    """What came of a trial, and what it spent."""

    reply: Reply | None  # None: this worker does not know of the run
    tokens: int = 0
    usd: float = 0.0
    unanswered: tuple[Unanswered, ...] = ()
    short: bool = False  # a larger allowance would have let it go on


def resource_of(run: str, agent: str) -> str:
    """What only workers have that can carry out the trials of an agent."""
    return f"upskill-{run}-{agent}"


def topic_of(run: str) -> str:
    """Where workers tell of trials that began, and of calls that were answered."""
    return f"upskill-{run}"


_sites: dict[str, "_Site"] = {}  # by run


# Called by the controller, on the event loop of a worker.


async def prepare(brief: Brief, workers_here: int, dask_worker: Worker = None) -> Found | None:
    """Look at what a worker has, as the doctor does, and get it ready for a run."""
    assert dask_worker
    name = str(dask_worker.name)
    try:
        await leave(brief.run)
        site = _Site(brief, dask_worker)
        found = await asyncio.to_thread(site.look)
        if not found.versions:
            _sites[brief.run] = site
            await leave(brief.run)
            return found
        _sites[brief.run] = site
        places, memory = _room(dask_worker, workers_here)
        own = {resource_of(brief.run, agent): _PLENTY for agent in found.versions}
        await dask_worker.set_resources(**{MEMORY: memory, CPU: float(places), **own})
        site.watch()
        return Found(name, found.sandbox, found.versions, found.lacks, places, memory)
    except Exception as bug:
        return Found(name, lacks=(unexpected(bug),))


async def alive(run: str) -> bool:
    """A sign of life of the controller; False if this worker does not know of its run."""
    if site := _sites.get(run):
        site.heard = time.monotonic()
    return run in _sites


async def leave(run: str) -> None:
    """Forget a run: its trials, its files, its keys."""
    if site := _sites.pop(run, None):
        with suppress(Exception):
            await asyncio.to_thread(site.close)
        if not _sites:
            await asyncio.to_thread(end_run_folder)


# Called by Dask, on a thread of a worker.


def carry_out(run: str, parcel: bytes, start: Outcome | None, *copies: bytes) -> Outcome:
    """Carry out a trial: ``start`` is of its setup, ``copies`` are the files of its skills."""
    site = _sites.get(run)
    if site is None:
        return Outcome(None)
    if start and not isinstance(start.reply, Answer):
        return start
    try:
        return site.carry_out(pickle.loads(parcel), start, copies)
    except Exception as bug:
        return Outcome(NoAnswer(unexpected(bug)))


def _room(worker: Worker, workers_here: int) -> tuple[int, float]:
    """How many trials a worker takes at once, and the megabytes for them.

    What it declares counts (``--resources "CPU=8 MEMORY=16e9"``), else its threads and memory.
    """
    declared = {name.upper(): amount for name, amount in worker.state.total_resources.items()}
    places = int(declared.get("CPU", worker.state.nthreads))
    memory = declared.get("MEMORY")
    if memory is None:
        own = worker.memory_manager.memory_limit or float("inf")
        memory = min(_SHARE * min(own, available() / workers_here), _PLENTY * 1e6)
    return max(1, min(places, worker.state.nthreads)), memory / 1e6


class _Budget(Budget):
    """Of a worker: the controller itself counts the calls of trials that have no answer."""

    def lose(self, question: Question, spent: Sequence[Any]) -> None:
        pass


@dataclass
class _Purse:
    """What a trial starts from, what it may spend, and has spent."""

    trial: str
    budget: Budget
    start: Answer | None = None  # what the setup made
    is_setup: bool = False
    short: bool = False


class _Site:
    """A run on this worker: an engine, the files of skills, a place among the calls of all."""

    def __init__(self, brief: Brief, worker: Worker) -> None:
        from distributed import Semaphore

        self.heard = time.monotonic()
        self._brief = brief
        self._worker = worker
        self._folder = Path(mkdtemp(dir=run_folder()))
        self._roster = Roster()
        self._kind: SandboxKind | None = None
        self._files: dict[str, tuple[StartFile, ...]] = {}  # of skills, by digest
        self._purses: dict[str, _Purse] = {}  # of trials at work, by the key of the question
        self._places = Semaphore(
            brief.concurrency,
            topic_of(brief.run),
            scheduler_rpc=worker.scheduler,
            loop=worker.loop,
        )
        self._specs = dict(brief.specs)
        for name, (file, content) in brief.scripts.items():
            copy = self._folder / str(len(list(self._folder.iterdir()))) / file
            copy.parent.mkdir()
            copy.write_bytes(content)
            self._specs[name] = with_script_file(self._specs[name], copy)
        self._before = {name: os.environ.get(name) for name in brief.keys}
        os.environ.update(brief.keys)
        self._engine = Engine(
            self._open_model,
            concurrency=brief.concurrency,
            timeout=brief.call_timeout,
            budget=_Budget(),
            open_trials=partial(_Metered, self),
            agents_at_once=worker.state.nthreads,
        )

    def look(self) -> Found:
        """Whether there is a sandbox, agents that work in it, and what the models need."""
        try:
            self._kind = kind_of(self._brief.sandbox, self._brief.image)
        except InputError as error:
            return Found(str(self._worker.name), lacks=(f"no sandbox: {error.problem}",))
        lacks = list[str]()
        for spec in self._specs.values():
            try:
                spec.provider.require(spec, os.environ, _no_download)
            except InputError as error:
                lacks.append(f"{spec.name}: {error.problem}")
            know((spec.provider.key_in(os.environ) or ("", ""))[1])
            know(*password_of(spec.base_url or ""))
        if lacks:
            return Found(str(self._worker.name), self._kind.name, lacks=tuple(lacks))
        agents = [self._roster.agent(name) for name in self._brief.agents]
        there = [agent for agent in agents if is_installed(agent)]
        lacks += [f"{agent.name} is not installed" for agent in agents if agent not in there]
        tried = asyncio.run(probes(there, self._kind))
        lacks += [f"{name}: {one.problem}" for name, one in tried.items() if not one.works]
        works = {name: one.version for name, one in tried.items() if one.works}
        return Found(str(self._worker.name), self._kind.name, works, tuple(lacks))

    def watch(self) -> None:
        """End the run if its controller has fallen silent: it may have been killed."""
        from tornado.ioloop import PeriodicCallback

        run = self._brief.run

        async def look() -> None:
            if time.monotonic() - self.heard > _SILENCE:
                await leave(run)
            if run not in _sites:
                self._worker.periodic_callbacks.pop(topic_of(run)).stop()

        callback = PeriodicCallback(look, _SILENCE / 4 * 1000)
        self._worker.periodic_callbacks[topic_of(run)] = callback
        callback.start()

    def close(self) -> None:
        self._engine.close()
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        remove(self._folder)

    def carry_out(self, parcel: Parcel, start: Outcome | None, copies: Sequence[bytes]) -> Outcome:
        question, key = parcel.question, parcel.question.key
        assert question.task
        for skill, copy in zip(question.task.skills, copies, strict=True):
            if skill.digest not in self._files:
                self._files[skill.digest] = pickle.loads(copy)
        allowance = parcel.allowance
        budget = Budget(allowance.tokens, allowance.usd, self._brief.prices.get)
        made = start.reply if start and isinstance(start.reply, Answer) else None
        purse = self._purses[key] = _Purse(parcel.trial, budget, made, parcel.is_setup)
        self.tell(parcel.trial)
        try:
            reply = self._reply_to(question)
        finally:
            self._engine.forget(key)
            del self._purses[key]
        unanswered, self._engine.budget.unanswered = self._engine.budget.unanswered, []
        return Outcome(reply, *budget.spent, tuple(unanswered), purse.short)

    def _reply_to(self, question: Question) -> Reply:
        """Wait for a trial as long as somebody wants it: its controller may end, or be killed."""
        task = self._worker.get_current_task()
        reply = self._engine.submit(question)
        while True:
            try:
                return reply.result(timeout=_LOOK)
            except TimeoutError:
                known = self._worker.state.tasks.get(task)
                if known is None or known.state not in ("executing", "long-running"):
                    self._engine.end(question.key)

    def tell(self, trial: str, usage: Sequence[int | None] | None = None) -> None:
        """Tell the controller that a trial began, or that a call of it was answered."""
        told = {
            "trial": trial,
            "worker": str(self._worker.name),
            "address": self._worker.address,
            "usage": usage and list(usage),
        }
        self._worker.log_event(topic_of(self._brief.run), told)

    def purse_of(self, question: Question) -> _Purse:
        return self._purses[question.key]

    def trials(self) -> AgentTrials:
        assert self._kind
        kind, timeout = self._kind, self._brief.agent_timeout
        price_of, spec_of = self._brief.prices.get, self._specs.__getitem__
        files_of = self._files_of
        return AgentTrials(self._roster.agent, lambda: kind, timeout, spec_of, price_of, files_of)

    def _files_of(self, skill: Installed) -> tuple[StartFile, ...]:
        return self._files[skill.digest]

    async def _open_model(self, name: str) -> Model:
        spec = self._specs[name]
        return await spec.provider.open(spec, self._brief.call_timeout)

    # Called on the engine's thread; Dask's semaphore lives on the worker's.

    async def take_place(self) -> None:
        """Wait for a place among the calls of all workers."""
        loop = self._worker.loop.asyncio_loop
        taking = asyncio.run_coroutine_threadsafe(self._acquire(), loop)
        try:
            await asyncio.wrap_future(taking)
        except asyncio.CancelledError:
            if taking.done() and not taking.cancelled() and not taking.exception():
                self.give_place_back()
            raise

    def give_place_back(self) -> None:
        loop = self._worker.loop.asyncio_loop
        asyncio.run_coroutine_threadsafe(self._release(), loop)

    async def _acquire(self) -> None:
        await self._places.acquire()

    async def _release(self) -> None:
        await self._places.release()


class _Metered:
    """Trials whose calls wait for a place on the whole cluster, and keep to their allowance."""

    places: Final = None
    note: Final = ""

    def __init__(self, site: _Site) -> None:
        self._site = site
        self._trials = site.trials()

    def memory_of(self, agent: str) -> int:  # noqa: ARG002
        return 0  # Dask has seen to that

    async def run(self, question: Question, call: Calls) -> Reply:
        site, purse = self._site, self._site.purse_of(question)
        assert question.task
        if purse.is_setup:
            return await self._trials.set_up(question.task)
        if purse.start:
            self._trials.start_from(question.task, purse.start)

        async def metered(question: Question, send: Send | None = None) -> Reply:
            if purse.budget.refusal(question):
                purse.short = True
                return NoAnswer("the allowance of the trial is used up")
            await site.take_place()
            try:
                reply = await call(question, send)
            finally:
                site.give_place_back()
            if isinstance(reply, Answer):
                usage = reply.usage
                purse.budget.settle(question, usage)
                told = (usage.input, usage.output, usage.cached, usage.written)
                site.tell(purse.trial, told)
            return reply

        return await self._trials.run(question, metered)

    async def close(self) -> None:
        await self._trials.close()


def _no_download(_what: str) -> Progress:
    return lambda _done, _total: None
