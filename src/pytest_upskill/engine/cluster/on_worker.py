"""What a worker of a cluster does: report what it has, and carry out trials.

Nothing here raises: Dask would write the arguments to the worker's log.
"""

import asyncio
import os
import time
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from ..._util.json_forms import form_of
from ..._util.keys import know, password_of
from ...agents.agent import Send
from ...agents.agent_trials import AgentTrials
from ...agents.probe import is_installed, probes
from ...agents.roster import Roster
from ...agents.run_folder import end_run_folder, remove, run_folder
from ...agents.sandboxes.kinds import kind_of
from ...agents.task_sandbox import sandbox_for
from ...errors import InputError
from ...models import Model
from ...models.model import Progress
from ...models.scripted import with_script_file
from ...skills.case import WorkspaceFile
from ...trials.answer import Answer, NoAnswer, Reply, Usage
from ...trials.arm import SkillCopy
from ...trials.trial import Question, Task
from ..agent_jobs import TrialCalls, available_memory
from ..budget import Budget
from ..engine import Engine
from ..lane import unexpected
from .brief import (
    CPU,
    MEMORY,
    Brief,
    Outcome,
    SentTrial,
    TrialEvent,
    WorkerReport,
    packed,
    resource_of,
    topic_of,
)

Worker = Any  # of Dask

_POLL: Final = 0.5  # seconds between looks whether a trial is still wanted
_PLENTY: Final = 1e9
_SHARE: Final = 0.8  # of a worker's memory, for agents
_SILENCE: Final = 120.0  # seconds without a sign of life, after which a run is over

_runs: dict[str, "WorkerRun"] = {}


# Called by the controller, on the event loop of a worker.


async def prepare(brief: Brief, workers_here: int, dask_worker: Worker = None) -> bytes:
    """Look at what a worker has, as the doctor does, and get it ready for a run:
    a WorkerReport.
    """
    assert dask_worker
    await leave(brief.run)
    try:
        run = _runs[brief.run] = WorkerRun(brief, dask_worker)
        report = await asyncio.to_thread(run.report)
        places, memory = _capacity(dask_worker, workers_here)
        if report.versions:
            _watch(run, brief.run, dask_worker)
            return packed(replace(report, places=places, memory=memory))
    except Exception as bug:
        report = WorkerReport(str(dask_worker.name), lacks=(unexpected(bug),))
    await leave(brief.run)
    return packed(report)


async def admit(run: str, report: WorkerReport, dask_worker: Worker = None) -> bool:
    """Accept trials of the agents that the controller has chosen."""
    assert dask_worker
    agents = {resource_of(run, agent): _PLENTY for agent in report.versions}
    await dask_worker.set_resources(
        **{MEMORY: report.memory, CPU: float(report.places), **agents}
    )
    return run in _runs


async def alive(run: str) -> bool:
    """A sign of life of the controller; False if this worker does not know of its
    run.
    """
    if known := _runs.get(run):
        known.last_heard = time.monotonic()
    return known is not None


async def leave(run: str) -> None:
    """Forget a run: its trials, its files, its keys."""
    if ended := _runs.pop(run, None):
        with suppress(Exception):
            await asyncio.to_thread(ended.close)
        if not _runs:
            await asyncio.to_thread(end_run_folder)


# Called by Dask, on a thread of a worker.


def carry_out(run: str, trial: str, sent: bytes) -> bytes:
    """Carry out a trial as its controller sent it: an Outcome."""
    outcome = Outcome(None)
    try:
        if here := _runs.get(run):
            outcome = here.carry_out(form_of(SentTrial).validate_json(sent))
        return packed(replace(outcome, trial=trial))
    except Exception as bug:
        return packed(Outcome(NoAnswer(unexpected(bug)), trial=trial))


def _capacity(worker: Worker, workers_here: int) -> tuple[int, float]:
    """How many trials a worker takes at once, and the megabytes for them.

    What it declares counts (``--resources "CPU=8 MEMORY=16e9"``),
    else its threads and memory.
    """
    declared = {
        name.upper(): amount for name, amount in worker.state.total_resources.items()
    }
    places = int(declared.get("CPU", worker.state.nthreads))
    memory = declared.get("MEMORY")
    if memory is None:
        limit = worker.memory_manager.memory_limit or float("inf")
        memory = min(
            _SHARE * min(limit, available_memory() / workers_here), _PLENTY * 1e6
        )
    return max(1, min(places, worker.state.nthreads)), max(1.0, memory / 1e6)


