"""A run's cluster: the workers that fit, and the trials that they carry out."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final, Self

from ..._util.json_forms import form_of
from ..._util.texts import counted, one_line
from ...agents.staging import setup_key
from ...engine.agent_jobs import Trials
from ...engine.budget import Allowance, Budget
from ...engine.forecast import Amount
from ...engine.lane import STOPPED, over_budget
from ...engine.machine import default_at_once
from ...errors import Spell
from ...measure.open_run import OpenRun
from ...trials.answer import Answer, NoAnswer, Reply
from ...trials.trial import Question
from .brief import make_brief
from .connection import cluster_error, connect
from .worker import PACKAGE, Outcome, WorkerReport, carry_out, examine, set_up

_FIRST_WORKER_SECONDS: Final = 10.0
_NO_WORKER_SECONDS: Final = 60.0
_CLOSING_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 1.0
_MAX_TRIES: Final = 3


class Cluster(Trials):
    """A cluster that carries out trials of one run, in place of this machine."""

    def __init__(self, run: OpenRun, tell: Callable[[str], None]) -> None:
        """SettingsError if there is no such cluster, or if no worker fits."""
        settings = run.settings
        assert settings.cluster
        self._address = settings.cluster
        self._brief = make_brief(run)
        self._calls = settings.calls_at_once
        self._at_once = min(settings.agents_at_once or self._calls, self._calls)
        run.settings = replace(settings, agents_at_once=self._at_once)
        # A run has one version of each agent, by which answers are stored.
        self._versions = {PACKAGE: version(PACKAGE), **run.roster.pins}
        self._workers: dict[str, WorkerReport] = {}
        self._setups: dict[str, asyncio.Task[Outcome]] = {}
        self._budget = Budget()
        self._spell: Spell = str
        tell(f"looking at the workers of {self._address}")
        at_once = settings.agents_at_once or default_at_once()
        self._client = connect(self._address, at_once)
        self._prepare()
        run.roster.set_versions({name: self._versions[name] for name in run.agents})

    def _prepare(self) -> None:
        """Look at all workers. SettingsError if none fits."""
        with suppress(TimeoutError):
            self._client.wait_for_workers(1, timeout=_FIRST_WORKER_SECONDS)
        self._client.sync(self._look)
        if not self._fit:
            self.leave()
            problem = f"no worker fits: {'; '.join(self._lacks) or 'there is none'}"
            hint = (
                f"Start one: dask worker {self._address}."
                " pytest-upskill doctor, run there, says what it lacks."
            )
            raise cluster_error(self._address, problem, hint)
        self._client.loop.add_callback(self._watch)

    def use(self, budget: Budget, spell: Spell) -> Self:
        """Carry out the trials of an engine."""
        self._budget = budget
        self._spell = spell
        return self

    def leave(self) -> None:
        """End all trials, and the workers that were started here."""
        with suppress(Exception):
            self._client.close(_CLOSING_SECONDS)
            if self._client.cluster:
                self._client.cluster.close(_CLOSING_SECONDS)

    @property
    def lines(self) -> list[str]:
        """The cluster in words: how many workers, and what others lack."""
        workers = counted(len(self._fit), "worker")
        trials = counted(self._trials_at_once, "trial")
        kinds = {worker.sandbox for worker in self._fit.values()}
        sandbox = one_line(", ".join(sorted(kinds)), 200)
        lines = [
            f"cluster {self._address}: {workers}, {trials} at once, sandbox: {sandbox}"
        ]
        return lines + [f"no trials for worker {lacks}" for lacks in self._lacks]

    async def run(self, question: Question, call: object) -> Reply:  # noqa: ARG002
        """Have a trial carried out, again and with more if its allowance is too low."""
        budget = self._budget
        is_begun = False
        while not (refusal := budget.refusal_of_case(question)):
            allowance = budget.allot(question)
            if allowance is None:
                # Others may spend all that is left, and will return some.
                await asyncio.sleep(_POLL_SECONDS)
                continue

            is_begun = True
            outcome = await self._run(question, allowance)
            if not outcome.exceeded:
                return outcome.reply
            if allowance.is_all:
                refusal = budget.reached(question)
                break
        return replace(over_budget(refusal, self._spell), over_budget=not is_begun)

    async def _run(self, question: Question, allowance: Allowance) -> Outcome:
        loop = self._client.loop.asyncio_loop
        work = self._carry_out(question, allowance)
        outcome = Outcome(NoAnswer(STOPPED))
        try:
            outcome = await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(work, loop)
            )
        finally:
            self._budget.spend(
                question,
                Amount(outcome.tokens, outcome.usd),
                outcome.unanswered,
                exceeded=outcome.exceeded,
            )
        return outcome

    @property
    def _fit(self) -> dict[str, WorkerReport]:
        """The workers that can carry out trials, by address."""
        workers = self._workers.items()
        return {address: worker for address, worker in workers if not worker.lacks}

    @property
    def _trials_at_once(self) -> int:
        threads = sum(worker.threads for worker in self._fit.values())
        return min(threads, self._at_once)

    @property
    def _lacks(self) -> list[str]:
        """What workers lack, with their names; those that lack the same in one line."""
        names = defaultdict(list)
        for worker in self._workers.values():
            names[worker.lacks].append(worker.name)
        lines = []
        for lacks in sorted(filter(None, names)):
            lines.append(f"{one_line(', '.join(sorted(names[lacks])), 100)}: {lacks}")
        return lines

    # Called on the loop of Dask's client.

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            with suppress(Exception):  # The cluster may be about to end.
                await self._look()

    async def _look(self) -> None:
        """Notice workers that were lost, and examine new ones."""
        there = (await self._client.scheduler.identity(n_workers=-1))["workers"]
        for address in self._workers.keys() - there.keys():
            del self._workers[address]

        new = [address for address in there if address not in self._workers]
        calls = []
        for address in new:
            calls.append(self._client.run(examine, self._brief, workers=[address]))
        results: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
        for address, result in zip(new, results, strict=True):
            report = WorkerReport("it gave no report, and its log may say why")
            with suppress(Exception):
                report = form_of(WorkerReport).validate_json(result[address])
            self._workers[address] = replace(
                report,
                lacks=one_line(report.lacks or self._misfit(report), 200),
                name=str(there[address]["name"]),
                threads=there[address]["nthreads"],
            )

    def _misfit(self, report: WorkerReport) -> str:
        """What has another version than in this run."""
        problems = []
        for name in (PACKAGE, *self._brief.agents):
            theirs = report.versions.get(name, "missing")
            ours = self._versions.setdefault(name, theirs)
            if theirs != ours:
                problems.append(f"{name} is {theirs} there, and {ours} in this run")
        return "; ".join(problems)

    async def _carry_out(self, question: Question, allowance: Allowance) -> Outcome:
        task = question.task
        assert task
        for skill in task.skills:
            await asyncio.to_thread(skill.files)

        start = None
        if task.setup or task.needs.build:
            key = setup_key(task)
            if key not in self._setups:
                work = self._submit(question, set_up, task)
                self._setups[key] = asyncio.ensure_future(work)
            # All trials of a case start from the same.
            setup = await asyncio.shield(self._setups[key])
            if not isinstance(setup.reply, Answer):
                return setup
            start = setup.reply

        calls = self._calls // max(1, self._trials_at_once)
        return await self._submit(
            question, carry_out, question, allowance, calls, start
        )

    async def _submit(self, question: Question, work: Any, *args: Any) -> Outcome:
        """Submit work. Dask does it again itself, while a worker is left."""
        problem = f"its workers were lost {_MAX_TRIES} times"
        for _ in range(_MAX_TRIES):
            workers = await self._wait_for_workers()
            if not workers:
                problem = f"no worker of {self._address} is left that can carry it out"
                break
            future = self._client.submit(
                work, self._brief, *args, workers=workers, pure=False
            )
            try:
                while not self._workers.keys().isdisjoint(workers):
                    if future.done():
                        return form_of(Outcome).validate_json(await future)
                    await asyncio.sleep(_POLL_SECONDS)
            except Exception:
                # It was killed again and again, or what it sent is no Outcome.
                problem = "its worker was lost or failed"
                break
            finally:
                with suppress(Exception):
                    await future.cancel()  # Or its worker would go on with it.
        if self._client.status != "running":
            problem = f"the connection to {self._address} was lost"
        assert question.task
        return Outcome(NoAnswer(f"{question.task.agent}: {problem}"))

    async def _wait_for_workers(self) -> list[str]:
        """The workers that fit; empty if none comes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_NO_WORKER_SECONDS):
                while not self._fit:
                    await asyncio.sleep(_POLL_SECONDS)
        return list(self._fit)
