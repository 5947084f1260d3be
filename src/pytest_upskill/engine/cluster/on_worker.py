"""What a worker of a cluster is asked to do: say what it has, and carry out trials.

Nothing here raises: Dask would write the arguments to the worker's log.
"""

import asyncio
import pickle
import time
from contextlib import suppress
from dataclasses import replace
from typing import Final

from ..._util.memory import available
from ...agents.run_folder import end_run_folder
from ...trials.answer import Answer, NoAnswer
from ..lane import unexpected
from .exchange import CPU, MEMORY, Brief, Found, Outcome, resource_of, topic_of
from .site import Site, Worker

_PLENTY: Final = 1e9
_SHARE: Final = 0.8  # of a worker's memory, for agents
_SILENCE: Final = 120.0  # seconds without a sign of life, after which a run is over

_sites: dict[str, Site] = {}  # by run


# Called by the controller, on the event loop of a worker.


async def prepare(brief: Brief, workers_here: int, dask_worker: Worker = None) -> Found:
    """Look at what a worker has, as the doctor does, and get it ready for a run."""
    assert dask_worker
    await leave(brief.run)
    try:
        site = _sites[brief.run] = Site(brief, dask_worker)
        found = await asyncio.to_thread(site.look)
        places, memory = _room(dask_worker, workers_here)
        if found.versions:
            _watch(site, brief.run, dask_worker)
            return replace(found, places=places, memory=memory)
    except Exception as bug:
        found = Found(str(dask_worker.name), lacks=(unexpected(bug),))
    await leave(brief.run)
    return found


async def admit(run: str, found: Found, dask_worker: Worker = None) -> bool:
    """Let trials come, of the agents that the controller has chosen."""
    assert dask_worker
    own = {resource_of(run, agent): _PLENTY for agent in found.versions}
    await dask_worker.set_resources(**{MEMORY: found.memory, CPU: float(found.places), **own})
    return run in _sites


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
    return max(1, min(places, worker.state.nthreads)), max(1.0, memory / 1e6)


def _watch(site: Site, run: str, worker: Worker) -> None:
    """End a run if its controller has fallen silent: it may have been killed."""
    from tornado.ioloop import PeriodicCallback

    async def look() -> None:
        if time.monotonic() - site.heard > _SILENCE:
            await leave(run)
        if run not in _sites:
            worker.periodic_callbacks.pop(topic_of(run)).stop()

    callback = PeriodicCallback(look, _SILENCE / 4 * 1000)
    worker.periodic_callbacks[topic_of(run)] = callback
    callback.start()
