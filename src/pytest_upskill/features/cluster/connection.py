"""Dask's client: of a scheduler, or of workers that are started on this machine.

Dask's client unpickles whatever workers send: types of results, exceptions,
warnings, events. Its ``deserializers`` are asked for results alone. A pickle may
call any function, so on the thread that reads the messages of a cluster, a pickle
finds no function and no class.
"""

import asyncio
import io
import logging
import pickle
import re
import signal
import threading
import warnings
from contextlib import suppress
from multiprocessing.resource_tracker import ensure_running
from typing import Any, Final

from ..._util.launcher import install_command
from ..._util.texts import one_line
from ...errors import SettingsError

# Without TLS, whoever can read the network sees skills and keys.
_ADDRESS: Final = re.compile(
    r"local:(?P<workers>[1-9]\d{0,3})"
    r"|(tls://[^\s/@]+|tcp://(127\.0\.0\.1|localhost|\[::1\])):\d+/?"
)
_FORMS: Final = (
    "Write tls://HOST:8786, or local:4 for 4 workers on this machine. Without TLS, a"
    " scheduler must be on this machine: tcp://127.0.0.1:8786."
)
_PATIENCE_SECONDS: Final = 5.0


def cluster_error(address: str, problem: str, hint: str) -> SettingsError:
    return SettingsError("cluster", problem, hint, value=address)


def connect(address: str, at_once: int) -> Any:
    """Dask's client, with a thread of its own.

    SettingsError if there is no such cluster, or if Dask is not installed.
    ``at_once`` is how many trials the workers started here carry out.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise cluster_error(address, "not the address of a cluster", _FORMS)

    try:
        from distributed import LocalCluster
        from distributed.utils import LoopRunner
    except ImportError as error:
        problem = f"needs Dask ({error})"
        raise cluster_error(address, problem, install_command("cluster")) from None

    for name in ("distributed", "distributed.client", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    workers = int(match["workers"] or 0)
    runner = LoopRunner()
    runner.start()
    try:
        cluster: Any = address
        if workers:
            runner.run_sync(block_interrupts)
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=-(-at_once // workers),
                # By TLS. Whoever can reach a scheduler can run code, and so could an
                # agent that has a network.
                security=True,
                memory_limit=0,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL + 1,
                loop=runner.loop,
            )
        else:
            runner.run_sync(read_data_only)
        return runner.run_sync(_open, cluster)
    except Exception as error:
        hint = (
            "Start one: dask scheduler. For TLS, Dask's settings name the certificates:"
            " ca-file, client.cert and client.key of distributed.comm.tls."
        )
        problem = f"no Dask scheduler answers there: {one_line(str(error), 200)}"
        raise cluster_error(address, problem, hint) from None
    finally:
        runner.stop()  # Its thread ends with the client.


async def _open(cluster: Any) -> Any:
    from distributed import Client

    with warnings.catch_warnings():
        # About versions of packages that are not used here
        warnings.simplefilter("ignore")
        client = Client(cluster, asynchronous=True, set_as_default=False)
        try:
            # It would wait forever for a server that accepts and says nothing.
            await asyncio.wait_for(client, _PATIENCE_SECONDS)
        except Exception:
            # Or it would be closed as it is collected, by a loop that has ended.
            await client.close()
            raise
    for topic in ("print", "warn"):
        # Workers would write to this terminal.
        client.subscribe_topic(topic, lambda _event: None)
    return client


async def block_interrupts() -> None:
    """Have the workers that this thread starts inherit a mask for Ctrl-C.

    The controller ends them, trials first.
    """
    if hasattr(signal, "pthread_sigmask"):
        ensure_running()  # Else the first worker would, and unblock the signal.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


async def read_data_only() -> None:
    """Have this thread unpickle only data; all else becomes None.

    Other threads may use Dask as usual: tests of users may have clusters of their own.
    """
    from distributed.comm import utils

    thread = threading.current_thread()
    usual = pickle.loads

    def loads(data: Any, **options: Any) -> Any:
        if threading.current_thread() is not thread:
            return usual(data, **options)

        # An error would end the loop that reads the scheduler's messages.
        with suppress(Exception):
            return _DataUnpickler(io.BytesIO(data), **options).load()
        return None

    pickle.loads = loads
    # Dask would read large messages on another thread.
    utils.OFFLOAD_THRESHOLD = False


class _DataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[bytes]:
        # What Dask calls the type of our results
        if (module, name) == ("builtins", "bytes"):
            return bytes
        raise pickle.UnpicklingError(f"{module}.{name} is no data")
