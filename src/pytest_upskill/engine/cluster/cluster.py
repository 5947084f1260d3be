"""A run's connection to a cluster, which any thread may use."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

from ..._util.texts import counted
from ...errors import Setting, SettingsError, Text
from ...trials.trial import Question
from ..budget import Allowance
from .connection import connected
from .dispatch import Dispatch, OnItsWay
from .exchange import Brief, Outcome
from .workers import Workers

_LEAVING: Final = 10.0  # seconds for workers to forget a run
_AHEAD: Final = 2  # trials handed out per place: a cluster that grows by itself must see some wait
_DOCTOR: Final = "pytest-upskill doctor, run there, says more."


class Cluster:
    """A cluster that carries out trials of one run."""

    def __init__(
        self,
        address: str,
        brief: Brief,
        at_once: int | None = None,
        pins: Mapping[str, str] | None = None,
    ) -> None:
        """SettingsError if there is no such cluster, or if Dask is not installed.

        ``pins`` are the versions of agents that are asked for.
        """
        self._address = address
        self._agents = brief.agents
        self._at_once = at_once
        self._hint: Text = _DOCTOR
        if not brief.keys:
            self._hint = (_DOCTOR, " Keys are sent with ", Setting("cluster_send_keys"), " alone.")
        self._client: Any  # its methods are to be awaited on its loop, and not elsewhere
        self._local, self._client = connected(address, at_once)
        self._loop: asyncio.AbstractEventLoop = self._client.loop.asyncio_loop
        self._workers = Workers(self._client, brief, pins or {})
        self._dispatch = Dispatch(self._client, address, brief.run, self._workers)
        self._watching: Any = None

    def prepare(self) -> dict[str, str]:
        """Look at all workers; the versions of the agents there. SettingsError if none fits."""
        workers = self._workers
        self._begun(workers.first_look()).result()
        if not workers.fit:
            if not workers.unfit:
                raise self._error("it has no workers", f"Start one: dask worker {self._address}")
            raise self._error(f"no worker fits: {'; '.join(workers.lacking)}", self._hint)
        versions = workers.versions
        if missing := [name for name in self._agents if name not in versions]:
            told = "; ".join(workers.lacking)
            raise self._error(f"no worker has {', '.join(missing)}: {told}", self._hint)
        self._loop.call_soon_threadsafe(self._dispatch.listen)
        self._watching = self._begun(workers.watch())
        return versions

    @property
    def lines(self) -> list[str]:
        """The cluster in words: how many workers, and what others lack."""
        first, *more = self._workers.lines
        return [f"cluster {self._address}: {first}", *more]

    @property
    def places(self) -> int:
        """How many trials are to be handed out at once."""
        places = _AHEAD * self._workers.places
        return max(1, places if self._at_once is None else min(places, self._at_once))

    @property
    def at_work(self) -> int:
        """How many trials workers have begun; others wait for a place."""
        return self._dispatch.at_work

    @property
    def note(self) -> str:
        """What became of workers."""
        moved = self._dispatch.moved
        again = f": {counted(moved, 'trial')} began again on another" if moved else ""
        lost = self._workers.lost
        return f"The cluster lost {lost}{again}." if lost else ""

    async def hand_out(
        self, question: Question, allowance: Allowance, trial: OnItsWay
    ) -> Outcome | str:
        """Have a trial carried out; why it can't be, if nobody carries it out."""
        work = self._dispatch.hand_out(question, allowance, trial)
        done: Outcome | str = await asyncio.wrap_future(self._begun(work))
        return done

    def close(self) -> None:
        """Let the workers forget the run, and end those that were started for it."""
        if self._client.status == "closed":
            return
        if self._watching:
            self._watching.cancel()
        with suppress(Exception):
            self._begun(self._workers.dismiss()).result(timeout=_LEAVING)
        with suppress(Exception):
            self._client.close(timeout=_LEAVING)
        if self._local:
            with suppress(Exception):
                self._local.close(timeout=_LEAVING)

    def _begun(self, work: Coroutine[Any, Any, object]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _error(self, problem: str, hint: Text = "") -> SettingsError:
        return SettingsError("cluster", problem, hint, value=self._address)
