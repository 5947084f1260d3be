"""The workers of a cluster: which of them fit, and what becomes of their trials."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_upskill.engine.budget import Allowance, Budget
from pytest_upskill.engine.cluster import cluster as cluster_module
from pytest_upskill.engine.cluster import worker
from pytest_upskill.engine.cluster.cluster import Cluster
from pytest_upskill.engine.cluster.messages import (
    Brief,
    Outcome,
    SentTrial,
    WorkerReport,
    from_worker,
    packed,
)
from pytest_upskill.engine.cluster.worker import sent_variables
from pytest_upskill.errors import SettingsError
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply
from support.simulated_clock import SimulatedLoop
from support.trials import trial_question

BRIEF = Brief(("claude", "loop"), "auto", None, 1, 1, {}, {}, {})


class NoCalls:
    async def __call__(self, question: object, send: object = None) -> NoAnswer:
        raise NotImplementedError


class FakeClient:
    """Of Dask: workers by name, with what they have; some hang.

    ``carry_out`` is how a submitted trial ends, and ``sent`` are all trials.
    """

    status = "running"

    def __init__(self, **there: WorkerReport) -> None:
        self.there = there
        self.hanging = set[str]()
        self.sent = list[SentTrial]()
        self.workers = list[list[str]]()
        self.carry_out: Callable[[SentTrial], Reply | None] = lambda _: Answer("done")
        self.scheduler = SimpleNamespace(identity=self._identity)

    async def _identity(self, n_workers: int) -> dict[str, object]:
        assert n_workers == -1
        threads = {name: {"name": name, "nthreads": 2} for name in self.there}
        return {"workers": threads}

    async def wait_for_workers(self, number: int, timeout: float) -> None:
        pass

    async def run(self, what: Any, *_: object, workers: list[str]) -> dict[str, Any]:
        (name,) = workers
        if name in self.hanging:
            await asyncio.Event().wait()
        is_report = what is worker.examine
        report = packed(self.there[name])
        return {name: report if is_report else version("pytest-upskill")}

    async def scatter(self, brief: Brief, **_: object) -> Brief:
        return brief

    def submit(
        self, _: object, brief: Brief, data: bytes, *, workers: list[str], **__: object
    ) -> "FakeFuture":
        assert brief is BRIEF
        sent = from_worker(SentTrial, data)
        self.sent.append(sent)
        self.workers.append(workers)
        reply = self.carry_out(sent)
        if reply is None:
            return FakeFuture(None)
        return FakeFuture(packed(Outcome(reply, sent.trial)))


class FakeFuture:
    """A task that returns data, or never ends."""

    def __init__(self, data: bytes | None) -> None:
        self.data = data

    async def result(self) -> bytes:
        if self.data is None:
            await asyncio.Event().wait()
        assert self.data is not None
        return self.data

    async def cancel(self) -> None:
        pass


class FakeConnection:
    """Runs work on the loop that asks for it."""

    def __init__(self, client: FakeClient) -> None:
        self.client = client

    def start(self, work: Any) -> Any:
        return SimpleNamespace(result=lambda: asyncio.run(work))

    def error(self, problem: str, hint: str) -> SettingsError:
        return SettingsError("cluster", problem, hint)


def cluster_of(
    monkeypatch: pytest.MonkeyPatch, client: FakeClient, **options: Any
) -> Cluster:
    connection = FakeConnection(client)
    monkeypatch.setattr(cluster_module, "Connection", lambda *_: connection)
    return Cluster("tcp://h:1", BRIEF, 64, **options).use(Budget(), str)


def report_of(**versions: str) -> WorkerReport:
    return WorkerReport((), "bwrap", versions)


def test_worker_with_another_version_of_an_agent_gets_no_trials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Trials are stored by the version."""
    client = FakeClient(
        anna=report_of(claude="1", loop="1"),
        berta=report_of(claude="2", loop="1"),
        carla=report_of(claude="2", loop="1"),
        dora=WorkerReport(("no\nsandbox",)),
    )
    cluster = cluster_of(monkeypatch, client)
    assert cluster.prepare() == {"claude": "1", "loop": "1"}
    assert cluster.lines == [
        "cluster tcp://h:1: 1 worker, 2 trials at once, sandbox: bwrap",
        "no trials for worker berta, carla: claude is 2 there, and 1 in this run",
        "no trials for worker dora: no sandbox",
    ]
    assert cluster.places == 4


def test_version_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeClient(
        anna=report_of(claude="1", loop="1"), berta=report_of(claude="2", loop="1")
    )
    cluster = cluster_of(monkeypatch, client, pins={"claude": "2"})
    assert cluster.prepare() == {"claude": "2", "loop": "1"}
    assert "no trials for worker anna: claude is 1 there" in cluster.lines[1]


def test_no_worker_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeClient()
    with pytest.raises(SettingsError, match="it has no workers"):
        cluster_of(monkeypatch, client).prepare()
    client.there["anna"] = WorkerReport(("claude is not installed",))
    with pytest.raises(SettingsError, match="no worker fits: anna: claude is not inst"):
        cluster_of(monkeypatch, client).prepare()


