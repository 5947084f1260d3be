"""Trials of agents on a Dask cluster, as the controller sees it.

The controller hands out trials: those without a stored answer, as long as there is money. Workers
ask the models themselves, with keys of their own; Dask's semaphore limits the calls of all of them.
Dask decides where a trial runs, and starts it again elsewhere if its worker is lost.
"""

import asyncio
import importlib.metadata
import logging
import os
import pickle
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError as FuturesCancelled
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from .._util.files import read_file
from .._util.keys import password_of
from .._util.texts import counted, one_line
from ..agents.setup import key_of
from ..errors import InputError, Setting, SettingsError, Spell, Text, spelled
from ..models import ModelSpec
from ..models.prices import Price
from ..models.scripted import ScriptedProvider, script_file
from ..settings import Settings
from ..trials.answer import NoAnswer, Reply, Usage
from ..trials.installing import digest_of_copy, files_to_install
from ..trials.task import Installed
from ..trials.trial import Question
from .agent_jobs import Calls, default_at_once
from .budget import Allowance, Budget
from .cluster_worker import (
    CPU,
    MEMORY,
    Brief,
    Found,
    Outcome,
    Parcel,
    alive,
    carry_out,
    leave,
    prepare,
    resource_of,
    topic_of,
)

if TYPE_CHECKING:
    from distributed import Client, LocalCluster
    from distributed import Future as Handed

_PACKAGE: Final = "pytest-upskill"
_FORMS: Final = "Write tcp://HOST:8786, tls://HOST:8786, or local:4 for 4 workers on this machine."
_PATIENCE: Final = 5.0  # seconds for the scheduler to answer
_FIRST_WORKER: Final = 10.0  # seconds
_LEAVING: Final = 10.0  # seconds for workers to forget a run
_LOOK: Final = 2.0  # seconds between looks at the workers
_ALONE: Final = 60.0  # seconds without a worker that fits, until trials are given up
_AHEAD: Final = 2  # trials handed out per place: a cluster that grows by itself must see some wait
_MOST_TRIES: Final = 3
_SHOWN: Final = 200  # characters of what a worker lacks
_NAMES: Final = 5
_HINT: Final[Text] = (
    "pytest-upskill doctor, run there, says more. Keys are sent with ",
    Setting("cluster_send_keys"),
    " alone.",
)

_T = TypeVar("_T")


@dataclass
class _Trial:
    """A trial on its way: who hears of its calls, where it began last, what they took."""

    call: Calls
    worker: tuple[str, str] | None = None  # address and name
    spent: list[Usage] = field(default_factory=list)  # since it began last
    lost: list[Usage] = field(default_factory=list)  # before that


def brief_of(
    settings: Settings,
    specs: Mapping[str, ModelSpec],
    prices: Mapping[str, Price | None],
    agents: tuple[str, ...],
) -> Brief:
    """What workers must know of a run; SettingsError if a model can't be asked from there."""
    keys, scripts = dict[str, str](), dict[str, tuple[str, bytes]]()
    for name, spec in specs.items():
        if not type(spec.provider).__module__.startswith(__name__.partition(".")[0] + "."):
            problem = "a model of a conftest.py is not known to the workers of a cluster"
            raise spec.error(problem, ("Drop ", Setting("cluster"), "."))
        if settings.cluster_send_keys and (found := spec.provider.key_in(os.environ)):
            keys[found[0]] = found[1]
        if password_of(spec.base_url or "") and not settings.cluster_send_keys:
            hint = ("Add ", Setting("cluster_send_keys"), " if they may have it.")
            raise spec.error("the password in its address would go to the workers", hint)
        if isinstance(spec.provider, ScriptedProvider) and (file := script_file(spec)):
            scripts[name] = file.name, read_file(file)
    return Brief(
        token_hex(4),
        specs,
        prices,
        scripts,
        agents,
        settings.sandbox,
        settings.image,
        settings.agent_timeout,
        settings.call_timeout,
        settings.concurrency,
        keys,
    )


