"""A run's connection to a cluster: to a scheduler, or to workers that are started
here.
"""

import asyncio
import logging
import re
import signal
import warnings
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from multiprocessing.resource_tracker import ensure_running
from typing import TYPE_CHECKING, Any, Final

from ..._util.texts import counted, one_line
from ...errors import InputError, Setting, SettingsError, Spell, Text, spelled
from ...trials.answer import Answer, NoAnswer, Reply
from ...trials.trial import Question, Task
from ..agent_jobs import TrialCalls, default_at_once
from ..budget import Allowance, Budget
from ..lane import over_budget
from .brief import PACKAGE, Brief, Outcome
from .dispatch import Dispatch, DispatchedTrial
from .unpickling import read_all, read_data_only
from .workers import Workers

if TYPE_CHECKING:
    from distributed import Client

_FORMS: Final = (
    "Write tcp://HOST:8786, tls://HOST:8786, or local:4 for 4 workers on this machine."
)
_PATIENCE: Final = 5.0  # seconds for the scheduler to answer
_LEAVING: Final = 10.0  # seconds for workers to forget a run
# Trials handed out per place: some must wait, or a cluster that grows
# by itself would not grow.
_AHEAD: Final = 2
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
            self._hint = (
                _DOCTOR,
                " Keys are sent with ",
                Setting("cluster_send_keys"),
                " alone.",
            )
        self._client: Any  # its methods must be awaited on its loop
        self._opened, self._client = connected(address, at_once)
        self._loop: asyncio.AbstractEventLoop = self._client.loop.asyncio_loop
        self._workers = Workers(self._client, brief, pins or {})
        self._dispatch = Dispatch(self._client, address, brief.run, self._workers)
        self._watching: Any = None

    def prepare(self) -> dict[str, str]:
        """Look at all workers; the versions of the agents there.
        SettingsError if none fits.
        """
        workers = self._workers
        self._begun(workers.first_look()).result()
        if not workers.fit:
            if not workers.unfit:
                raise self._error(
                    "it has no workers", f"Start one: dask worker {self._address}"
                )
            raise self._error(
                f"no worker fits: {'; '.join(workers.lacking)}", self._hint
            )
        versions = workers.versions
        if missing := [name for name in self._agents if name not in versions]:
            lacking = "; ".join(workers.lacking)
            raise self._error(
                f"no worker has {', '.join(missing)}: {lacking}", self._hint
            )
        self._loop.call_soon_threadsafe(self._dispatch.listen)
        self._watching = self._begun(workers.watch())
        return versions

    @property
    def lines(self) -> list[str]:
        """The cluster in words: how many workers, and what others lack."""
        first, *others = self._workers.lines
        return [f"cluster {self._address}: {first}", *others]

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
        restarted = (
            f": {counted(moved, 'trial')} began again on another" if moved else ""
        )
        lost = self._workers.lost
        return f"The cluster lost {lost}{restarted}." if lost else ""

    async def hand_out(
        self, question: Question, allowance: Allowance, trial: DispatchedTrial
    ) -> Outcome | str:
        """Have a trial carried out; returns why that failed, if it did."""
        work = self._dispatch.hand_out(question, allowance, trial)
        outcome: Outcome | str = await asyncio.wrap_future(self._begun(work))
        return outcome

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
        with suppress(Exception):
            self._opened.close()

    def _begun(self, work: Coroutine[Any, Any, object]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _error(self, problem: str, hint: Text = "") -> SettingsError:
        return SettingsError("cluster", problem, hint, value=self._address)


class ClusterTrials:
    """Carries out trials on a cluster, in place of this machine."""

    def __init__(self, cluster: Cluster, budget: Budget, spell: Spell) -> None:
        self._cluster = cluster
        self._budget = budget
        self._spell = spell
        self._settled = asyncio.Event()

    @property
    def places(self) -> int:
        return self._cluster.places

    @property
    def at_work(self) -> int:
        return self._cluster.at_work

    @property
    def note(self) -> str:
        return self._cluster.note

    def memory_of(self, task: Task) -> int:  # noqa: ARG002
        return 0  # of this machine

    async def run(self, question: Question, call: TrialCalls) -> Reply:
        assert question.task
        agent = question.task.agent
        begun = False
        while True:
            allowance = await self._allotted(question, begun=begun)
            if not isinstance(allowance, Allowance):
                refused = over_budget(allowance, self._spell)
                return replace(refused, over_budget=not begun)
            begun = True
            trial, outcome = DispatchedTrial(call), Outcome(None)
            try:
                result = await self._cluster.hand_out(question, allowance, trial)
                if isinstance(result, str):
                    result = Outcome(NoAnswer(f"{agent}: {result}"))
                outcome = result
            except InputError as error:
                return NoAnswer(error.message(self._spell))
            finally:
                self._count(question, outcome, trial)
            assert outcome.reply
            if not outcome.exceeded:
                return outcome.reply
            if allowance.is_all:
                return NoAnswer(spelled(self._budget.reached(question), self._spell))

    async def close(self) -> None:
        pass  # whoever opened the cluster closes it

    async def _allotted(self, question: Question, *, begun: bool) -> Allowance | Text:
        """What a trial may spend, or why it is refused."""
        refusal_of = self._budget.refusal if begun else self._budget.refusal_of_case
        while True:
            if refusal := refusal_of(question):
                return refusal
            if allowance := self._budget.allot(question):
                return allowance
            self._settled.clear()
            # A judge's call may end as well, without notice
            with suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), 1.0)

    def _count(
        self, question: Question, outcome: Outcome, trial: DispatchedTrial
    ) -> None:
        """Count all that was paid, also by a lost worker."""
        lost = trial.lost if outcome.reply else [*trial.lost, *trial.spent]
        tokens = outcome.tokens + sum(call.usage.tokens for call in lost)
        usd = outcome.usd + self._budget.price(question, lost)
        unanswered, exceeded = outcome.unanswered, outcome.exceeded
        self._budget.spend(question, tokens, usd, unanswered, exceeded=exceeded)
        # Else the engine counts all as unanswered
        if isinstance(outcome.reply, Answer):
            self._budget.lose(lost)
        self._settled.set()


