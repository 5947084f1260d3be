"""Workers of a cluster, as the controller sees them, and what a worker does by
itself.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_upskill.engine.budget import Allowance, Budget, PaidCall
from pytest_upskill.engine.cluster import on_worker
from pytest_upskill.engine.cluster.brief import (
    Brief,
    TrialEvent,
    WorkerReport,
    from_worker,
    packed,
)
from pytest_upskill.engine.cluster.cluster import ClusterTrials
from pytest_upskill.engine.cluster.dispatch import Dispatch, DispatchedTrial
from pytest_upskill.engine.cluster.on_worker import WorkerRun
from pytest_upskill.engine.cluster.workers import Workers
from pytest_upskill.trials.answer import NoAnswer, Reply, Usage
from support.simulated_clock import SimulatedLoop
from support.trials import trial_question

BRIEF = Brief(
    "r", {}, {}, {}, {"claude": 300, "loop": 50, "fake": 9}, "auto", None, 1, 1, 1
)


class Paid:
    """The calls of a trial that were made elsewhere."""

    def __init__(self) -> None:
        self.all = list[Usage]()

    async def __call__(self, question: object, send: object = None) -> NoAnswer:
        raise NotImplementedError

    def paid(self, usage: Usage, *, by_user: bool = False) -> PaidCall:  # noqa: ARG002
        self.all.append(usage)
        return PaidCall("m", usage)


class FakeClient:
    """Of Dask: workers by name, with what they have; some hang."""

    status = "running"

    def __init__(self, **there: WorkerReport) -> None:
        self.there = there
        self.hanging = set[str]()
        self.asked = list[tuple[str, str]]()
        self.scheduler = SimpleNamespace(identity=self._identity)

    async def _identity(self, n_workers: int) -> dict[str, dict[str, object]]:
        assert n_workers == -1
        return {"workers": {name: {"name": name} for name in self.there}}

    async def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.there, 2)

    async def wait_for_workers(self, number: int, timeout: float) -> None:
        pass

    async def run(
        self,
        what: Callable[..., Any],
        *_args: Any,
        workers: Sequence[str],
        on_error: str,
    ) -> dict[str, Any]:
        assert on_error in ("return", "ignore")
        said = dict[str, Any]()
        for name in workers:
            self.asked.append((what.__name__, name))
            if name in self.hanging:
                await asyncio.Event().wait()
            report = packed(self.there[name])
            said[name] = {"prepare": report, "version": version("pytest-upskill")}.get(
                what.__name__, True
            )
        return said

    def told(self, what: str) -> list[str]:
        return [name for asked, name in self.asked if asked == what]


def found(name: str, **versions: str) -> WorkerReport:
    return WorkerReport(name, "bwrap", versions, places=2, memory=900)


def test_a_worker_with_another_version_of_an_agent_is_not_admitted() -> None:
    """Not by most of those that join later, either: trials are stored by the
    version.
    """

    async def look() -> None:
        client = FakeClient(
            a=found("a", claude="1", loop="1"), b=found("b", claude="1")
        )
        client.there["c"] = found("c", claude="2")
        known = Workers(client, BRIEF, {})
        await known.first_look()
        assert [*known.fit] == client.told("admit") == ["a", "b"]
        assert client.told("leave") == ["c"]
        assert known.lacking == ["c: claude is 2 there, and 1 on most workers"]
        client.there |= {name: found(name, claude="2", loop="1") for name in "defg"}
        await known._look_again()
        assert known.versions == {"claude": "1", "loop": "1"}
        assert known.fit["d"].versions == {"loop": "1"}
        assert "only some trials for worker d, e, f, g: claude is 2 there" in str(
            known.lines
        )

    asyncio.run(look())


def test_a_version_that_is_asked_for() -> None:
    async def look() -> None:
        client = FakeClient(a=found("a", claude="1"), b=found("b", claude="2"))
        known = Workers(client, BRIEF, {"claude": "2"})
        await known.first_look()
        assert [*known.fit] == ["b"]
        assert known.lacking == ["a: claude is 1 there, and 2 is asked for"]

    asyncio.run(look())


def test_a_worker_that_hangs_keeps_nobody_waiting() -> None:
    async def look() -> None:
        client = FakeClient(a=found("a", loop="1"), b=found("b", loop="1"))
        client.hanging = {"a"}
        known = Workers(client, BRIEF, {})
        await known.first_look()
        assert [*known.fit] == ["b"]
        assert known.lacking == ["a: no answer within 30 s"]
        client.hanging = {"b"}
        watching = asyncio.ensure_future(known.watch())
        async with asyncio.timeout(600):
            while len(client.told("alive")) < 3:
                await asyncio.sleep(1)
        watching.cancel()

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(look())


class Lost:
    """A task of Dask's whose worker is lost."""

    status = "pending"

    async def _exception(self) -> None:
        await asyncio.Event().wait()

    def done(self) -> bool:
        return False

    async def cancel(self) -> None:
        pass

    def release(self) -> None:
        pass


