"""A run's cluster: the workers that fit, and the trials that they carry out."""

import asyncio
import importlib.metadata
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from secrets import token_hex
from typing import Any, Final, NamedTuple, Self

from ..._util.texts import counted, one_line
from ...agents.agent import Call
from ...agents.staging import setup_key
from ...errors import InputError, Spell
from ...trials.answer import Answer, NoAnswer, Reply
from ...trials.trial import Question, Task
from ..budget import Allowance, Budget
from ..forecast import Amount
from ..lane import STOPPED, over_budget
from ..machine import default_at_once
from .connection import Connection
from .messages import (
    Brief,
    Outcome,
    SentTrial,
    WorkerReport,
    from_worker,
    outcome_from_worker,
    packed,
)
from .worker import carry_out, examine

_PACKAGE: Final = "pytest-upskill"
_FIRST_WORKER_SECONDS: Final = 10.0
_EXAMINING_SECONDS: Final = 150.0
_NO_WORKER_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 1.0
_MAX_TRIES: Final = 3
# Some trials wait at the scheduler, or a cluster that grows by itself would not.
_TRIALS_PER_THREAD: Final = 2


class Worker(NamedTuple):
    """A worker as the scheduler names it, and its report."""

    name: str
    threads: int
    report: WorkerReport


class Cluster:
    """A cluster that carries out trials of one run, in place of this machine."""

    def __init__(
        self,
        address: str,
        brief: Brief,
        concurrency: int,
        at_once: int | None = None,
        pins: Mapping[str, str] | None = None,
    ) -> None:
        """SettingsError if there is no such cluster, or if Dask is not installed.

        ``concurrency`` is how many calls may be in flight, and ``at_once`` is how many
        trials. ``pins`` are the versions of agents that are asked for.
        """
        self._address = address
        self._brief = brief
        self._concurrency = concurrency
        self._at_once = min(at_once or concurrency, concurrency)
        # A run has one version of each agent, by which answers are stored.
        self._versions = dict(pins or {})
        self._workers: dict[str, Worker] = {}
        self._lost: list[str] = []
        self._setups: dict[str, asyncio.Task[Outcome]] = {}
        self._running = 0
        self._briefed: Sequence[str] = ()
        self._sent_brief: Any = None
        self._budget = Budget()
        self._spell: Spell = str
        self._connection = Connection(address, at_once or default_at_once())
        self._client = self._connection.client

    def prepare(self) -> dict[str, str]:
        """Look at all workers; the versions of the agents there.

        Raises SettingsError if no worker fits.
        """
        self._connection.start(self._begin()).result()
        if not self._workers:
            hint = f"Start one: dask worker {self._address}"
            raise self._connection.error("it has no workers", hint)

        if not self._fit:
            problem = f"no worker fits: {'; '.join(self._lacks)}"
            hint = "pytest-upskill doctor, run there, says more."
            raise self._connection.error(problem, hint)
        return self._versions

    def use(self, budget: Budget, spell: Spell) -> Self:
        """Carry out the trials of an engine."""
        self._budget = budget
        self._spell = spell
        return self

    def leave(self) -> None:
        """End all trials, and the workers that were started here."""
        self._connection.close()

    @property
    def lines(self) -> list[str]:
        """The cluster in words: how many workers, and what others lack."""
        workers = counted(len(self._fit), "worker")
        trials = counted(min(self._threads, self._at_once), "trial")
        kinds = {worker.report.sandbox for worker in self._fit.values()}
        sandbox = one_line(", ".join(sorted(kinds)), 200)
        lines = [
            f"cluster {self._address}: {workers}, {trials} at once, sandbox: {sandbox}"
        ]
        return lines + [f"no trials for worker {lacks}" for lacks in self._lacks]

    @property
    def places(self) -> int:
        """How many trials are to be handed out at once."""
        return max(1, min(_TRIALS_PER_THREAD * self._threads, self._at_once))

    @property
    def at_work(self) -> int:
        """How many trials workers carry out; others wait for a thread."""
        return min(self._running, self._threads)

    @property
    def note(self) -> str:
        """Which workers were lost."""
        if not self._lost:
            return ""
        names = one_line(", ".join(self._lost), 200)
        return f"The cluster lost {counted(len(self._lost), 'worker')} ({names})."

    def memory_of(self, task: Task) -> int:  # noqa: ARG002
        """None of this machine's."""
        return 0

    async def run(self, question: Question, call: Call) -> Reply:  # noqa: ARG002
        """Have a trial carried out, again and with more if its allowance is too low."""
        budget = self._budget
        outcome = None
        refusal = budget.refusal_of_case(question)
        while not refusal:
            allowance = budget.allot(question)
            if allowance is None:
                # Others may spend all that is left, and will return some.
                await asyncio.sleep(_POLL_SECONDS)
            else:
                outcome = await self._run(question, allowance)
                if not outcome.exceeded:
                    return outcome.reply
            if outcome is None:
                refusal = budget.refusal_of_case(question)
            elif allowance and allowance.is_all:
                refusal = budget.reached(question)
            else:
                refusal = budget.refusal(question)
        refused = over_budget(refusal, self._spell)
        return replace(refused, over_budget=outcome is None)

    async def close(self) -> None:
        """Nothing ends with an engine: whoever opened the cluster leaves it."""

    async def _run(self, question: Question, allowance: Allowance) -> Outcome:
        outcome = Outcome(NoAnswer(STOPPED))
        try:
            self._running += 1
            work = self._connection.start(self._carry_out(question, allowance))
            outcome = await asyncio.wrap_future(work)
        finally:
            self._running -= 1
            self._budget.spend(
                question,
                Amount(outcome.tokens, outcome.usd),
                outcome.unanswered,
                exceeded=outcome.exceeded,
            )
        return outcome

    @property
    def _fit(self) -> dict[str, Worker]:
        """The workers that can carry out trials, by address."""
        return {
            address: worker
            for address, worker in self._workers.items()
            if not worker.report.lacks
        }

    @property
    def _threads(self) -> int:
        return sum(worker.threads for worker in self._fit.values())

    @property
    def _lacks(self) -> list[str]:
        """What workers lack, with their names; those that lack the same in one line."""
        names: dict[str, list[str]] = {}
        for worker in self._workers.values():
            if worker.report.lacks:
                lacks = one_line("; ".join(worker.report.lacks), 200)
                names.setdefault(lacks, []).append(worker.name)
        lines = []
        for lacks, workers in names.items():
            lines.append(f"{one_line(', '.join(sorted(workers)), 100)}: {lacks}")
        return sorted(lines)

    # Called on the loop of Dask's client.

    async def _begin(self) -> None:
        with suppress(TimeoutError):
            await self._client.wait_for_workers(1, timeout=_FIRST_WORKER_SECONDS)
        await self._look()
        self._watching = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            with suppress(Exception):  # The cluster may be about to end.
                await self._look()

    async def _look(self) -> None:
        """Notice workers that were lost, and examine new ones."""
        there = await self._drop_lost_workers()
        new = [address for address in there if address not in self._workers]
        reports = await asyncio.gather(*map(self._examine, new))
        for address, reported in zip(new, reports, strict=True):
            report = reported
            if not report.lacks:
                report = self._require_versions(reported)
            name = str(there[address]["name"])
            self._workers[address] = Worker(name, there[address]["nthreads"], report)

    async def _drop_lost_workers(self) -> Mapping[str, Any]:
        """All workers, as the scheduler describes them."""
        there = (await self._client.scheduler.identity(n_workers=-1))["workers"]
        for address in self._workers.keys() - there.keys():
            worker = self._workers.pop(address)
            if not worker.report.lacks:
                self._lost.append(worker.name)
        return there  # type: ignore[no-any-return]

    async def _examine(self, address: str) -> WorkerReport:
        version_of = importlib.metadata.version
        ours = version_of(_PACKAGE)
        try:
            async with asyncio.timeout(_EXAMINING_SECONDS):
                theirs = await self._call(address, version_of, _PACKAGE)
                if theirs == ours:
                    report = await self._call(address, examine, self._brief)
                    return from_worker(WorkerReport, report)
        except TimeoutError:
            return WorkerReport(("it does not answer",))
        except Exception as error:
            # Exceptions of a worker are not unpickled, so Dask has none to show.
            problem = one_line(str(error), 200) or "it failed, and its log says why"
            return WorkerReport((problem,))
        theirs = one_line(str(theirs), 50)
        lacks = f"it has {_PACKAGE} {theirs}, and this machine has {ours}"
        return WorkerReport((lacks,))

    async def _call(self, address: str, *call: Any) -> Any:
        return (await self._client.run(*call, workers=[address]))[address]

    def _require_versions(self, report: WorkerReport) -> WorkerReport:
        lacks = []
        for agent in self._brief.agents:
            theirs = report.versions.get(agent, "missing")
            ours = self._versions.setdefault(agent, theirs)
            if theirs != ours:
                lacks.append(f"{agent} is {theirs} there, and {ours} in this run")
        return replace(report, lacks=tuple(lacks))

    async def _carry_out(self, question: Question, allowance: Allowance) -> Outcome:
        task = question.task
        assert task
        files = {}
        try:
            for skill in task.skills:
                files[skill.digest] = await asyncio.to_thread(skill.files)
        except InputError as error:
            return Outcome(NoAnswer(error.message(self._spell)))

        start = None
        if task.setup or task.needs.build:
            setup = await self._set_up(question, task)
            if not isinstance(setup.reply, Answer):
                return setup
            start = setup.reply

        calls = max(1, self._concurrency // self.places)
        name = f"upskill-trial-{token_hex(8)}"
        sent = SentTrial(name, question, allowance, calls, files, start)
        return await self._submit_until_done(sent, task.agent)

    async def _set_up(self, question: Question, task: Task) -> Outcome:
        """What the setup of a case makes: all its trials start from the same."""
        key = setup_key(task)
        if key not in self._setups:
            setup = replace(question, task=replace(task, skills=()), run=0)
            name = f"upskill-setup-{token_hex(8)}"
            sent = SentTrial(name, setup, Allowance(), is_setup=True)
            work = self._submit_until_done(sent, task.agent)
            self._setups[key] = asyncio.ensure_future(work)
        return await asyncio.shield(self._setups[key])

    async def _submit_until_done(self, sent: SentTrial, agent: str) -> Outcome:
        """Submit a trial. Dask does it again itself, while a worker is left."""
        data = packed(sent)
        problem = f"its workers were lost {_MAX_TRIES} times"
        for number in range(_MAX_TRIES):
            workers = await self._wait_for_workers()
            if not workers:
                problem = f"no worker of {self._address} is left that can carry it out"
                break
            try:
                if workers != self._briefed:
                    # Keys are in no task, but in data of Dask's, which frees them.
                    self._sent_brief = await self._client.scatter(
                        self._brief, workers=workers, broadcast=True, hash=False
                    )
                    self._briefed = workers
                future = self._client.submit(
                    carry_out,
                    self._sent_brief,
                    data,
                    key=f"{sent.trial}-{number}",
                    pure=False,
                    workers=workers,
                )
                result = await self._result(future, workers)
                return outcome_from_worker(result, sent.trial)
            except CancelledError:
                # The brief may be lost, too.
                self._briefed = ()
                if self._client.status == "running":
                    await self._drop_lost_workers()
            except ValueError as error:
                problem = f"its worker sent no outcome: {error}"
                break
            except Exception:
                # It was killed again and again, or what it raised is not unpickled.
                problem = "its worker was lost or failed"
                break
        if self._client.status != "running":
            problem = f"the connection to {self._address} was lost"
        return Outcome(NoAnswer(f"{agent}: {problem}"))

    async def _wait_for_workers(self) -> Sequence[str]:
        with suppress(TimeoutError):
            async with asyncio.timeout(_NO_WORKER_SECONDS):
                while self._client.status == "running":
                    if self._fit:
                        return list(self._fit)
                    await asyncio.sleep(_POLL_SECONDS)
        return []

    async def _result(self, future: Any, workers: Sequence[str]) -> object:
        """What a task returns; CancelledError if it was lost with its workers."""
        result = asyncio.ensure_future(future.result())
        try:
            while not result.done():
                await asyncio.wait({result}, timeout=_POLL_SECONDS)
                if self._workers.keys().isdisjoint(workers) and not result.done():
                    raise CancelledError
            return result.result()
        finally:
            result.cancel()
            with suppress(Exception):
                await future.cancel()  # Or its worker would go on with it.
