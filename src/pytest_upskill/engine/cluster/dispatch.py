"""Trials as tasks of Dask: handed out, carried out somewhere, handed out again if need be."""

import asyncio
import pickle
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError as FuturesCancelled
from contextlib import suppress
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from ..._util.texts import one_line
from ...agents.staging import key_of
from ...errors import InputError
from ...trials.answer import Usage
from ...trials.installing import digest_of_copy, files_to_install
from ...trials.task import Installed
from ...trials.trial import Question
from ..agent_jobs import TrialCalls
from ..budget import Allowance
from .exchange import CPU, MEMORY, Outcome, Parcel, resource_of, topic_of
from .on_worker import carry_out
from .workers import Workers

if TYPE_CHECKING:
    from distributed import Future as Handed

_MOST_TRIES: Final = 3


@dataclass
class OnItsWay:
    """A trial that was handed out: who hears of its calls, where it began, what they took."""

    call: TrialCalls
    worker: tuple[str, str] | None = None  # address and name
    begun: int = 0  # times
    spent: list[Usage] = field(default_factory=list)  # since it began last
    lost: list[Usage] = field(default_factory=list)  # before that


class Dispatch:
    """Hands out trials, on the loop of Dask's client."""

    def __init__(self, client: Any, address: str, run: str, workers: Workers) -> None:
        self.moved = 0  # trials of lost workers
        self._client = client
        self._address = address
        self._run = run
        self._workers = workers
        self._trials: dict[str, OnItsWay] = {}
        self._copies: dict[tuple[str, str], Handed[bytes]] = {}  # by digest of a skill, and agent
        self._starts: dict[str, Handed[Outcome]] = {}  # what setups made

    @property
    def at_work(self) -> int:
        """Trials that a worker has begun, as far as known; called from any thread."""
        return sum(trial.worker is not None for trial in list(self._trials.values()))

    def listen(self) -> None:
        """Hear of trials that begin, and of their calls."""
        self._client.subscribe_topic(topic_of(self._run), self._hear)

    async def hand_out(
        self, question: Question, allowance: Allowance, trial: OnItsWay
    ) -> Outcome | str:
        """Have a trial carried out; why it can't be, if nobody carries it out."""
        number = f"upskill-trial-{token_hex(8)}"  # all that schedulers and dashboards show
        task = question.task
        assert task
        skills = tuple(replace(one, folder="", ref=None, text="") for one in task.skills)
        sent = replace(question, task=replace(task, skills=skills))
        parcel = pickle.dumps(Parcel(number, sent, allowance))
        self._trials[number] = trial
        try:
            strangers = 0
            while strangers < _MOST_TRIES:
                copies = [await self._copy(skill, task.agent) for skill in task.skills]
                needs = self._needs(task.agent)
                start = self._start(question, needs) if task.setup else None
                key = f"{number}-{token_hex(2)}"
                handed = self._submit(parcel, start, *copies, key=key, resources=needs)
                done = await self._done(handed, task.agent, trial)
                if isinstance(done, str) or (done and done.reply):
                    return done
                if not done and trial.begun > _MOST_TRIES:  # Dask counts for each task anew
                    return f"its worker was lost {trial.begun} times"
                strangers += done is not None
                if start and (done or start.status != "finished"):
                    self._start_anew(key_of(task), start)
                self._forget_lost(copies)
            return "its workers do not know of this run any more"
        finally:
            del self._trials[number]

    def _needs(self, agent: str) -> dict[str, float]:
        """The resources that a worker must have free."""
        memory = self._workers.memory_for(agent)
        return {MEMORY: memory, CPU: 1, resource_of(self._run, agent): 1}

    def _submit(self, parcel: bytes, *more: object, **how: object) -> "Handed[Outcome]":
        handed: Handed[Outcome] = self._client.submit(
            carry_out, self._run, parcel, *more, pure=False, **how
        )
        return handed

    def _start(self, question: Question, needs: Mapping[str, float]) -> "Handed[Outcome]":
        """What the setup of a case makes: it runs once, and all trials start from the same."""
        assert question.task
        key = key_of(question.task)
        if key not in self._starts:
            sent = replace(question, task=replace(question.task, skills=()), run=0)  # no trial
            name = f"upskill-setup-{self._run}-{key[:16]}-{token_hex(2)}"
            parcel = pickle.dumps(Parcel(name, sent, Allowance(), is_setup=True))
            self._starts[key] = self._submit(parcel, None, key=name, resources=needs)
        return self._starts[key]

    def _start_anew(self, key: str, start: "Handed[Outcome]") -> None:
        """Have a setup run again: once, so that all trials start from the next."""
        if self._starts.get(key) is start:
            del self._starts[key]

    async def _copy(self, skill: Installed, agent: str) -> "Handed[Any]":
        """The files of a skill, as the result of a task: Dask sends it to each worker once.

        Only workers that have the agent keep it: all trials would wait for another one that hangs.
        """
        place = (skill.digest, agent)
        if place not in self._copies:
            files = await asyncio.to_thread(files_to_install, skill)
            if digest_of_copy(files) != skill.digest:
                problem = "has changed since the run began"
                raise InputError(f"the skill {skill.name}", problem)
            key = f"upskill-skill-{self._run}-{skill.digest[:16]}-{token_hex(2)}"
            needs = {resource_of(self._run, agent): 1}
            copy = self._client.submit(bytes, pickle.dumps(files), key=key, resources=needs)
            self._copies[place] = copy
        return self._copies[place]

    def _forget_lost(self, copies: "Sequence[Handed[Any]]") -> None:
        """Send files again that went with their worker: Dask forgets those that wait for another.

        It looks for one when a worker joins, which has the agent only once it was examined.
        """
        lost = [one for one in copies if one.status != "finished"]
        for place, known in list(self._copies.items()):
            if any(known is one for one in lost):
                del self._copies[place]

    async def _done(
        self, handed: "Handed[Any]", agent: str, trial: OnItsWay
    ) -> Outcome | str | None:
        """What came of a task; None if it must be handed out again."""
        from distributed.scheduler import KilledWorker

        workers, result = self._workers, asyncio.ensure_future(handed._result())
        try:
            while not result.done():
                changed = asyncio.ensure_future(workers.changed.wait())
                await asyncio.wait((result, changed), return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if result.done():
                    break
                if agent in workers.given_up:
                    return f"no worker of {self._address} is left that can carry it out"
                if not trial.worker or trial.worker[0] not in workers.fit:
                    return None
            outcome: Outcome = result.result()
            return outcome
        except KilledWorker as error:
            return f"its worker was lost {error.allowed_failures + 1} times"
        except FuturesCancelled:
            return f"the connection to {self._address} was lost"
        except Exception as error:
            return f"the cluster did not carry it out: {one_line(str(error), 200)}"
        finally:
            result.cancel()
            with suppress(Exception):
                if not handed.done():
                    await handed.cancel()  # or the worker would go on with it
                handed.release()

    def _hear(self, event: tuple[float, Any]) -> None:
        """A worker tells that a trial began, or that a call of it was answered."""
        told = event[1]
        trial = self._trials.get(told["trial"])
        if trial is None:
            return
        if told["usage"] is None:
            trial.lost += trial.spent
            trial.spent.clear()
            if trial.worker:
                self.moved += 1
                self._workers.count_lost(*trial.worker)
            trial.worker = told["address"], told["worker"]
            trial.begun += 1
        else:
            usage = Usage(*told["usage"])
            trial.spent.append(usage)
            trial.call.paid(usage)