def connected(address: str, at_once: int | None) -> "tuple[ExitStack, Client]":
    """A client of a cluster, and what must be closed after it."""
    local = re.fullmatch(r"local:([1-9]\d{0,3})", address)
    if not local and not re.fullmatch(r"(tcp|tls)://[^\s/@]+:\d+/?", address):
        raise SettingsError(
            "cluster", "not the address of a cluster", _FORMS, value=address
        )
    try:
        import dask
        from distributed import Client, LocalCluster, Security

        # Whoever can reach a scheduler can run code, and so could an
        # agent that has a network.
        private = Security.temporary() if local else None
    except ImportError as error:
        hint = f"pip install '{PACKAGE}[cluster]'"
        raise SettingsError(
            "cluster", f"needs Dask ({error})", hint, value=address
        ) from None
    for name in ("distributed", "distributed.client", "distributed.comm", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
    opened, cluster, loop = ExitStack(), None, None
    if address.startswith("tls:"):
        _require_certificates(address)
    try:
        if not local:
            loop = _data_loop(opened)
            # Dask's client would wait forever for a server that
            # accepts and says nothing.
            identifying = asyncio.wait_for(_identify(address), _PATIENCE)
            asyncio.run_coroutine_threadsafe(identifying, loop.asyncio_loop).result()
        if local:
            workers = int(local[1])
            threads = -(-(at_once or default_at_once()) // workers)
            with _defer_ctrl_c():
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=threads,
                    processes=True,
                    security=private,
                    memory_limit=0,
                    dashboard_address="127.0.0.1:0",  # the usual port may be taken
                    silence_logs=logging.CRITICAL + 1,
                )
                opened.callback(cluster.close, timeout=_LEAVING)
        with warnings.catch_warnings():  # about versions of packages that we don't use
            warnings.simplefilter("ignore")
            client = Client(
                cluster or address, loop=loop, set_as_default=False, name=PACKAGE
            )
        for topic in ("print", "warn"):  # workers would write to this terminal
            client.subscribe_topic(topic, lambda _event: None)
        return opened, client
    except BaseException as error:
        opened.close()
        if not isinstance(
            error, (OSError, TimeoutError, ValueError, TypeError, RuntimeError)
        ):
            raise
        problem = f"no Dask scheduler answers there within {_PATIENCE:g} s"
        hint = (
            "Start one: dask scheduler. Is the port right, and is it reachable from"
            " here?"
        )
        if address.startswith("tls:"):
            hint += " Does it use tls, and do both trust the same authority?"
        if local:
            problem, hint = (
                f"its workers did not start: {one_line(str(error), 200)}",
                "",
            )
        raise SettingsError("cluster", problem, hint, value=address) from None


def _data_loop(opened: ExitStack) -> Any:
    """A running loop on which no message can run code: workers elsewhere are not
    ours.
    """
    from distributed.utils import LoopRunner

    runner = LoopRunner()
    runner.start()
    opened.callback(runner.stop)
    read_data_only(runner.loop.asyncio_loop)
    opened.callback(read_all, runner.loop.asyncio_loop)
    return runner.loop


def _require_certificates(address: str) -> None:
    from distributed import Security

    try:
        if Security().get_connection_args("client").get("ssl_context"):
            return
        problem = "there are no certificates for it"
    except (OSError, ValueError) as error:  # ssl's errors are OSErrors
        problem = f"its certificates can't be used: {one_line(str(error), 200)}"
    hint = (
        "Dask's settings name them: ca-file, client.cert and client.key of"
        " distributed.comm.tls."
    )
    raise SettingsError("cluster", problem, hint, value=address)


async def _identify(address: str) -> None:
    from distributed import Security
    from distributed.core import rpc

    security = Security().get_connection_args("client")
    async with rpc(address, timeout=_PATIENCE, connection_args=security) as scheduler:
        await scheduler.identity()


@contextmanager
def _defer_ctrl_c() -> Iterator[None]:
    """Ctrl-C takes effect afterwards, and never in workers that are started meanwhile.

    They inherit the signal mask, and so does the thread that restarts them. The
    controller ends them, trials first.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    ensure_running()  # else the first worker would start it, and unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
