"""A cluster's address, and what trials that run elsewhere may spend."""

import asyncio
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

from pytest_upskill.engine.budget import Allowance, Budget, PaidCall, UnansweredCall
from pytest_upskill.engine.cluster import cluster
from pytest_upskill.engine.cluster.brief import (
    Brief,
    Outcome,
    SentTrial,
    TrialEvent,
    WorkerReport,
    packed,
)
from pytest_upskill.engine.cluster.cluster import connected
from pytest_upskill.engine.cluster.dispatch import Dispatch, DispatchedTrial
from pytest_upskill.engine.cluster.on_worker import RunVariables
from pytest_upskill.engine.cluster.workers import Workers, _lacks, _other_version
from pytest_upskill.errors import SettingsError
from pytest_upskill.models.prices import Price
from pytest_upskill.trials.answer import Answer, NoAnswer, Usage
from support.loopback import LoopbackServer, Reply
from support.trials import trial_question


@pytest.mark.parametrize(
    "address",
    [
        *(
            "",
            "local",
            "local:0",
            "local:-1",
            "local:99999",
            "host:8786",
            "http://host:8786",
        ),
        *(
            "tcp://host",
            "tcp://a b:1",
            "tcp://user:password@host:8786",
            "tcp://h:8786/x\x1b[2J",
        ),
    ],
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(SettingsError, match="not the address of a cluster"):
        connected(address, None)


def test_dask_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        SettingsError, match=r"needs Dask(.|\n)*pip install 'pytest-upskill\[clus"
    ):
        connected("local:1", None)


@pytest.mark.nightly
def test_nobody_else_can_use_the_workers_of_this_machine() -> None:
    """An agent that has a network could run code outside of its sandbox."""
    from distributed import Security
    from distributed.core import rpc

    opened, client = connected("local:1", 1)
    try:
        assert client.submit(len, "abc").result(timeout=60) == 3
        there = {*client.nthreads(), client.scheduler_info()["address"]}

        async def asked(address: str, **own: object) -> object:
            async with asyncio.timeout(10), rpc(address, **own) as stranger:
                return await stranger.identity()

        other = Security.temporary().get_connection_args("client")
        for address in there:
            assert address.startswith("tls://127.0.0.1:")
            with pytest.raises(OSError):  # noqa: PT011 - of many kinds
                asyncio.run(asked(address.replace("tls", "tcp")))
            with pytest.raises(OSError):  # noqa: PT011
                asyncio.run(asked(address, connection_args=other))
    finally:
        client.close()
        opened.close()


def test_nobody_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(
            SettingsError, match=r"no Dask scheduler answers there within 0\.3 s"
        ):
            connected(f"tcp://127.0.0.1:{port}", None)
    with pytest.raises(SettingsError, match="no Dask scheduler answers there"):
        connected(f"tcp://127.0.0.1:{port}", None)


def test_tls_needs_certificates() -> None:
    dask = pytest.importorskip("dask")
    names = ("ca-file", "client.cert", "client.key")
    with pytest.raises(
        SettingsError, match=r"there are no certificates for it"
    ) as caught:
        connected("tls://127.0.0.1:1", None)
    assert "client.cert and client.key of distributed.comm.tls" in "".join(
        caught.value.hint
    )
    with (
        dask.config.set({f"distributed.comm.tls.{name}": "/no.pem" for name in names}),
        pytest.raises(
            SettingsError, match=r"its certificates can't be used: .*No such file"
        ),
    ):
        connected("tls://127.0.0.1:1", None)


def test_another_server_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE", 0.3)
    with (
        LoopbackServer(lambda _: Reply("no")) as server,
        pytest.raises(SettingsError, match="no Dask scheduler answers there"),
    ):
        connected(server.url.replace("http:", "tcp:"), None)


