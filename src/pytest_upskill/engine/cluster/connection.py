"""Dask's client: of a scheduler, or of workers that are started on this machine."""

import asyncio
import logging
import re
import signal
import threading
import warnings
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from multiprocessing.resource_tracker import ensure_running
from typing import Any, Final, TypeVar

from ..._util.launcher import install_command
from ..._util.texts import one_line
from ...errors import SettingsError, Text
from .unpickling import read_all, read_data_only

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
_CLOSING_SECONDS: Final = 10.0

T = TypeVar("T")


class Connection:
    """Dask's client, on a loop and a thread of its own."""

    def __init__(self, address: str, at_once: int) -> None:
        """SettingsError if there is no such cluster, or if Dask is not installed.

        ``at_once`` is how many trials the workers started here carry out.
        """
        self.client: Any = None
        self._address = address
        match = _ADDRESS.fullmatch(address)
        if match is None:
            raise self.error("not the address of a cluster", _FORMS)

        try:
            import distributed  # noqa: F401
        except ImportError as error:
            hint = install_command("cluster")
            raise self.error(f"needs Dask ({error})", hint) from None

        for name in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        self._opened = AsyncExitStack()
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        try:
            self.start(self._open(int(match["workers"] or 0), at_once)).result()
        except BaseException as error:
            self.close()
            if not isinstance(error, OSError | ValueError | TypeError | RuntimeError):
                raise
            hint = (
                "Start one: dask scheduler. Is the port right, and can it be reached?"
            )
            if address.startswith("tls:"):
                hint = (
                    "Dask's settings name the certificates: ca-file, client.cert and"
                    " client.key of distributed.comm.tls."
                )
            problem = f"no Dask scheduler answers there: {one_line(str(error), 200)}"
            raise self.error(problem, hint) from None

    def error(self, problem: str, hint: Text) -> SettingsError:
        return SettingsError("cluster", problem, hint, value=self._address)

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start work on the client's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        if self._thread.is_alive():
            closing = asyncio.wait_for(self._opened.aclose(), _CLOSING_SECONDS)
            with suppress(Exception):
                self.start(closing).result()
            read_all(self._loop)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _serve(self) -> None:
        # Ctrl-C is not for the workers that are started here, which inherit the mask:
        # the controller ends them, trials first.
        if hasattr(signal, "pthread_sigmask"):
            ensure_running()  # Else the first worker would, and unblock the signal.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self._loop.run_forever()
        self._runner.close()

    async def _open(self, workers: int, at_once: int) -> None:
        from distributed import Client, LocalCluster, Security

        cluster: Any = self._address
        if workers:
            cluster = await self._opened.enter_async_context(
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=-(-at_once // workers),
                    # Whoever can reach a scheduler can run code, and so could an agent
                    # that has a network.
                    security=Security.temporary(),
                    memory_limit=0,
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL + 1,
                    asynchronous=True,
                )
            )
        else:
            read_data_only(self._loop)

        with warnings.catch_warnings():
            # About versions of packages that are not used here
            warnings.simplefilter("ignore")
            client = Client(cluster, asynchronous=True, set_as_default=False)
            self._opened.push_async_callback(client.close)
            # It would wait forever for a server that accepts and says nothing.
            self.client = await asyncio.wait_for(client, _PATIENCE_SECONDS)
        for topic in ("print", "warn"):
            # Workers would write to this terminal.
            client.subscribe_topic(topic, lambda _event: None)
