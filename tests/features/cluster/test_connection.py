"""A cluster's address, and what trials that run elsewhere may spend."""

import asyncio
import socket
import sys

import pytest

from pytest_upskill.engine.budget import Allowance, Budget, UnansweredCall
from pytest_upskill.engine.forecast import Amount
from pytest_upskill.errors import SettingsError
from pytest_upskill.features.cluster import connection
from pytest_upskill.features.cluster.connection import connect
from pytest_upskill.models.prices import Price
from pytest_upskill.trials.answer import Usage
from support.loopback import LoopbackServer, Reply
from support.trials import trial_question


@pytest.mark.parametrize(
    "address",
    [
        "",
        "local",
        "local:0",
        "local:-1",
        "local:99999",
        "host:8786",
        "http://host:8786",
        "tls://host",
        "tls://a b:1",
        "tls://user:password@host:8786",
        "tls://h:8786/x\x1b[2J",
        "tcp://10.0.0.5:8786",
        "tcp://localhost.example.org:8786",
    ],
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(SettingsError, match="not the address of a cluster"):
        connect(address, 1)


def test_dask_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    hint = r'pip install "pytest-upskill\[cluster\] @ git\+https://'
    with pytest.raises(SettingsError, match=rf"needs Dask(.|\n)*{hint}"):
        connect("local:1", 1)


@pytest.mark.nightly
def test_nobody_else_can_use_the_workers_of_this_machine() -> None:
    """An agent that has a network could run code outside of its sandbox."""
    from distributed import Security
    from distributed.core import rpc

    async def ask(address: str, **options: object) -> object:
        async with asyncio.timeout(10), rpc(address, **options) as stranger:
            return await stranger.identity()

    client = connect("local:1", 1)
    try:
        assert client.submit(len, "abc").result(60) == 3
        other = Security.temporary().get_connection_args("client")
        for address in (*client.nthreads(), client.scheduler.address):
            assert address.startswith("tls://127.0.0.1:")
            with pytest.raises(OSError):  # noqa: PT011 - of many kinds
                asyncio.run(ask(address.replace("tls", "tcp")))
            with pytest.raises(OSError):  # noqa: PT011
                asyncio.run(ask(address, connection_args=other))
    finally:
        client.close()
        client.cluster.close()


def test_nobody_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_PATIENCE_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(SettingsError, match="no Dask scheduler answers there"):
            connect(address, 1)
    with pytest.raises(SettingsError, match="no Dask scheduler answers there"):
        connect(address, 1)


def test_tls_needs_certificates() -> None:
    dask = pytest.importorskip("dask")
    names = ("ca-file", "client.cert", "client.key")
    with pytest.raises(SettingsError) as caught:
        connect("tls://127.0.0.1:1", 1)
    assert "client.cert and client.key of distributed.comm.tls" in "".join(
        caught.value.hint
    )
    with (
        dask.config.set({f"distributed.comm.tls.{name}": "/no.pem" for name in names}),
        pytest.raises(SettingsError, match="No such file"),
    ):
        connect("tls://127.0.0.1:1", 1)


def test_another_server_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_PATIENCE_SECONDS", 0.3)
    with (
        LoopbackServer(lambda _: Reply("no")) as server,
        pytest.raises(SettingsError, match="no Dask scheduler answers there"),
    ):
        connect(server.url.replace("http:", "tcp:"), 1)


PRICE = Price(1_000_000, 1_000_000, 1_000_000)  # a dollar a token


def test_the_first_trial_goes_alone_and_others_by_the_dearest() -> None:
    budget = Budget(most_tokens=10_000)
    # A call: 100 tokens and a bit
    first, second, third = (trial_question(text) for text in "abc")
    assert budget.allot(first) == Allowance(10_000, None, is_all=True)
    assert budget.allot(second) is None
    budget.spend(first, Amount(300))
    call = 100 + 0 + round(0.25)
    assert budget.allot(second) == Allowance(600 + call, None, is_all=False)
    assert budget.allot(third) == Allowance(600 + call, None, is_all=False)
    budget.spend(second, Amount(250))
    unanswered = UnansweredCall("m", Usage(900, 100), counted=True)
    budget.spend(third, Amount(1000), [unanswered])
    assert budget.spent == (1550, 0)
    assert budget.unanswered == [unanswered]
    assert budget.allot(first) == Allowance(2000 + call, None, is_all=False)


def test_a_trial_that_needs_more_gets_more_until_nothing_is_left() -> None:
    budget = Budget(most_cost=1000.0, price_of=lambda _: PRICE)
    first, other = trial_question("a"), trial_question("b")
    assert budget.allot(first) == Allowance(None, 1000.0, is_all=True)
    budget.spend(first, Amount(10, 10.0))
    got = list[float]()
    while True:
        allowance = budget.allot(other)
        assert allowance
        assert allowance.usd
        got.append(allowance.usd)
        if allowance.is_all:
            break
        budget.spend(other, Amount(5, 5.0), exceeded=True)
    assert got == sorted(got)
    assert len(got) < 6
    budget.spend(other, Amount(100, got[-1]))
    assert "$1,000 of $1000" in "".join(budget.reached(other))


def test_without_a_limit_nothing_is_held() -> None:
    budget = Budget()
    assert budget.allot(trial_question("a")) == Allowance()
    assert budget.allot(trial_question("b")) == Allowance()
