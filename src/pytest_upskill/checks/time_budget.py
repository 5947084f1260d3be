"""All checks of one answer share a few seconds,
so that no stranger's pattern hangs a run.

These are seconds of CPU time of the checking thread: a verdict must not depend on what
else the machine does. Slow code asks for the remaining time, and stops when it is used
up. Real time is limited more generously, for child processes. Python code of the
project can't be stopped; its time does not count.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic, thread_time
from typing import Final, NamedTuple

SECONDS: Final = 5.0
WAITING: Final = 60.0  # seconds of real time


class _Ends(NamedTuple):
    cpu: float
    real: float


_ENDS: Final = ContextVar[_Ends | None]("ends", default=None)


class LimitReachedError(Exception):
    """The checks of an answer took too long, or a pattern too much memory."""


def out_of_time() -> LimitReachedError:
    return LimitReachedError(f"timed out: an answer's checks have {SECONDS:g} s in all")


@contextmanager
def time_budget(seconds: float | None = None) -> Iterator[None]:
    """Give everything inside this much CPU time in all."""
    cpu = thread_time() + (SECONDS if seconds is None else seconds)
    token = _ENDS.set(_Ends(cpu, monotonic() + WAITING))
    try:
        yield
    finally:
        _ENDS.reset(token)


def seconds_left() -> float:
    """The remaining CPU time; LimitReachedError if CPU time or real time is used up."""
    return _remaining().cpu


def real_seconds_left() -> float:
    """The remaining real time, for a process; LimitReachedError if it is used up."""
    return _remaining().real


def _remaining() -> _Ends:
    ends = _ENDS.get()
    if ends is None:
        return _Ends(SECONDS, WAITING)
    remaining = _Ends(ends.cpu - thread_time(), ends.real - monotonic())
    if min(remaining) <= 0:
        raise out_of_time()
    return remaining


def spend(seconds: float) -> None:
    """Count CPU time of another process."""
    if ends := _ENDS.get():
        _ENDS.set(ends._replace(cpu=ends.cpu - seconds))


@contextmanager
def not_counted() -> Iterator[None]:
    """Time inside does not count."""
    started = _Ends(thread_time(), monotonic())
    try:
        yield
    finally:
        ends = _ENDS.get()
        if ends is not None:
            cpu = ends.cpu + thread_time() - started.cpu
            _ENDS.set(_Ends(cpu, ends.real + monotonic() - started.real))