def test_a_trial_that_ends_each_of_its_workers_is_given_up() -> None:
    """Also where Dask does not count, as the same machine comes back as another
    worker.
    """

    async def hand_out() -> object:
        known = Workers(None, BRIEF, {})
        known.fit = {"a": found("a", loop="1")}
        dispatch = Dispatch(client := SimpleNamespace(), "tcp://h:1", "r", known)

        def submit(*_args: object, key: str, **_how: object) -> Lost:
            trial = key.rpartition("-")[0]
            worker = f"w{len(trials)}"
            trials.append(trial)
            told = packed(TrialEvent(trial, worker, worker))
            loop = asyncio.get_running_loop()
            loop.call_later(0.01, dispatch._on_event, (0.0, told))
            loop.call_later(0.02, known._notify_all)
            return Lost()

        trials = list[str]()
        client.submit = submit
        question = trial_question("a")
        done = await dispatch.hand_out(question, Allowance(), DispatchedTrial(Paid()))
        assert len(trials) == 4
        return done

    done = asyncio.run(asyncio.wait_for(hand_out(), 60))
    assert done == "its worker was lost 4 times"


def test_what_an_interrupted_trial_spent_is_counted_once() -> None:
    class Interrupted:
        async def hand_out(
            self, _question: object, _allowance: object, trial: DispatchedTrial
        ) -> None:
            trial.spent.append(PaidCall("m", Usage(100, 10)))
            raise asyncio.CancelledError

    async def run(budget: Budget) -> Reply:
        trials = ClusterTrials(Interrupted(), budget, str)  # type: ignore[arg-type]
        return await trials.run(trial_question("a"), Paid())

    budget = Budget(most_tokens=10_000)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run(budget))
    assert budget.spent == (110, 0)
    assert not budget.unanswered  # who waits for the trial counts them


@pytest.mark.parametrize("problem", ["raises", "lacks"])
def test_a_worker_that_gets_no_trials_has_no_keys(
    monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    class Unfit:
        def __init__(self, brief: Brief, _worker: object) -> None:
            os.environ.update(brief.keys)

        def report(self) -> WorkerReport:
            if problem == "raises":
                raise OSError("no room")
            return WorkerReport("w", lacks=("no sandbox",))

        def close(self) -> None:
            monkeypatch.delenv("SENT_KEY")

    monkeypatch.setattr(on_worker, "WorkerRun", Unfit)
    worker = SimpleNamespace(
        name="w",
        state=SimpleNamespace(total_resources={}, nthreads=1),
        memory_manager=SimpleNamespace(memory_limit=None),
    )
    brief = replace(BRIEF, keys={"SENT_KEY": "sk-1234567890"})
    told = from_worker(WorkerReport, asyncio.run(on_worker.prepare(brief, 1, worker)))
    assert told.lacks
    assert not told.versions
    assert "SENT_KEY" not in os.environ
    assert not on_worker._runs


def test_trials_of_a_worker_that_closes_are_ended() -> None:
    """Dask leaves its threads alone, and they would go on to ask the model."""
    reply, ended = Future[Reply](), list[str]()

    def end(key: str) -> None:
        ended.append(key)
        reply.set_result(NoAnswer("stopped"))

    site: Any = SimpleNamespace(
        _engine=SimpleNamespace(submit=lambda _: reply, end=end),
        _worker=SimpleNamespace(
            get_current_task=lambda: "t",
            state=SimpleNamespace(tasks={"t": SimpleNamespace(state="executing")}),
            status=SimpleNamespace(name="closing"),
        ),
    )
    question = trial_question("a")
    assert WorkerRun._reply_to(site, question) == NoAnswer("stopped")
    assert ended == [question.key]


def test_a_worker_is_known_by_the_address_that_others_reach_it_at() -> None:
    told = list[bytes]()
    worker = SimpleNamespace(
        name="w",
        address="tcp://10.1.0.7:1",
        contact_address="tcp://gate:2",
        log_event=lambda _topic, event: told.append(event),
    )
    site: Any = SimpleNamespace(_worker=worker, _brief=BRIEF)
    WorkerRun.tell(site, "t")
    assert from_worker(TrialEvent, told[0]).address == "tcp://gate:2"