def test_no_more_trials_than_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeClient(anna=report_of(claude="1", loop="1"))
    cluster = cluster_of(monkeypatch, client, at_once=3)
    cluster.prepare()
    assert cluster.places == 3

    async def hand_out() -> Outcome:
        return await cluster._carry_out(trial_question("a"), Allowance())

    asyncio.run(hand_out())
    assert client.sent[0].calls_at_once == 21


def test_worker_that_hangs_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look() -> None:
        client = FakeClient(
            anna=report_of(claude="1", loop="1"), berta=report_of(claude="1", loop="1")
        )
        client.hanging = {"anna"}
        cluster = cluster_of(monkeypatch, client)
        await cluster._look()
        assert [*cluster._fit] == ["berta"]
        assert "no trials for worker anna: it does not answer" in cluster.lines

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(look())


def test_trial_of_a_lost_worker_is_submitted_to_one_that_joins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def carry_out(_: SentTrial) -> Reply | None:
        if "anna" not in client.there:
            return Answer("done")
        client.there["emil"] = client.there.pop("anna")
        return None

    async def hand_out() -> Outcome:
        await cluster._begin()
        return await cluster._carry_out(trial_question("a"), Allowance())

    client = FakeClient(anna=report_of(claude="1", loop="1"))
    client.carry_out = carry_out
    cluster = cluster_of(monkeypatch, client)
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        outcome = runner.run(hand_out())
    assert outcome.reply == Answer("done")
    assert client.workers == [["anna"], ["emil"]]
    assert cluster.note == "The cluster lost 1 worker (anna)."


@pytest.mark.parametrize(
    ("joins", "problem"),
    [
        (True, "its workers were lost 3 times"),
        (False, "no worker of tcp://h:1 is left"),
    ],
)
def test_trial_that_ends_each_of_its_workers_is_given_up(
    monkeypatch: pytest.MonkeyPatch, joins: bool, problem: str
) -> None:
    def carry_out(_: SentTrial) -> None:
        client.there.clear()
        if joins:
            name = f"w{len(client.sent)}"
            client.there[name] = report_of(claude="1", loop="1")

    async def hand_out() -> Outcome:
        await cluster._begin()
        return await cluster._carry_out(trial_question("a"), Allowance())

    client = FakeClient(anna=report_of(claude="1", loop="1"))
    client.carry_out = carry_out
    cluster = cluster_of(monkeypatch, client)
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        outcome = runner.run(hand_out())
    assert isinstance(outcome.reply, NoAnswer)
    assert problem in outcome.reply.reason


def test_setup_runs_once_though_its_trials_begin_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hand_out() -> None:
        await cluster._look()
        question = trial_question("a", setup="make")
        trials = [cluster._carry_out(question, Allowance()) for _ in range(4)]
        await asyncio.gather(*trials)

    client = FakeClient(anna=report_of(claude="1", loop="1"))
    client.carry_out = lambda _: Answer("", workspace=b"made")
    cluster = cluster_of(monkeypatch, client)
    asyncio.run(hand_out())
    assert [sent.is_setup for sent in client.sent] == [True, *[False] * 4]
    for sent in client.sent[1:]:
        assert sent.start
        assert sent.start.workspace == b"made"


def test_variables_of_a_run_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN", "own")
    monkeypatch.delenv("KEY", raising=False)
    with sent_variables({"OWN": "first", "KEY": "first"}):
        assert (os.environ["OWN"], os.environ["KEY"]) == ("first", "first")
        with sent_variables({"OWN": "first", "KEY": "first"}):
            pass
        assert os.environ["KEY"] == "first"
    assert os.environ["OWN"] == "own"
    assert "KEY" not in os.environ


def test_worker_without_a_sandbox_has_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEY", raising=False)
    brief = Brief(("loop",), "no-such", None, 1, 1, {}, {}, {"KEY": "sk-1234567890"})
    report = asyncio.run(worker.examine(brief))
    assert b"no sandbox: " in report
    assert "KEY" not in os.environ


def test_keys_are_not_in_the_repr_of_what_workers_are_told() -> None:
    brief = Brief((), "auto", None, 1, 1, {}, {}, {"OPENAI_API_KEY": "sk-secret-1"})
    assert "sk-secret-1" not in repr(brief) + str(brief) + f"{(brief,)}"


@pytest.mark.parametrize(
    ("task", "status"), [("executing", "closing"), ("cancelled", "running")]
)
def test_trial_that_is_not_wanted_any_more_is_ended(
    monkeypatch: pytest.MonkeyPatch, task: str, status: str
) -> None:
    """Dask leaves its threads alone, and they would go on to ask the model."""
    distributed = pytest.importorskip("distributed")
    reply = Future[Reply]()

    def stop() -> None:
        reply.set_result(NoAnswer("stopped"))

    here = SimpleNamespace(
        get_current_task=lambda: "t",
        state=SimpleNamespace(tasks={"t": SimpleNamespace(state=task)}),
        status=SimpleNamespace(name=status),
    )
    monkeypatch.setattr(distributed, "get_worker", lambda: here)
    monkeypatch.setattr(worker, "_POLL_SECONDS", 0.01)
    engine: Any = SimpleNamespace(submit=lambda _: reply, stop=stop)
    question = trial_question("a")
    assert worker._wait_while_wanted(engine, question) == NoAnswer("stopped")