class Cluster:
    """A connection to a cluster: which of its workers fit, and who carries out trials there."""

    def __init__(self, address: str, at_once: int | None = None) -> None:
        """SettingsError if there is no such cluster, or if Dask is not installed."""
        self.fit: dict[str, Found] = {}  # workers, by address
        self.unfit: dict[str, Found] = {}
        self._address = address
        self._at_once = at_once
        self._lost: dict[str, str] = {}  # names of workers, by address
        self._moved = 0  # trials of lost workers
        self._trials: dict[str, _Trial] = {}
        self._copies: dict[str, Handed[bytes]] = {}  # files of skills, by digest
        self._starts: dict[str, Handed[Outcome]] = {}  # what setups made
        self._brief: Brief | None = None
        self._pins: Mapping[str, str] = {}
        self._run = ""
        self._local: LocalCluster | None
        self._client: Any  # its methods are to be awaited on its loop, and not elsewhere
        self._local, self._client = _connected(address, at_once)
        self._loop: asyncio.AbstractEventLoop = self._client.loop.asyncio_loop
        self._renewed = asyncio.Event()  # there are workers again, after there were none
        self._given_up = asyncio.Event()
        self._watching = self._begun(self._watch())

    # Called from any thread.

    def prepare(self, brief: Brief, pins: Mapping[str, str] | None = None) -> dict[str, str]:
        """Look at all workers; the versions of the agents there. SettingsError if none fits.

        ``pins`` are the versions that are asked for.
        """
        self._brief, self._run, self._pins = brief, brief.run, pins or {}
        self._begun(self._first_look()).result()
        if not self.fit:
            if not self.unfit:
                raise self._error("it has no workers", f"Start one: dask worker {self._address}")
            raise self._error(f"no worker fits: {'; '.join(_lacks(self._lacking()))}", _HINT)
        versions = {
            name: one for found in self.fit.values() for name, one in found.versions.items()
        }
        if missing := [name for name in brief.agents if name not in versions]:
            told = "; ".join(_lacks(self._lacking()))
            raise self._error(f"no worker has {', '.join(missing)}: {told}", _HINT)
        return versions

    @property
    def lines(self) -> list[str]:
        """The cluster in words: how many workers, and what others lack."""
        number, places = len(self.fit), sum(one.places for one in self.fit.values())
        sandboxes = ", ".join(sorted({one.sandbox for one in self.fit.values()}))
        lines = [
            f"cluster {self._address}: {counted(number, 'worker')}, "
            f"{counted(places, 'trial')} at once, sandbox: {sandboxes}"
        ]
        few = [one for one in self._lacking() if one.versions]
        none = [one for one in self._lacking() if not one.versions]
        lines += [f"only some trials for worker {told}" for told in _lacks(few)]
        return lines + [f"no trials for worker {told}" for told in _lacks(none)]

    def trials(self, budget: Budget, memory_of: Callable[[str], int], spell: Spell) -> "_Elsewhere":
        """Who carries out the trials of agents."""
        return _Elsewhere(self, budget, memory_of, spell)

    @property
    def places(self) -> int:
        places = _AHEAD * sum(one.places for one in self.fit.values())
        return max(1, places if self._at_once is None else min(places, self._at_once))

    @property
    def note(self) -> str:
        """What became of workers."""
        if not self._lost:
            return ""
        workers = ", ".join(one_line(name, 50) for name in dict.fromkeys(self._lost.values()))
        moved = f": {counted(self._moved, 'trial')} began again on another" if self._moved else ""
        return f"The cluster lost {counted(len(self._lost), 'worker')} ({workers}){moved}."

    def close(self) -> None:
        """Let the workers forget the run, and end those that were started for it."""
        if self._client.status == "closed":
            return
        with suppress(Exception):
            self._begun(self._end()).result(timeout=_LEAVING)
        with suppress(Exception):
            self._client.close(timeout=_LEAVING)
        if self._local:
            with suppress(Exception):
                self._local.close(timeout=_LEAVING)

    async def on_loop(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do something on the loop of Dask's client, from another one."""
        return await asyncio.wrap_future(self._begun(work))

    def _begun(self, work: Coroutine[Any, Any, _T]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _lacking(self) -> list[Found]:
        return [one for one in (*self.fit.values(), *self.unfit.values()) if one.lacks]

    def _error(self, problem: str, hint: Text = "") -> SettingsError:
        return SettingsError("cluster", problem, hint, value=self._address)

    # Called on the loop of Dask's client.

    async def hand_out(
        self, question: Question, allowance: Allowance, memory: int, trial: _Trial
    ) -> Outcome | str:
        """Have a trial carried out; why it can't be, if nobody carries it out."""
        number = f"upskill-trial-{token_hex(8)}"  # all that schedulers and dashboards show
        task = question.task
        assert task
        skills = tuple(replace(one, folder="", ref=None, text="") for one in task.skills)
        sent = replace(question, task=replace(task, skills=skills))
        parcel = pickle.dumps(Parcel(number, sent, allowance))
        copies = [await self._copy(skill) for skill in task.skills]
        self._trials[number] = trial
        try:
            for _ in range(_MOST_TRIES):
                needs = self._needs(task.agent, memory)
                start = self._start(question, needs) if task.setup else None
                key = f"{number}-{token_hex(2)}"
                handed = self._submit(parcel, start, *copies, key=key, resources=needs)
                done = await self._done(handed)
                if isinstance(done, str) or (done and done.reply):
                    return done
                if start and self._starts.get(key_of(task)) is start:
                    del self._starts[key_of(task)]  # once, so that all trials start from the next
            return "its workers do not know of this run any more"
        finally:
            del self._trials[number]

    def _needs(self, agent: str, memory: int) -> dict[str, float]:
        """The resources that a worker must have free; even a large agent has a place somewhere."""
        largest = max((one.memory for one in self.fit.values()), default=0.0)
        return {MEMORY: min(memory, largest), CPU: 1, resource_of(self._run, agent): 1}

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

    async def _done(self, handed: "Handed[Any]") -> Outcome | str | None:
        """What came of a task; None if it must be handed out again."""
        from distributed.scheduler import KilledWorker

        ends = [
            asyncio.ensure_future(one)
            for one in (handed._result(), self._given_up.wait(), self._renewed.wait())
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if ends[0].done():
                outcome: Outcome = ends[0].result()
                return outcome
            return self._gone if self._given_up.is_set() else None
        except KilledWorker as error:
            return f"its worker was lost {error.allowed_failures + 1} times"
        except FuturesCancelled:
            return f"the connection to {self._address} was lost"
        except Exception as error:
            return f"the cluster did not carry it out: {one_line(str(error), 200)}"
        finally:
            for one in ends:
                one.cancel()
            with suppress(Exception):
                if not handed.done():
                    await handed.cancel()  # or the worker would go on with it
                handed.release()

    @property
    def _gone(self) -> str:
        return f"no worker of {self._address} is left that fits"

    async def _copy(self, skill: Installed) -> "Handed[Any]":
        """The files of a skill, as the result of a task: Dask sends it to each worker once."""
        if skill.digest not in self._copies:
            files = await asyncio.to_thread(files_to_install, skill)
            if digest_of_copy(files) != skill.digest:
                problem = "has changed since the run began"
                raise InputError(f"the skill {skill.name}", problem)
            key = f"upskill-skill-{self._run}-{skill.digest[:16]}"
            self._copies[skill.digest] = self._client.submit(bytes, pickle.dumps(files), key=key)
        return self._copies[skill.digest]

    async def _first_look(self) -> None:
        with suppress(TimeoutError):
            await self._client.wait_for_workers(1, timeout=_FIRST_WORKER)
        self._client.subscribe_topic(topic_of(self._run), self._hear)
        await self._look_at(list(await self._client.nthreads()))

    async def _look_at(self, addresses: Sequence[str]) -> None:
        """Find out which workers fit."""
        assert self._brief
        ours = importlib.metadata.version(_PACKAGE)
        ask = self._client.run
        theirs = await ask(
            importlib.metadata.version, _PACKAGE, workers=list(addresses), on_error="return"
        )
        same = [address for address, version in theirs.items() if version == ours]
        for address, version in theirs.items():
            if address not in same:
                self.unfit[address] = Found(address, lacks=(_other_version(version, ours),))
        here = Counter(urlsplit(address).hostname for address in addresses)
        for number in set(here.values()):
            wanted = [one for one in same if here[urlsplit(one).hostname] == number]
            looks = await ask(prepare, self._brief, number, workers=wanted, on_error="return")
            for address, found in looks.items():
                if isinstance(found, Exception):
                    found = Found(address, lacks=(one_line(str(found), _SHOWN),))
                (self.fit if found.versions else self.unfit)[address] = found
        self._agree()

    def _agree(self) -> None:
        """One run has one version of an agent: the one that is asked for, or that of most."""
        for agent in self._brief.agents if self._brief else ():
            votes = Counter(
                one.versions[agent] for one in self.fit.values() if agent in one.versions
            )
            if not votes:
                continue
            usual, why = votes.most_common(1)[0][0], "on most workers"
            if agent in self._pins:
                usual, why = self._pins[agent], "is asked for"
            for address, one in list(self.fit.items()):
                if (version := one.versions.get(agent, usual)) != usual:
                    lacks = f"{agent} is {version} there, and {usual} {why}"
                    self.fit.pop(address)
                    self.unfit[address] = replace(one, versions={}, lacks=(lacks,))

    async def _watch(self) -> None:
        """Look after the workers: some get lost, others join."""
        alone = 0.0
        while True:
            await asyncio.sleep(_LOOK)
            if not self._brief or not (self.fit or self.unfit):
                continue
            with suppress(Exception):  # of a cluster that is about to end
                there = list(await self._client.nthreads())
                for address in [one for one in self.fit if one not in there]:
                    self._lost[address] = self.fit.pop(address).name
                had_some = bool(self.fit)
                new = [one for one in there if one not in self.fit and one not in self.unfit]
                if new:
                    await self._look_at(new)
                await self._client.run(alive, self._run, workers=list(self.fit), on_error="ignore")
                if self.fit and not had_some:  # Dask does not look at resources again
                    self._renewed.set()
                    self._renewed = asyncio.Event()
            alone = 0.0 if self.fit else alone + _LOOK
            if alone > _ALONE or self._client.status != "running":
                self._given_up.set()

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
                self._moved += 1
                self._lost.setdefault(*trial.worker)
            trial.worker = told["address"], told["worker"]
        else:
            usage = Usage(*told["usage"])
            trial.spent.append(usage)
            trial.call.paid(usage)

    async def _end(self) -> None:
        self._watching.cancel()
        workers = list(self.fit)
        await self._client.run(leave, self._run, workers=workers, on_error="ignore")


class _Elsewhere:
    """Carries out trials on a cluster, in place of this machine."""

    def __init__(
        self, cluster: Cluster, budget: Budget, memory_of: Callable[[str], int], spell: Spell
    ) -> None:
        self._cluster = cluster
        self._budget = budget
        self._memory_of = memory_of
        self._spell = spell
        self._settled = asyncio.Event()

    @property
    def places(self) -> int:
        return self._cluster.places

    @property
    def note(self) -> str:
        return self._cluster.note

    def memory_of(self, agent: str) -> int:  # noqa: ARG002
        return 0  # of this machine

    async def run(self, question: Question, call: Calls) -> Reply:
        assert question.task
        agent = question.task.agent
        while True:
            if refusal := self._budget.refusal(question):
                return NoAnswer(spelled(refusal, self._spell))
            allowance = await self._allotted(question)
            trial, done = _Trial(call), Outcome(None)
            try:
                memory = self._memory_of(agent)
                work = self._cluster.hand_out(question, allowance, memory, trial)
                came = await self._cluster.on_loop(work)
                done = Outcome(NoAnswer(f"{agent}: {came}")) if isinstance(came, str) else came
            except InputError as error:
                return NoAnswer(error.message(self._spell))
            finally:
                self._count(question, done, trial)
            assert done.reply
            if not done.short:
                return done.reply
            if allowance.whole:
                return NoAnswer(spelled(self._budget.reached(question), self._spell))

    async def close(self) -> None:
        pass  # whoever opened the cluster closes it

    async def _allotted(self, question: Question) -> Allowance:
        while (allowance := self._budget.allot(question)) is None:
            self._settled.clear()
            with suppress(TimeoutError):  # a judge's call may end, too, which nobody tells
                await asyncio.wait_for(self._settled.wait(), 1.0)
        return allowance

    def _count(self, question: Question, done: Outcome, trial: _Trial) -> None:
        """All that was paid counts, also what a lost worker paid."""
        lost = trial.lost if done.reply else [*trial.lost, *trial.spent]
        tokens = done.tokens + sum((one.input or 0) + (one.output or 0) for one in lost)
        usd = done.usd + self._budget.price(question, lost)
        more = done.short
        self._budget.spend(question, tokens, usd, done.unanswered, wanted_more=more)
        if isinstance(done.reply, NoAnswer):
            lost = []  # all that the trial spent is counted as unanswered by who waits for it
        self._budget.lose(question, lost)
        self._settled.set()


def _connected(address: str, at_once: int | None) -> "tuple[LocalCluster | None, Client]":
    local = re.fullmatch(r"local:([1-9]\d{0,3})", address)
    if not local and not re.fullmatch(r"(tcp|tls)://[^\s/@]+:\d+/?", address):
        raise SettingsError("cluster", "not the address of a cluster", _FORMS, value=address)
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        hint = f"pip install '{_PACKAGE}[cluster]'"
        raise SettingsError("cluster", f"needs Dask ({error})", hint, value=address) from None
    for name in ("distributed", "distributed.client", "distributed.comm", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
    started = None
    try:
        if not local:
            # Dask's client waits for a server without end that takes a connection and says nothing.
            asyncio.run(asyncio.wait_for(_asked_who_it_is(address), _PATIENCE))
        if local:
            workers = int(local[1])
            threads = -(-(at_once or default_at_once()) // workers)
            with _ctrl_c_is_ours():
                started = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=threads,
                    processes=True,
                    memory_limit=0,
                    dashboard_address="127.0.0.1:0",  # the usual port may be taken
                    silence_logs=logging.CRITICAL + 1,
                )
        return started, Client(started or address, set_as_default=False, name=_PACKAGE)
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
        if started:
            started.close()
        problem = f"no Dask scheduler answers there within {_PATIENCE:g} s"
        hint = "Start one: dask scheduler. Is the port right, and is it reachable from here?"
        if address.startswith("tls:"):
            hint += " For tls, Dask's settings name the certificates (distributed.comm.tls)."
        if local:
            problem, hint = f"its workers did not start: {one_line(str(error), 200)}", ""
        raise SettingsError("cluster", problem, hint, value=address) from None


async def _asked_who_it_is(address: str) -> None:
    from distributed import Security
    from distributed.core import rpc

    own = Security().get_connection_args("client")
    async with rpc(address, timeout=_PATIENCE, connection_args=own) as scheduler:
        await scheduler.identity()


@contextmanager
def _ctrl_c_is_ours() -> Iterator[None]:
    """Workers that are started now don't get Ctrl-C: the controller ends them, trials first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _other_version(version: object, ours: str) -> str:
    if isinstance(version, importlib.metadata.PackageNotFoundError):
        return f"{_PACKAGE} is not installed there"
    if isinstance(version, Exception):
        return one_line(str(version), _SHOWN)
    return f"it has {_PACKAGE} {one_line(str(version), 50)}, and this machine has {ours}"


def _lacks(workers: Sequence[Found]) -> list[str]:
    """What workers lack, and their names; those that lack the same in one line."""
    names = dict[str, list[str]]()
    for one in sorted(workers, key=lambda one: one.name):
        names.setdefault(one_line("; ".join(one.lacks), _SHOWN), []).append(one_line(one.name, 50))
    return [f"{', '.join(_few(own))}: {lacks}" for lacks, own in names.items()]


def _few(names: Sequence[str]) -> list[str]:
    more = len(names) - _NAMES
    return [*names[:_NAMES], f"{more} more"] if more > 0 else list(names)
