"""Trials as tasks of Dask: submitted, and submitted again if their worker is lost."""

import asyncio
from concurrent.futures import CancelledError as FuturesCancelled
from contextlib import suppress
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from ..._util.texts import counted, one_line
from ...agents.staging import setup_key
from ...errors import InputError
from ...skills.case import WorkspaceFile
from ...trials.answer import Answer
from ...trials.arm import SkillCopy, digest_of_copy
from ...trials.trial import Question, Task
from ..agent_jobs import TrialCalls
from ..budget import Allowance, PaidCall
from .brief import (
    CPU,
    MEMORY,
    Outcome,
    SentTrial,
    TrialEvent,
    from_worker,
    outcome_from_worker,
    packed,
    require_size,
    resource_of,
    topic_of,
)
from .on_worker import carry_out
from .workers import Workers

if TYPE_CHECKING:
    from distributed import Future as DaskFuture

_MOST_TRIES: Final = 3


@dataclass
class DispatchedTrial:
    """A trial that was handed out: where it runs, and what its calls took."""

    call: TrialCalls
    worker: tuple[str, str] | None = None  # address and name
    begun: int = 0  # times
    spent: list[PaidCall] = field(default_factory=list)  # since it began last
    lost: list[PaidCall] = field(default_factory=list)  # on workers that were lost

    @property
    def words(self) -> str:
        return (
            f"its worker {one_line(self.worker[1], 50)}"
            if self.worker
            else "its worker"
        )


