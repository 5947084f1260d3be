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

_OFFLOAD: Final = "Dask-Offload"  # the thread that reads large messages, for all loops
_loops: Final = set[asyncio.AbstractEventLoop]()


class _DataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[bytes]:
        # What Dask calls the type of our results
        if (module, name) == ("builtins", "bytes"):
            return bytes
        raise pickle.UnpicklingError(f"{module}.{name} is no data")


def read_data_only(loop: asyncio.AbstractEventLoop) -> None:
    """Have Dask unpickle only data on a loop until ``read_all``; all else becomes
    None.
    """
    import distributed.client
    import distributed.protocol.core
    import distributed.protocol.pickle
    from distributed.protocol.compression import decompress
    from distributed.protocol.serialize import merge_and_deserialize

    _loops.add(loop)
    # All other modules of its client unpickle by these.
    for module in (distributed.protocol.pickle, distributed.client):
        vars(module)["pickle"] = SimpleNamespace(**{**vars(pickle), "loads": _loads})
    core = vars(distributed.protocol.core)
    core["decompress"] = _tolerant(decompress)
    core["merge_and_deserialize"] = _tolerant(merge_and_deserialize)


def read_all(loop: asyncio.AbstractEventLoop) -> None:
    _loops.discard(loop)


def _loads(data: Any, **options: Any) -> Any:
    """As in the module pickle, whose place this takes;
    tests of users may use Dask as well.
    """
    if not _is_restricted():
        return pickle.loads(data, **options)
    # An error would end the loop that reads the scheduler's messages.
    with suppress(Exception):
        return _DataUnpickler(io.BytesIO(data), **options).load()
    return None


def _tolerant(function: Callable[..., Any]) -> Callable[..., Any]:
    """It reads None where it would fail, such as an object whose class is not found."""

    def call(*args: Any, **options: Any) -> Any:
        if not _is_restricted():
            return function(*args, **options)
        with suppress(Exception):
            return function(*args, **options)
        return None

    return call


def _is_restricted() -> bool:
    if threading.current_thread().name.startswith(_OFFLOAD):
        return bool(_loops)
    with suppress(RuntimeError):
        return asyncio.get_running_loop() in _loops
    return False
