"""What Dask may unpickle in the controller of a run: data, and no code.

Dask's client unpickles whatever workers send: types of results, exceptions,
warnings, events. Its ``deserializers`` are asked for results alone. A pickle may
call any function, so where messages of a cluster are read, Dask's unpickler finds
no function and no class.
"""

import asyncio
import io
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

# The name of the thread that reads large messages, for all loops
_OFFLOAD_THREAD: Final = "Dask-Offload"
_loops: Final = set[asyncio.AbstractEventLoop]()


class _DataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[bytes]:
        # What Dask calls the type of our results
        if (module, name) == ("builtins", "bytes"):
            return bytes
        raise pickle.UnpicklingError(f"{module}.{name} is no data")


def read_data_only(loop: asyncio.AbstractEventLoop) -> None:
    """Have Dask unpickle only data on a loop until ``read_all``.

    All else becomes None.
    """
    import distributed.client
    import distributed.protocol.core
    import distributed.protocol.pickle
    from distributed.protocol.compression import decompress
    from distributed.protocol.serialize import merge_and_deserialize

    _loops.add(loop)
    loads = _guarded(pickle.loads, _load_data)
    # All other modules of its client unpickle by these.
    for module in (distributed.protocol.pickle, distributed.client):
        vars(module)["pickle"] = SimpleNamespace(**{**vars(pickle), "loads": loads})
    core = vars(distributed.protocol.core)
    # They fail on an object whose class is not found.
    core["decompress"] = _guarded(decompress, decompress)
    core["merge_and_deserialize"] = _guarded(
        merge_and_deserialize, merge_and_deserialize
    )


def read_all(loop: asyncio.AbstractEventLoop) -> None:
    _loops.discard(loop)


def _load_data(data: Any, **options: Any) -> Any:
    return _DataUnpickler(io.BytesIO(data), **options).load()


def _guarded(usual: Callable[..., Any], on_data: Callable[..., Any]) -> Any:
    """A function of Dask that tests of users may use as usual, on their own loops."""

    def call(*args: Any, **options: Any) -> Any:
        if not _is_restricted():
            return usual(*args, **options)

        # An error would end the loop that reads the scheduler's messages.
        with suppress(Exception):
            return on_data(*args, **options)
        return None

    return call


def _is_restricted() -> bool:
    if threading.current_thread().name.startswith(_OFFLOAD_THREAD):
        return bool(_loops)
    with suppress(RuntimeError):
        return asyncio.get_running_loop() in _loops
    return False