class Dispatch:
    """Hands out trials, on the loop of Dask's client."""

    def __init__(self, client: Any, address: str, run: str, workers: Workers) -> None:
        self.moved = 0  # trials of lost workers
        self._client = client
        self._address = address
        self._run = run
        self._workers = workers
        self._trials: dict[str, DispatchedTrial] = {}
        self._starts: dict[str, asyncio.Future[Outcome | str]] = {}  # what setups made

    @property
    def at_work(self) -> int:
        """Trials that a worker is known to have begun; called from any thread."""
        return sum(trial.worker is not None for trial in list(self._trials.values()))

    def listen(self) -> None:
        """Listen to what workers report."""
        self._client.subscribe_topic(topic_of(self._run), self._on_event)

    async def hand_out(
        self, question: Question, allowance: Allowance, trial: DispatchedTrial
    ) -> Outcome | str:
        """Have a trial carried out; returns why that failed, if it did."""
        task = question.task
        assert task
        files = [await asyncio.to_thread(_files_of, skill) for skill in task.skills]
        prepared: Answer | None = None
        if task.setup or task.needs.build:
            start = await self._start(question, trial.call)
            if isinstance(start, str) or not isinstance(start.reply, Answer):
                return start
            prepared = start.reply
        skills = tuple(
            replace(skill, folder="", ref=None, text="") for skill in task.skills
        )
        sent = SentTrial(
            f"upskill-trial-{token_hex(8)}",  # what schedulers and dashboards show
            replace(question, task=replace(task, skills=skills)),
            allowance,
            tuple(files),
            prepared,
        )
        return await self._carried_out(sent, trial)

    async def _start(self, question: Question, call: TrialCalls) -> Outcome | str:
        """What the setup of a case makes: it runs once,
        and all trials start from the same.
        """
        assert question.task
        key = setup_key(question.task)
        if key not in self._starts:
            self._starts[key] = asyncio.ensure_future(self._set_up(question, key, call))
        return await asyncio.shield(self._starts[key])

    async def _set_up(
        self, question: Question, key: str, call: TrialCalls
    ) -> Outcome | str:
        assert question.task
        # No trial
        setup = replace(question, task=replace(question.task, skills=()), run=0)
        name = f"upskill-setup-{self._run}-{key[:16]}-{token_hex(2)}"
        sent = SentTrial(name, setup, Allowance(), is_setup=True)
        return await self._carried_out(sent, DispatchedTrial(call))

    async def _carried_out(
        self, sent: SentTrial, trial: DispatchedTrial
    ) -> Outcome | str:
        task, data = sent.question.task, packed(sent)
        assert task
        self._trials[sent.trial] = trial
        try:
            unknown = 0  # times that a worker did not know of the run
            while unknown < _MOST_TRIES:
                future: DaskFuture[bytes] = self._client.submit(
                    carry_out,
                    self._run,
                    sent.trial,
                    data,
                    pure=False,
                    key=f"{sent.trial}-{token_hex(2)}",
                    resources=self._needs(task),
                )
                outcome = await self._outcome(future, task.agent, trial)
                if isinstance(outcome, Outcome) and outcome.trial != sent.trial:
                    return f"{trial.words} sent the outcome of another trial"
                if isinstance(outcome, str) or (outcome and outcome.reply):
                    return outcome
                # Dask counts for each task anew
                if not outcome and trial.begun > _MOST_TRIES:
                    return f"its worker was lost {trial.begun} times"
                unknown += outcome is not None
            return "its workers do not know of this run any more"
        finally:
            del self._trials[sent.trial]

    def _needs(self, task: Task) -> dict[str, float]:
        """The resources that a worker must have free."""
        memory = self._workers.memory_for(task.agent, task.needs.memory_mb or 0)
        return {MEMORY: memory, CPU: 1, resource_of(self._run, task.agent): 1}

    async def _outcome(
        self, future: "DaskFuture[Any]", agent: str, trial: DispatchedTrial
    ) -> Outcome | str | None:
        """What came of a task; None if it must be submitted again."""
        workers, result = self._workers, asyncio.ensure_future(self._result(future))
        try:
            while not result.done():
                changed = asyncio.ensure_future(workers.changed.wait())
                await asyncio.wait(
                    (result, changed), return_when=asyncio.FIRST_COMPLETED
                )
                changed.cancel()
                if result.done():
                    break
                if agent in workers.given_up:
                    return f"no worker of {self._address} is left that can carry it out"
                if not trial.worker or trial.worker[0] not in workers.fit:
                    return None
            return outcome_from_worker(result.result())
        except FuturesCancelled:
            return f"the connection to {self._address} was lost"
        except ValueError as error:
            return f"{trial.words} sent no outcome: {one_line(str(error), 200)}"
        except Exception as error:
            if future.status == "error":  # ``carry_out`` raises nothing
                return (
                    f"{trial.words} was lost or failed,"
                    f" {counted(max(1, trial.begun), 'time')}"
                )
            return f"the cluster did not carry it out: {one_line(str(error), 200)}"
        finally:
            result.cancel()
            with suppress(Exception):
                if not future.done():
                    await future.cancel()  # or the worker would go on with it
                future.release()

    async def _result(self, future: "DaskFuture[bytes]") -> object:
        """What a task returns; ValueError if that is too large to be fetched."""
        await future._exception()  # or none, once it is done
        if future.status == "finished":
            sizes = await self._client.scheduler.nbytes(
                keys=[future.key], summary=False
            )
            require_size(sizes[future.key])
        return await future._result()

    def _on_event(self, message: tuple[float, object]) -> None:
        """A worker reports that a trial began, or that a call of it was answered."""
        try:
            event = from_worker(TrialEvent, message[1])
        except ValueError:
            return
        trial = self._trials.get(event.trial)
        if trial is None:
            return
        if event.usage is None:
            trial.lost += trial.spent
            trial.spent.clear()
            if trial.worker:
                self.moved += 1
                self._workers.count_lost(*trial.worker)
            trial.worker = event.address, event.worker
            trial.begun += 1
        else:
            trial.spent.append(trial.call.paid(event.usage, by_user=event.by_user))


def _files_of(skill: SkillCopy) -> tuple[WorkspaceFile, ...]:
    files = skill.files()
    if digest_of_copy(files) != skill.digest:
        raise InputError(f"the skill {skill.name}", "has changed since the run began")
    return tuple(files)