def _watch(run: "WorkerRun", name: str, worker: Worker) -> None:
    """End a run if its controller has fallen silent: it may have been killed."""
    from tornado.ioloop import PeriodicCallback

    async def look() -> None:
        if time.monotonic() - run.last_heard > _SILENCE:
            await leave(name)
        if name not in _runs:
            worker.periodic_callbacks.pop(topic_of(name)).stop()

    callback = PeriodicCallback(look, _SILENCE / 4 * 1000)
    worker.periodic_callbacks[topic_of(name)] = callback
    callback.start()


class _WorkerBudget(Budget):
    """The controller itself counts the calls of trials that have no answer."""

    def lose(self, spent: Sequence[Any]) -> None:
        pass


@dataclass
class _TrialBudget:
    """What a trial starts from, what it may spend, and has spent."""

    trial: str
    budget: Budget
    start: Answer | None = None  # what the setup made
    is_setup: bool = False
    exceeded: bool = False


class WorkerRun:
    """A run on this worker: its engine, the files of skills, its share of all calls."""

    def __init__(self, brief: Brief, worker: Worker) -> None:
        from distributed import Semaphore

        self.last_heard = time.monotonic()  # of the controller
        self._brief = brief
        self._worker = worker
        self._folder = Path(mkdtemp(dir=run_folder()))
        self._roster = Roster()
        self._files: dict[str, tuple[WorkspaceFile, ...]] = {}  # of skills, by digest
        # Of running trials, by key of the question
        self._budgets: dict[str, _TrialBudget] = {}
        self._calls = Semaphore(  # of all workers
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
            budget=_WorkerBudget(),
            open_trials=partial(_BudgetedTrials, self),
            agents_at_once=worker.state.nthreads,
        )
        self._variables = {**brief.places, **brief.keys}
        _env.set(self._variables)  # last: ``close`` is only called if all else worked

    def report(self) -> WorkerReport:
        """Whether there is a sandbox, agents that work in it, and what the models
        need.
        """
        try:
            kind = kind_of(self._brief.sandbox, self._brief.image)
        except InputError as error:
            return WorkerReport(
                str(self._worker.name), lacks=(f"no sandbox: {error.problem}",)
            )
        lacks = list[str]()
        for spec in self._specs.values():
            try:
                spec.provider.require(spec, os.environ, _no_download)
            except InputError as error:
                lacks.append(f"{spec.name}: {error.problem}")
            know(*spec.provider.login_in(os.environ).values())
            know(*password_of(spec.base_url or ""))
        if lacks:
            return WorkerReport(str(self._worker.name), kind.name, lacks=tuple(lacks))
        agents = [self._roster.agent(name) for name in self._brief.agents]
        installed = [agent for agent in agents if is_installed(agent)]
        lacks += [
            f"{agent.name} is not installed"
            for agent in agents
            if agent not in installed
        ]
        tried = asyncio.run(probes(installed, kind))
        lacks += [
            f"{name}: {probe.problem}"
            for name, probe in tried.items()
            if not probe.works
        ]
        versions = {name: probe.version for name, probe in tried.items() if probe.works}
        return WorkerReport(str(self._worker.name), kind.name, versions, tuple(lacks))

    def close(self) -> None:
        try:
            self._engine.close()
            remove(self._folder)
        finally:
            _env.unset(self._variables)

    def carry_out(self, sent: SentTrial) -> Outcome:
        question, key = sent.question, sent.question.key
        assert question.task
        for skill, files in zip(question.task.skills, sent.files, strict=True):
            self._files[skill.digest] = files
        allowance = sent.allowance
        budget = Budget(allowance.tokens, allowance.usd, self._brief.prices.get)
        trial = self._budgets[key] = _TrialBudget(
            sent.trial, budget, sent.start, sent.is_setup
        )
        self.tell(sent.trial)
        try:
            reply = self._reply_to(question)
        finally:
            self._engine.forget(key)
            del self._budgets[key]
        unanswered, self._engine.budget.unanswered = self._engine.budget.unanswered, []
        return Outcome(reply, *budget.spent, tuple(unanswered), trial.exceeded)

    def _reply_to(self, question: Question) -> Reply:
        """Wait for a trial as long as it is wanted: its controller or worker may
        end.
        """
        task = self._worker.get_current_task()
        reply = self._engine.submit(question)
        while True:
            try:
                return reply.result(timeout=_POLL)
            except TimeoutError:
                state = self._worker.state.tasks.get(task)
                is_current = state and state.state in ("executing", "long-running")
                if not is_current or self._worker.status.name not in (
                    "running",
                    "paused",
                ):
                    self._engine.end(question.key)

    def tell(
        self, trial: str, usage: Usage | None = None, *, by_user: bool = False
    ) -> None:
        """Tell the controller that a trial began, or that a call of it was answered."""
        worker = self._worker
        event = TrialEvent(
            trial, str(worker.name), worker.contact_address, usage, by_user
        )
        worker.log_event(topic_of(self._brief.run), packed(event))

    def budget_of(self, question: Question) -> _TrialBudget:
        return self._budgets[question.key]

    def trials(self) -> AgentTrials:
        brief, timeout = self._brief, self._brief.agent_timeout
        price_of, spec_of = self._brief.prices.get, self._specs.__getitem__
        files_of = self._files_of
        sandbox = partial(sandbox_for, sandbox=brief.sandbox, image=brief.image or "")
        return AgentTrials(
            self._roster.agent,
            sandbox,
            timeout,
            spec_of,
            price_of=price_of,
            files_of=files_of,
        )

    def _files_of(self, skill: SkillCopy) -> tuple[WorkspaceFile, ...]:
        return self._files[skill.digest]

    async def _open_model(self, name: str) -> Model:
        spec = self._specs[name]
        return await spec.provider.open(spec, self._brief.call_timeout)

    # Called on the engine's thread; Dask's semaphore lives on the worker's.

    async def acquire_call(self) -> None:
        """Wait until all workers together have room for another call."""
        loop = self._worker.loop.asyncio_loop
        acquired = asyncio.run_coroutine_threadsafe(self._acquire(), loop)
        try:
            await asyncio.wrap_future(acquired)
        except asyncio.CancelledError:
            if (
                acquired.done()
                and not acquired.cancelled()
                and not acquired.exception()
            ):
                self.release_call()
            raise

    def release_call(self) -> None:
        loop = self._worker.loop.asyncio_loop
        asyncio.run_coroutine_threadsafe(self._release(), loop)

    async def _acquire(self) -> None:
        await self._calls.acquire()

    async def _release(self) -> None:
        await self._calls.release()


