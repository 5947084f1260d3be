"""The workers of a cluster: which of them fit, and what becomes of their trials."""

import asyncio
import os
from collections.abc import Callable, Generator
from concurrent.futures import Future
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_upskill.engine.budget import Allowance
from pytest_upskill.errors import SettingsError
from pytest_upskill.features.cluster import cluster as cluster_module
from pytest_upskill.features.cluster import worker
from pytest_upskill.features.cluster.brief import Brief
from pytest_upskill.features.cluster.cluster import Cluster
from pytest_upskill.features.cluster.worker import (
    PACKAGE,
    Outcome,
    WorkerReport,
    carry_out,
    packed,
    sent_variables,
    set_up,
)
from pytest_upskill.measure.models_of_run import Models
from pytest_upskill.measure.open_run import open_run
from pytest_upskill.settings import Settings
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply
from support.simulated_clock import SimulatedLoop
from support.trials import trial_question


class FakeClient:
    """Of Dask: workers by name, with what they report.

    ``answer`` is how submitted work ends; None if it never does. ``submitted`` is all
    work, with the workers that may do it.
    """

    status = "running"
    cluster = None

    def __init__(self, **there: WorkerReport) -> None:
        self.there = there
        self.submitted = list[tuple[Any, tuple[Any, ...], list[str]]]()
        self.answer: Callable[[], Reply | None] = lambda: Answer("done")
        self.scheduler = SimpleNamespace(identity=self._identity)
        self.loop = SimpleNamespace(add_callback=lambda _: None)

    def sync(self, look: Callable[[], Any]) -> None:
        asyncio.run(look())

    async def _identity(self, n_workers: int) -> dict[str, object]:
        assert n_workers == -1
        threads = {name: {"name": name, "nthreads": 2} for name in self.there}
        return {"workers": threads}

    def wait_for_workers(self, number: int, timeout: float) -> None:
        pass

    async def run(self, _: Any, __: Brief, workers: list[str]) -> dict[str, bytes]:
        (name,) = workers
        return {name: packed(self.there[name])}

    def submit(
        self, work: Any, _: Brief, *args: Any, workers: list[str], pure: bool
    ) -> "FakeFuture":
        assert not pure
        self.submitted.append((work, args, workers))
        reply = self.answer()
        return FakeFuture(packed(Outcome(reply)) if reply else None)

    def close(self, _timeout: float) -> None:
        pass


class FakeFuture:
    """A task that returns data, or never ends."""

    def __init__(self, data: bytes | None) -> None:
        self.data = data

    def done(self) -> bool:
        return self.data is not None

    def __await__(self) -> Generator[None, None, bytes | None]:
        yield from ()
        return self.data

    async def cancel(self) -> None:
        pass


def cluster_of(
    monkeypatch: pytest.MonkeyPatch, client: FakeClient, **settings: Any
) -> Cluster:
    monkeypatch.setattr(cluster_module, "connect", lambda *_: client)
    settings = {"agents": ("claude", "loop"), **settings}
    run = open_run(Settings(models=("haiku",), cluster="tcp://h:1", **settings))
    return Cluster(run, lambda _: None)


def report_of(**versions: str) -> WorkerReport:
    return WorkerReport("", "bwrap", {PACKAGE: version(PACKAGE), **versions})


def play(work: Any) -> Any:
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(work)


