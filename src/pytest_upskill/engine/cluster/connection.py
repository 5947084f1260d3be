"""The way to a cluster: to a scheduler at its address, or to workers that are started here."""

import asyncio
import logging
import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.resource_tracker import ensure_running
from typing import TYPE_CHECKING, Final

from ..._util.texts import one_line
from ...errors import SettingsError
from ..agent_jobs import default_at_once

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

PACKAGE: Final = "pytest-upskill"
_FORMS: Final = "Write tcp://HOST:8786, tls://HOST:8786, or local:4 for 4 workers on this machine."
_PATIENCE: Final = 5.0  # seconds for the scheduler to answer


def connected(address: str, at_once: int | None) -> "tuple[LocalCluster | None, Client]":
    local = re.fullmatch(r"local:([1-9]\d{0,3})", address)
    if not local and not re.fullmatch(r"(tcp|tls)://[^\s/@]+:\d+/?", address):
        raise SettingsError("cluster", "not the address of a cluster", _FORMS, value=address)
    try:
        import dask
        from distributed import Client, LocalCluster, Security

        # Whoever can reach a scheduler can run code, and so could an agent that has a network.
        private = Security.temporary() if local else None
    except ImportError as error:
        hint = f"pip install '{PACKAGE}[cluster]'"
        raise SettingsError("cluster", f"needs Dask ({error})", hint, value=address) from None
    for name in ("distributed", "distributed.client", "distributed.comm", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
    started = None
    if address.startswith("tls:"):
        _require_certificates(address)
    try:
        if not local:
            # Dask's client waits for a server without end that takes a connection and says nothing.
            asyncio.run(asyncio.wait_for(_asked_who_it_is(address), _PATIENCE))
        if local:
            workers = int(local[1])
            threads = -(-(at_once or default_at_once()) // workers)
            with _ctrl_c_waits():
                started = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=threads,
                    processes=True,
                    security=private,
                    memory_limit=0,
                    dashboard_address="127.0.0.1:0",  # the usual port may be taken
                    silence_logs=logging.CRITICAL + 1,
                )
        with warnings.catch_warnings():  # of versions of packages that we don't use
            warnings.simplefilter("ignore")
            return started, Client(started or address, set_as_default=False, name=PACKAGE)
    except BaseException as error:
        if started:
            started.close()
        if not isinstance(error, (OSError, TimeoutError, ValueError, TypeError, RuntimeError)):
            raise
        problem = f"no Dask scheduler answers there within {_PATIENCE:g} s"
        hint = "Start one: dask scheduler. Is the port right, and is it reachable from here?"
        if address.startswith("tls:"):
            hint += " Does it use tls, and do both trust the same authority?"
        if local:
            problem, hint = f"its workers did not start: {one_line(str(error), 200)}", ""
        raise SettingsError("cluster", problem, hint, value=address) from None


def _require_certificates(address: str) -> None:
    from distributed import Security

    try:
        if Security().get_connection_args("client").get("ssl_context"):
            return
        problem = "there are no certificates for it"
    except (OSError, ValueError) as error:  # ssl's errors are OSErrors
        problem = f"its certificates can't be used: {one_line(str(error), 200)}"
    hint = "Dask's settings name them: ca-file, client.cert and client.key of distributed.comm.tls."
    raise SettingsError("cluster", problem, hint, value=address)


async def _asked_who_it_is(address: str) -> None:
    from distributed import Security
    from distributed.core import rpc

    own = Security().get_connection_args("client")
    async with rpc(address, timeout=_PATIENCE, connection_args=own) as scheduler:
        await scheduler.identity()


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Ctrl-C takes effect afterwards, and never in workers that are started meanwhile.

    They inherit what is blocked, and so does the thread that starts them again. The controller
    ends them, trials first.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    ensure_running()  # else the first worker would start it, and unblock
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
