"""A run on a worker of a cluster: its engine, its files, its place among the calls of all.

Nothing here raises: Dask would write the arguments to the worker's log.
"""

import asyncio
import os
import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from ..._util.keys import know, password_of
from ...agents.agent import Send
from ...agents.agent_trials import AgentTrials
from ...agents.probe import is_installed, probes
from ...agents.roster import Roster
from ...agents.run_folder import remove, run_folder
from ...agents.sandboxes.kinds import kind_of
from ...agents.sandboxes.sandbox import SandboxKind
from ...errors import InputError
from ...models import Model
from ...models.port import Progress
from ...models.scripted import with_script_file
from ...trials.answer import Answer, NoAnswer, Reply
from ...trials.task import Installed, StartFile
from ...trials.trial import Question
from ..agent_jobs import TrialCalls
from ..budget import Budget
from ..engine import Engine
from .exchange import Brief, Found, Outcome, Parcel, topic_of
from .lent_variables import LentVariables

Worker = Any  # of Dask

_env: Final = LentVariables()
_LOOK: Final = 0.5  # seconds between looks whether a trial is still wanted


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


class Site:
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
        self._engine = Engine(
            self._open_model,
            concurrency=brief.concurrency,
            timeout=brief.call_timeout,
            budget=_Budget(),
            open_trials=partial(_Metered, self),
            agents_at_once=worker.state.nthreads,
        )
        self._lent = {**brief.places, **brief.keys}
        _env.lend(self._lent)  # last, as only a site that is there gives it back

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
            know(*spec.provider.login_in(os.environ).values())
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

    def close(self) -> None:
        try:
            self._engine.close()
            remove(self._folder)
        finally:
            _env.take_back(self._lent)

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
        """Wait for a trial as long as somebody wants it: its controller or worker may end."""
        task = self._worker.get_current_task()
        reply = self._engine.submit(question)
        while True:
            try:
                return reply.result(timeout=_LOOK)
            except TimeoutError:
                known = self._worker.state.tasks.get(task)
                wanted = known and known.state in ("executing", "long-running")
                if not wanted or self._worker.status.name not in ("running", "paused"):
                    self._engine.end(question.key)

    def tell(self, trial: str, usage: Sequence[int | None] | None = None) -> None:
        """Tell the controller that a trial began, or that a call of it was answered."""
        told = {
            "trial": trial,
            "worker": str(self._worker.name),
            "address": self._worker.contact_address,  # as the scheduler knows it
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
    at_work: Final = None
    note: Final = ""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._trials = site.trials()

    def memory_of(self, agent: str) -> int:  # noqa: ARG002
        return 0  # Dask has seen to that

    async def run(self, question: Question, call: TrialCalls) -> Reply:
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
                told = (usage.input, usage.output, usage.cached, usage.written, False, usage.hour)
                site.tell(purse.trial, told)
            return reply

        return await self._trials.run(question, metered)

    async def close(self) -> None:
        await self._trials.close()


def _no_download(_what: str) -> Progress:
    return lambda _done, _total: None
