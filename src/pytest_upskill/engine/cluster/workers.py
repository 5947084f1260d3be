"""The workers of a cluster, as the controller sees them: fit, unfit or lost."""

import asyncio
import importlib.metadata
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from ..._util.texts import counted, one_line
from .brief import PACKAGE, Brief, WorkerReport, from_worker
from .on_worker import admit, alive, leave, prepare

_FIRST: Final = 10.0  # seconds for the first worker to come
_POLL: Final = 2.0  # seconds between looks at the workers
_ALIVE: Final = 20.0  # seconds between signs of life
_PATIENCE: Final = 30.0  # seconds for a worker to reply
_PROBING: Final = 150.0  # seconds for a worker to try an agent
# Seconds without a worker that fits, until trials are given up
_NO_WORKER: Final = 60.0
_SHOWN: Final = 200  # characters of what a worker lacks
_NAMES: Final = 5


class Workers:
    """Who can carry out the trials of a run. Coroutines run on
    the loop of Dask's client.
    """

    def __init__(self, client: Any, brief: Brief, pins: Mapping[str, str]) -> None:
        self.fit: dict[str, WorkerReport] = {}  # by address
        self.unfit: dict[str, WorkerReport] = {}
        self.changed = asyncio.Event()  # trials may wait for a worker that is gone
        self.given_up: set[str] = set()  # agents that no worker has had for too long
        self._client = client
        self._brief = brief
        # The version of each agent in this run, and why.
        self._chosen = {
            agent: (version, "is asked for") for agent, version in pins.items()
        }
        self._briefed: set[str] = set()  # workers that know of the run
        self._lost: dict[str, str] = {}  # names, by address

    async def first_look(self) -> None:
        with suppress(TimeoutError):
            await self._client.wait_for_workers(1, timeout=_FIRST)
        await self._examine(addresses := list(await self._client.nthreads()), addresses)

    async def watch(self) -> None:
        """Notice workers that are lost and others that join."""
        await asyncio.gather(self._poll(), self._send_signs_of_life())

    async def _poll(self) -> None:
        missing = dict.fromkeys(self._brief.agents, 0.0)  # seconds
        while True:
            await asyncio.sleep(_POLL)
            with suppress(Exception):  # the cluster may be about to end
                await self._look_again()
            for agent in missing:
                missing[agent] = (
                    0.0 if self.memory_for(agent) else missing[agent] + _POLL
                )
                if missing[agent] > _NO_WORKER or self._client.status != "running":
                    self.given_up.add(agent)
            if self.given_up:
                self._notify_all()

    async def _send_signs_of_life(self) -> None:
        """A worker that hangs must not keep others from hearing of the run."""
        while True:
            await asyncio.sleep(_ALIVE)
            with suppress(Exception):
                await asyncio.wait_for(self._send(alive, list(self.fit)), _ALIVE)

    async def dismiss(self) -> None:
        """Have all workers forget the run."""
        await self._send(leave, list(self._briefed))

    @property
    def versions(self) -> dict[str, str]:
        """The version of each agent that works somewhere."""
        reports = self.fit.values()
        return {
            agent: version
            for each in reports
            for agent, version in each.versions.items()
        }

    @property
    def places(self) -> int:
        """How many trials all workers take at once."""
        return sum(map(self._places_of, self.fit.values()))

    def memory_for(self, agent: str, asked: int = 0) -> float:
        """Megabytes that a trial is given, which may ask for some.

        Even a large one has a place on some worker.
        """
        memories = [
            report.memory for report in self.fit.values() if agent in report.versions
        ]
        return min(max(memories, default=0.0), max(self._brief.memory[agent], asked))

    @property
    def lacking(self) -> list[str]:
        """What some workers lack, in words."""
        return _lacks(self._reports_of_lacks())

    @property
    def lines(self) -> list[str]:
        """How many workers there are, and what others lack."""
        sandboxes = one_line(
            ", ".join(sorted({report.sandbox for report in self.fit.values()})), _SHOWN
        )
        number = sum(self._places_of(report) > 0 for report in self.fit.values())
        lines = [
            (
                f"{counted(number, 'worker')}, "
                f"{counted(self.places, 'trial')} at once, sandbox: {sandboxes}"
            )
        ]
        lacking = self._reports_of_lacks()
        partly = [report for report in lacking if self._places_of(report)]
        unused = [report for report in lacking if not self._places_of(report)]
        lines += [f"only some trials for worker {words}" for words in _lacks(partly)]
        return lines + [f"no trials for worker {words}" for words in _lacks(unused)]

    @property
    def lost(self) -> str:
        """The workers that were lost, in words."""
        if not self._lost:
            return ""
        names = ", ".join(
            one_line(name, 50) for name in dict.fromkeys(self._lost.values())
        )
        return f"{counted(len(self._lost), 'worker')} ({names})"

    def count_lost(self, address: str, name: str) -> None:
        self._lost.setdefault(address, name)

    def _places_of(self, report: WorkerReport) -> int:
        """How many trials a worker takes at once, of the smallest agent that it has."""
        by_memory = [
            report.memory // max(1.0, self.memory_for(agent))
            for agent in report.versions
        ]
        return int(min(report.places, max(by_memory, default=0)))

    def _reports_of_lacks(self) -> list[WorkerReport]:
        reports = list(self.unfit.values())
        for report in self.fit.values():
            memory = [
                f"{agent} takes {need:,.0f} MB, and {report.memory:,.0f} MB can be used"
                " there"
                for agent in report.versions
                if (need := self.memory_for(agent)) > report.memory
            ]
            reports.append(replace(report, lacks=(*report.lacks, *memory)))
        return [report for report in reports if report.lacks]

    async def _look_again(self) -> None:
        before = self._memory()
        addresses = list(await self._client.nthreads())
        for address in [address for address in self.fit if address not in addresses]:
            self._lost[address] = self.fit.pop(address).name
            self._briefed.discard(address)
        after = self._memory()
        if new := [
            address for address in addresses if address not in {*self.fit, *self.unfit}
        ]:
            await self._examine(new, addresses)
        stranded = [
            agent for agent in after if not after[agent] or after[agent] < before[agent]
        ]
        if any(self.memory_for(agent) for agent in stranded):
            self._notify_all()  # Dask does not look again for resources that nobody had

    def _memory(self) -> dict[str, float]:
        return {agent: self.memory_for(agent) for agent in self._brief.agents}

    def _notify_all(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    async def _send(self, function: Any, workers: list[str]) -> None:
        """Call a function on workers, and ignore errors."""
        await self._client.run(
            function, self._brief.run, workers=workers, on_error="ignore"
        )

    async def _call(self, address: str, timeout: float, *call: Any) -> Any:
        """What a function returns on a worker, or an exception."""
        try:
            async with asyncio.timeout(timeout):
                results = await self._client.run(
                    *call, workers=[address], on_error="return"
                )
        except TimeoutError:
            return TimeoutError(f"no answer within {timeout:g} s")
        # Of Dask, which has no exception: see ``read_data_only``
        except AssertionError:
            return RuntimeError("it failed, and its log says why")
        return results.get(address, LookupError("it left"))

    async def _examine(
        self, addresses: Sequence[str], all_addresses: Sequence[str]
    ) -> None:
        """Find out which workers fit, and let trials go to them."""
        identities = (await self._client.scheduler.identity(n_workers=-1))["workers"]
        per_host = Counter(urlsplit(address).hostname for address in all_addresses)
        version_of = importlib.metadata.version
        ours = version_of(PACKAGE)

        async def report_of(address: str) -> WorkerReport:
            name = str(identities.get(address, {}).get("name", address))
            version = await self._call(address, _PATIENCE, version_of, PACKAGE)
            if version != ours:
                return WorkerReport(name, lacks=(_other_version(version, ours),))
            self._briefed.add(address)
            timeout = _PROBING * len(self._brief.agents)
            workers_here = per_host[urlsplit(address).hostname]
            sent = await self._call(
                address, timeout, prepare, self._brief, workers_here
            )
            try:
                report = from_worker(WorkerReport, sent)
            except ValueError as error:
                problem = (
                    sent
                    if isinstance(sent, Exception)
                    else f"it sent no report: {error}"
                )
                return WorkerReport(name, lacks=(one_line(str(problem), _SHOWN),))
            asked = {
                a: report.versions[a]
                for a in self._brief.agents
                if a in report.versions
            }
            return replace(report, name=name, versions=asked)

        async def decide(address: str, report: WorkerReport) -> None:
            if report.versions:
                admitted = await self._call(
                    address, _PATIENCE, admit, self._brief.run, report
                )
                if admitted is True:
                    self.fit[address] = report
                    return
                problem = f"it can't take trials: {one_line(str(admitted), _SHOWN)}"
                report = replace(report, versions={}, lacks=(problem,))
            self.unfit[address] = report
            if address in self._briefed:
                await self._call(address, _PATIENCE, leave, self._brief.run)

        reports = await asyncio.gather(*map(report_of, addresses))
        await asyncio.gather(
            *map(decide, addresses, self._with_chosen_versions(reports))
        )

    def _with_chosen_versions(
        self, reports: Sequence[WorkerReport]
    ) -> list[WorkerReport]:
        """A run has one version of each agent: the one that is asked for,
        or that of most.
        """
        result = list(reports)
        for agent in self._brief.agents:
            versions = [
                report.versions[agent] for report in reports if agent in report.versions
            ]
            if versions:
                most_common = Counter(versions).most_common(1)[0][0]
                self._chosen.setdefault(agent, (most_common, "on most workers"))
            chosen, reason = self._chosen.get(agent, ("", ""))
            for number, report in enumerate(result):
                if (version := report.versions.get(agent, chosen)) != chosen:
                    lacks = (
                        *report.lacks,
                        f"{agent} is {version} there, and {chosen} {reason}",
                    )
                    others = {
                        name: v for name, v in report.versions.items() if name != agent
                    }
                    result[number] = replace(report, versions=others, lacks=lacks)
        return result


def _other_version(version: object, ours: str) -> str:
    if isinstance(version, TimeoutError | LookupError):
        return str(version)
    if not isinstance(version, str):
        return f"{PACKAGE} is not installed there"
    return f"it has {PACKAGE} {one_line(str(version), 50)}, and this machine has {ours}"


def _lacks(reports: Sequence[WorkerReport]) -> list[str]:
    """What workers lack, and their names; those that lack the same in one line."""
    by_lacks = dict[str, list[str]]()
    for report in sorted(reports, key=lambda report: report.name):
        lacks = one_line("; ".join(report.lacks), _SHOWN)
        by_lacks.setdefault(lacks, []).append(one_line(report.name, 50))
    return [f"{', '.join(_first(names))}: {lacks}" for lacks, names in by_lacks.items()]


def _first(names: Sequence[str]) -> list[str]:
    hidden = len(names) - _NAMES
    return [*names[:_NAMES], f"{hidden} more"] if hidden > 0 else list(names)
