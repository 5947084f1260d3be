"""The workers of a cluster, as the controller sees them: which fit, which were lost."""

import asyncio
import importlib.metadata
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from ..._util.texts import counted, one_line
from .connection import PACKAGE
from .exchange import Brief, Found
from .on_worker import admit, alive, leave, prepare

_FIRST: Final = 10.0  # seconds for the first worker to come
_LOOK: Final = 2.0  # seconds between looks at the workers
_ALIVE: Final = 20.0  # seconds between signs of life
_PATIENCE: Final = 30.0  # seconds for a worker to say something
_EXAMINING: Final = 150.0  # seconds for a worker to try an agent
_ALONE: Final = 60.0  # seconds without a worker that fits, until trials are given up
_SHOWN: Final = 200  # characters of what a worker lacks
_NAMES: Final = 5


class Workers:
    """Who can carry out the trials of a run. Coroutines are for the loop of Dask's client."""

    def __init__(self, client: Any, brief: Brief, pins: Mapping[str, str]) -> None:
        self.fit: dict[str, Found] = {}  # by address
        self.unfit: dict[str, Found] = {}
        self.changed = asyncio.Event()  # trials that wait may wait for nobody
        self.given_up: set[str] = set()  # agents that no worker has, and none came that has
        self._client = client
        self._brief = brief
        # The version of each agent in this run, and why.
        self._usual = {agent: (version, "is asked for") for agent, version in pins.items()}
        self._told: set[str] = set()  # who knows of the run
        self._lost: dict[str, str] = {}  # names, by address

    async def first_look(self) -> None:
        with suppress(TimeoutError):
            await self._client.wait_for_workers(1, timeout=_FIRST)
        await self._look_at(there := list(await self._client.nthreads()), there)

    async def watch(self) -> None:
        """Look after them: some get lost, others join."""
        await asyncio.gather(self._look_out(), self._keep_in_touch())

    async def _look_out(self) -> None:
        alone = dict.fromkeys(self._brief.agents, 0.0)
        while True:
            await asyncio.sleep(_LOOK)
            with suppress(Exception):  # of a cluster that is about to end
                await self._look_again()
            for agent in alone:
                alone[agent] = 0.0 if self.memory_for(agent) else alone[agent] + _LOOK
                if alone[agent] > _ALONE or self._client.status != "running":
                    self.given_up.add(agent)
            if self.given_up:
                self._tell_all()

    async def _keep_in_touch(self) -> None:
        """One that hangs keeps no other from hearing of the run."""
        while True:
            await asyncio.sleep(_ALIVE)
            with suppress(Exception):
                await asyncio.wait_for(self._ask(alive, list(self.fit)), _ALIVE)

    async def dismiss(self) -> None:
        """Let them forget the run."""
        await self._ask(leave, list(self._told))

    @property
    def versions(self) -> dict[str, str]:
        """Of the agents that work on some of them."""
        return {name: one for found in self.fit.values() for name, one in found.versions.items()}

    @property
    def places(self) -> int:
        """How many trials they take at once."""
        return sum(self._places_of(one) for one in self.fit.values())

    def memory_for(self, agent: str) -> float:
        """Megabytes that a trial is given: even a large agent has a place on some worker."""
        having = [one.memory for one in self.fit.values() if agent in one.versions]
        return min(max(having, default=0.0), self._brief.memory[agent])

    @property
    def lacking(self) -> list[str]:
        """What some of them lack, in words."""
        return _lacks(self._lacking())

    @property
    def lines(self) -> list[str]:
        """All of them in words: how many there are, and what others lack."""
        sandboxes = ", ".join(sorted({one.sandbox for one in self.fit.values()}))
        number = len([one for one in self.fit.values() if self._places_of(one)])
        lines = [
            f"{counted(number, 'worker')}, "
            f"{counted(self.places, 'trial')} at once, sandbox: {sandboxes}"
        ]
        few = [one for one in self._lacking() if self._places_of(one)]
        none = [one for one in self._lacking() if not self._places_of(one)]
        lines += [f"only some trials for worker {told}" for told in _lacks(few)]
        return lines + [f"no trials for worker {told}" for told in _lacks(none)]

    @property
    def lost(self) -> str:
        """Those that were lost, in words."""
        if not self._lost:
            return ""
        names = ", ".join(one_line(name, 50) for name in dict.fromkeys(self._lost.values()))
        return f"{counted(len(self._lost), 'worker')} ({names})"

    def count_lost(self, address: str, name: str) -> None:
        self._lost.setdefault(address, name)

    def _places_of(self, one: Found) -> int:
        """How many trials a worker takes at once, of the smallest agent that it has."""
        rooms = [one.memory // max(1.0, self.memory_for(agent)) for agent in one.versions]
        return int(min(one.places, max(rooms, default=0)))

    def _lacking(self) -> list[Found]:
        small = list[Found]()
        for one in self.fit.values():
            more = [
                f"{agent} takes {need:,.0f} MB, and {one.memory:,.0f} MB can be used there"
                for agent in one.versions
                if (need := self.memory_for(agent)) > one.memory
            ]
            small.append(replace(one, lacks=(*one.lacks, *more)))
        return [one for one in (*small, *self.unfit.values()) if one.lacks]

    async def _look_again(self) -> None:
        before = self._memory()
        there = list(await self._client.nthreads())
        for address in [one for one in self.fit if one not in there]:
            self._lost[address] = self.fit.pop(address).name
            self._told.discard(address)
        left = self._memory()
        if new := [one for one in there if one not in self.fit and one not in self.unfit]:
            await self._look_at(new, there)
        stranded = [agent for agent in left if not left[agent] or left[agent] < before[agent]]
        if any(self.memory_for(agent) for agent in stranded):
            self._tell_all()  # Dask does not look for resources again that nobody had

    def _memory(self) -> dict[str, float]:
        return {agent: self.memory_for(agent) for agent in self._brief.agents}

    def _tell_all(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    async def _ask(self, what: Any, workers: list[str]) -> None:
        """Tell workers of the run, whatever they say."""
        await self._client.run(what, self._brief.run, workers=workers, on_error="ignore")

    async def _asked(self, address: str, patience: float, *what: Any) -> Any:
        """What a worker says to a question, or the exception that it is answered with."""
        try:
            async with asyncio.timeout(patience):
                said = await self._client.run(*what, workers=[address], on_error="return")
        except TimeoutError:
            return TimeoutError(f"no answer within {patience:g} s")
        return said.get(address, LookupError("it left"))

    async def _look_at(self, addresses: Sequence[str], there: Sequence[str]) -> None:
        """Find out which workers fit, of all that are ``there``, and let trials go to them."""
        known = (await self._client.scheduler.identity(n_workers=-1))["workers"]
        here = Counter(urlsplit(address).hostname for address in there)
        version_of = importlib.metadata.version
        ours = version_of(PACKAGE)

        async def look(address: str) -> Found:
            name = str(known.get(address, {}).get("name", address))
            version = await self._asked(address, _PATIENCE, version_of, PACKAGE)
            if version != ours:
                return Found(name, lacks=(_other_version(version, ours),))
            self._told.add(address)
            patience = _EXAMINING * len(self._brief.agents)
            number = here[urlsplit(address).hostname]
            found = await self._asked(address, patience, prepare, self._brief, number)
            lacks = "" if isinstance(found, Found) else one_line(str(found), _SHOWN)
            return Found(name, lacks=(lacks,)) if lacks else found

        async def decide(address: str, found: Found) -> None:
            if found.versions:
                said = await self._asked(address, _PATIENCE, admit, self._brief.run, found)
                if said is True:
                    self.fit[address] = found
                    return
                problem = f"it can't take trials: {one_line(str(said), _SHOWN)}"
                found = replace(found, versions={}, lacks=(problem,))
            self.unfit[address] = found
            if address in self._told:
                await self._asked(address, _PATIENCE, leave, self._brief.run)

        looks = await asyncio.gather(*map(look, addresses))
        await asyncio.gather(*map(decide, addresses, self._agreed(looks)))

    def _agreed(self, looks: Sequence[Found]) -> list[Found]:
        """One run has one version of an agent: the one that is asked for, or that of most."""
        agreed = list(looks)
        for agent in self._brief.agents:
            if votes := Counter(one.versions[agent] for one in looks if agent in one.versions):
                self._usual.setdefault(agent, (votes.most_common(1)[0][0], "on most workers"))
            usual, why = self._usual.get(agent, ("", ""))
            for number, one in enumerate(agreed):
                if (version := one.versions.get(agent, usual)) != usual:
                    lacks = f"{agent} is {version} there, and {usual} {why}"
                    others = {name: own for name, own in one.versions.items() if name != agent}
                    agreed[number] = replace(one, versions=others, lacks=(*one.lacks, lacks))
        return agreed


def _other_version(version: object, ours: str) -> str:
    if isinstance(version, importlib.metadata.PackageNotFoundError):
        return f"{PACKAGE} is not installed there"
    if isinstance(version, Exception):
        return one_line(str(version), _SHOWN)
    return f"it has {PACKAGE} {one_line(str(version), 50)}, and this machine has {ours}"


def _lacks(workers: Sequence[Found]) -> list[str]:
    """What workers lack, and their names; those that lack the same in one line."""
    names = dict[str, list[str]]()
    for one in sorted(workers, key=lambda one: one.name):
        names.setdefault(one_line("; ".join(one.lacks), _SHOWN), []).append(one_line(one.name, 50))
    return [f"{', '.join(_few(own))}: {lacks}" for lacks, own in names.items()]


def _few(names: Sequence[str]) -> list[str]:
    more = len(names) - _NAMES
    return [*names[:_NAMES], f"{more} more"] if more > 0 else list(names)