_INTERRUPTED = """
import signal
from multiprocessing.resource_tracker import ensure_running
from pytest_upskill.engine.cluster.cluster import _defer_ctrl_c
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have it ignored
try:
    with _defer_ctrl_c():
        ensure_running()  # as each worker that is started does
        signal.raise_signal(signal.SIGINT)
        print("started")
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to block")
def test_ctrl_c_waits_while_workers_start_and_is_not_forgotten() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["started", "stopped"]


def test_a_worker_of_another_version() -> None:
    failed = RuntimeError("it failed, and its log says why")
    assert _other_version(failed, "1.0") == "pytest-upskill is not installed there"
    assert _other_version(TimeoutError("no answer"), "1.0") == "no answer"
    assert (
        _other_version("0.9", "1.0")
        == "it has pytest-upskill 0.9, and this machine has 1.0"
    )


def test_workers_that_lack_the_same_are_one_line() -> None:
    lacks = ("claude is not installed",)
    workers = [WorkerReport(f"w{number}", lacks=lacks) for number in range(7)]
    workers += [WorkerReport("\x1b[2Jw", lacks=("no\nsandbox",))]
    told = _lacks(workers)
    assert told[1] == "w0, w1, w2, w3, w4, 2 more: claude is not installed"
    assert "\x1b" not in told[0] + told[1]
    assert "\n" not in told[0]


def workers_of(memory: dict[str, int], *found: WorkerReport) -> Workers:
    brief = Brief("r", {}, {}, {}, memory, "auto", None, 1, 1, 1)
    workers = Workers(None, brief, {})
    workers.fit = {one.name: one for one in found}
    return workers


def test_memory_says_how_many_trials_a_worker_takes() -> None:
    versions = {"claude": "2", "loop": "1"}
    anna = WorkerReport("anna", "bwrap", versions, places=4, memory=700)
    berta = WorkerReport("berta", "bwrap", {"loop": "1"}, places=4, memory=40)
    workers = workers_of({"claude": 300, "loop": 50}, anna, berta)
    assert workers.places == 4
    assert workers.lines == [
        "1 worker, 4 trials at once, sandbox: bwrap",
        "no trials for worker berta: loop takes 50 MB, and 40 MB can be used there",
    ]
    assert (
        workers_of({"claude": 300}, replace(anna, versions={"claude": "2"})).places == 2
    )


def test_an_agent_that_is_larger_than_all_workers_runs_on_the_largest() -> None:
    anna, berta = (
        WorkerReport("anna", "", {"gemini": "1"}, (), 4, 900),
        WorkerReport("b", "", {}, (), 4, 2000),
    )
    workers = workers_of({"gemini": 1800}, anna, berta)
    assert workers.memory_for("gemini") == 900
    assert workers.places == 1
    workers = workers_of({"gemini": 300}, anna)
    assert [workers.memory_for("gemini", asked) for asked in (0, 500, 4000)] == [
        300,
        500,
        900,
    ]


class OneClient:
    """Of Dask, with one worker."""

    def __init__(self, address: str) -> None:
        self.address = address

    async def nthreads(self) -> dict[str, int]:
        return {self.address: 2}


@pytest.mark.parametrize(
    ("there", "memory", "told"),
    [
        ("anna", 300, False),
        ("emil", 300, True),
        ("emil", 900, True),
        ("emil", 200, True),
    ],
)
def test_trials_hear_of_a_worker_that_takes_the_place_of_a_lost_one(
    monkeypatch: pytest.MonkeyPatch, there: str, memory: float, told: bool
) -> None:
    """Also if it came between two looks: nobody had the resources that they wait
    for.
    """

    async def look() -> bool:
        anna = WorkerReport("anna", "bwrap", {"claude": "2"}, places=2, memory=300)
        workers = workers_of({"claude": 300}, anna)
        monkeypatch.setattr(workers, "_client", OneClient(there))

        async def look_at(new: list[str], _: list[str]) -> None:
            workers.fit[new[0]] = replace(anna, name=new[0], memory=memory)

        monkeypatch.setattr(workers, "_examine", look_at)
        changed = workers.changed
        await workers._look_again()
        return changed.is_set()

    assert asyncio.run(look()) is told


class NoCalls:
    async def __call__(self, question: object, send: object = None) -> NoAnswer:
        raise NotImplementedError

    def paid(self, usage: Usage, *, by_user: bool = False) -> PaidCall:  # noqa: ARG002
        return PaidCall("m", usage)


def test_trials_that_wait_for_a_place_are_not_at_work() -> None:
    dispatch = Dispatch(None, "tcp://h:1", "r", workers_of({}))
    dispatch._trials = {
        "a": DispatchedTrial(NoCalls()),
        "b": DispatchedTrial(NoCalls()),
    }
    assert dispatch.at_work == 0
    dispatch._on_event((0.0, packed(TrialEvent("a", "anna", "tcp://h:2"))))
    assert dispatch.at_work == 1


def test_a_setup_runs_once_though_its_trials_begin_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = list[SentTrial]()

    async def carry_out(trial: SentTrial, _: DispatchedTrial) -> Outcome:
        sent.append(trial)
        await asyncio.sleep(0)
        return Outcome(Answer("", workspace=b"made"))

    async def hand_out() -> None:
        dispatch = Dispatch(None, "tcp://h:1", "r", workers_of({}))
        monkeypatch.setattr(dispatch, "_carried_out", carry_out)
        question, trial = trial_question("a", setup="make"), DispatchedTrial(NoCalls())
        await asyncio.gather(
            *(dispatch.hand_out(question, Allowance(), trial) for _ in range(4))
        )

    asyncio.run(hand_out())
    assert [trial.is_setup for trial in sent] == [True, False, False, False, False]
    assert all(trial.start and trial.start.workspace == b"made" for trial in sent[1:])


def test_keys_of_runs_that_overlap_are_all_taken_back() -> None:
    env = {"OWN": "own"}
    variables = RunVariables(env)
    first, second = {"OWN": "first", "KEY": "first"}, {"KEY": "second"}
    variables.set(first)
    variables.set(second)
    assert env == {"OWN": "first", "KEY": "second"}
    variables.unset(first)
    assert env == {"OWN": "own", "KEY": "second"}
    variables.unset(second)
    assert env == {"OWN": "own"}


def test_keys_are_not_in_the_repr_of_what_workers_are_told() -> None:
    brief = Brief(
        "r", {}, {}, {}, {}, "auto", None, 1, 1, 1, {"OPENAI_API_KEY": "sk-secret-1"}
    )
    assert "sk-secret-1" not in repr(brief) + str(brief) + f"{(brief,)}"


PRICE = Price(1_000_000, 1_000_000, 1_000_000)  # a dollar a token


def test_the_first_trial_goes_alone_and_others_by_the_dearest() -> None:
    budget = Budget(most_tokens=10_000)
    # A call: 100 tokens and a bit
    first, second, third = (trial_question(text) for text in "abc")
    assert budget.allot(first) == Allowance(10_000, None, is_all=True)
    assert budget.allot(second) is None
    budget.spend(first, 300, 0)
    call = 100 + 0 + round(0.25)
    assert budget.allot(second) == Allowance(600 + call, None, is_all=False)
    assert budget.allot(third) == Allowance(600 + call, None, is_all=False)
    budget.spend(second, 250, 0)
    budget.spend(third, 0, 0, [UnansweredCall("m", Usage(900, 100), counted=True)])
    assert budget.spent == (1550, 0)
    assert budget.allot(first) == Allowance(2000 + call, None, is_all=False)


def test_a_trial_that_needs_more_gets_more_until_nothing_is_left() -> None:
    budget = Budget(most_cost=1000.0, price_of=lambda _: PRICE)
    first, other = trial_question("a"), trial_question("b")
    assert budget.allot(first) == Allowance(None, 1000.0, is_all=True)
    budget.spend(first, 10, 10.0)
    got = list[float]()
    while True:
        allowance = budget.allot(other)
        assert allowance
        assert allowance.usd
        got.append(allowance.usd)
        if allowance.is_all:
            break
        budget.spend(other, 5, 5.0, exceeded=True)
    assert got == sorted(got)
    assert len(got) < 6
    budget.spend(other, 100, got[-1])
    assert "$1,000 of $1000" in "".join(budget.reached(other))


def test_without_a_limit_nothing_is_held() -> None:
    budget = Budget()
    assert budget.allot(trial_question("a")) == Allowance()
    assert budget.allot(trial_question("b")) == Allowance()