class _BudgetedTrials:
    """Trials whose calls wait for each other on all workers,
    and keep to their allowance.
    """

    places: Final = None
    at_work: Final = None
    note: Final = ""

    def __init__(self, run: WorkerRun) -> None:
        self._run = run
        self._trials = run.trials()

    def memory_of(self, task: Task) -> int:  # noqa: ARG002
        return 0  # Dask takes care of it

    async def run(self, question: Question, call: TrialCalls) -> Reply:
        run, trial, model = self._run, self._run.budget_of(question), question.model
        assert question.task
        if trial.is_setup:
            return await self._trials.set_up(question.task)
        if trial.start:
            self._trials.start_from(question.task, trial.start)

        async def call_within_budget(
            question: Question, send: Send | None = None
        ) -> Reply:
            if trial.budget.refusal(question):
                trial.exceeded = True
                return NoAnswer("the allowance of the trial is used up")
            await run.acquire_call()
            try:
                reply = await call(question, send)
            finally:
                run.release_call()
            if isinstance(reply, Answer):
                trial.budget.settle(question, reply.usage, reply)
                run.tell(trial.trial, reply.usage, by_user=question.model != model)
            return reply

        return await self._trials.run(question, call_within_budget)

    async def close(self) -> None:
        await self._trials.close()


def _no_download(_what: str) -> Progress:
    return lambda _done, _total: None


class RunVariables:
    """Environment variables that runs send; each is set until the last such run
    ends.
    """

    def __init__(self, env: MutableMapping[str, str] = os.environ) -> None:
        self._env = env
        self._by_run: list[Mapping[str, str]] = []
        self._before: dict[str, str | None] = {}  # the worker's own values

    def set(self, variables: Mapping[str, str]) -> None:
        for name in variables:
            self._before.setdefault(name, self._env.get(name))
        self._by_run.append(variables)
        self._env.update(variables)

    def unset(self, variables: Mapping[str, str]) -> None:
        self._by_run = [run for run in self._by_run if run is not variables]
        for name in variables:
            values = [run[name] for run in self._by_run if name in run]
            value = values[-1] if values else self._before.pop(name)
            if value is None:
                self._env.pop(name, None)
            else:
                self._env[name] = value


_env: Final = RunVariables()