def test_worker_with_another_version_gets_no_trials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Trials are stored by the version."""
    ours = version(PACKAGE)
    client = FakeClient(
        anna=report_of(claude="1", loop="1"),
        berta=report_of(claude="2", loop="1"),
        carla=report_of(claude="2", loop="1"),
        dora=WorkerReport("no\nsandbox"),
        emil=WorkerReport(versions={PACKAGE: "99", "claude": "1", "loop": "1"}),
    )
    cluster = cluster_of(monkeypatch, client)
    assert cluster.lines == [
        "cluster tcp://h:1: 1 worker, 2 trials at once, sandbox: bwrap",
        "no trials for worker berta, carla: claude is 2 there, and 1 in this run",
        "no trials for worker dora: no sandbox",
        f"no trials for worker emil: {PACKAGE} is 99 there, and {ours} in this run",
    ]


def test_version_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeClient(
        anna=report_of(claude="1", loop="1"), berta=report_of(claude="2", loop="1")
    )
    cluster = cluster_of(monkeypatch, client, agents=("claude@2", "loop"))
    assert "no trials for worker anna: claude is 1 there" in cluster.lines[1]


def test_no_worker_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeClient()
    with pytest.raises(SettingsError, match="no worker fits: there is none"):
        cluster_of(monkeypatch, client)
    client.there["anna"] = WorkerReport("claude is not installed")
    with pytest.raises(SettingsError, match="no worker fits: anna: claude is not inst"):
        cluster_of(monkeypatch, client)


def test_worker_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    good = report_of(claude="1", loop="1")

    async def run(_: Any, __: Brief, workers: list[str]) -> dict[str, bytes]:
        if workers == ["anna"]:
            raise OSError
        return {workers[0]: packed(good) if workers == ["berta"] else b"{"}

    client = FakeClient(anna=good, berta=good, carla=good)
    client.run = run  # type: ignore[method-assign]
    cluster = cluster_of(monkeypatch, client)
    assert [*cluster._fit] == ["berta"]
    assert cluster.lines[1].startswith("no trials for worker anna, carla: it gave no")


def test_no_more_trials_than_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeClient(anna=report_of(claude="1", loop="1"))
    cluster = cluster_of(monkeypatch, client, agents_at_once=8, concurrency=7)
    play(cluster._carry_out(trial_question("a"), Allowance()))
    [(_, (_, _, calls_at_once, _), _)] = client.submitted
    assert (cluster._at_once, calls_at_once) == (7, 3)


@pytest.mark.parametrize(
    ("joins", "problem"),
    [
        ("once", ""),
        ("always", "its workers were lost 3 times"),
        ("never", "no worker of tcp://h:1 is left"),
    ],
)
def test_trial_of_a_lost_worker_is_submitted_to_one_that_joins(
    monkeypatch: pytest.MonkeyPatch, joins: str, problem: str
) -> None:
    def answer() -> Reply | None:
        if joins == "once" and "anna" not in client.there:
            return Answer("done")
        client.there.clear()
        if joins != "never":
            client.there[f"w{len(client.submitted)}"] = report_of(claude="1", loop="1")
        return None

    async def hand_out() -> Outcome:
        watching = asyncio.ensure_future(cluster._watch())
        outcome = await cluster._carry_out(trial_question("a"), Allowance())
        watching.cancel()
        return outcome

    client = FakeClient(anna=report_of(claude="1", loop="1"))
    cluster = cluster_of(monkeypatch, client)
    client.answer = answer
    reply = play(hand_out()).reply
    if problem:
        assert isinstance(reply, NoAnswer)
        assert problem in reply.reason
    else:
        assert reply == Answer("done")
        assert [workers for _, _, workers in client.submitted] == [["anna"], ["w1"]]


def test_setup_runs_once_though_its_trials_begin_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hand_out() -> None:
        question = trial_question("a", setup="make")
        trials = [cluster._carry_out(question, Allowance()) for _ in range(4)]
        await asyncio.gather(*trials)

    client = FakeClient(anna=report_of(claude="1", loop="1"))
    client.answer = lambda: Answer("", workspace=b"made")
    cluster = cluster_of(monkeypatch, client)
    play(hand_out())
    assert [work for work, _, _ in client.submitted] == [set_up, *[carry_out] * 4]
    for _, (_, _, _, start), _ in client.submitted[1:]:
        assert start.workspace == b"made"


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
    settings = Settings(sandbox="no-such")
    brief = Brief(settings, ("loop",), Models(), {"KEY": "sk-1234567890"})
    report = asyncio.run(worker.examine(brief))
    assert b"no sandbox: " in report
    assert "KEY" not in os.environ


def test_keys_are_not_in_the_repr_of_what_workers_are_told() -> None:
    brief = Brief(Settings(), (), Models(), {"OPENAI_API_KEY": "sk-secret-1"})
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
