"""All checks of one answer share a few seconds, so that no pattern of a stranger hangs a run.

These are seconds of CPU time, of the thread that checks: a verdict must not depend on what else the
machine does. Whatever may take long asks how much is left, and stops when that is used up. Real
time counts too, but there is plenty of it, for processes and for whatever else only waits. Python
code of the project can't be stopped; its time does not count.
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


class OutOfTimeError(Exception):
    """The time of an answer's checks is used up."""

    def __init__(self) -> None:
        super().__init__(f"an answer's checks have {SECONDS:g} s in all")


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
    """The CPU time that is left; OutOfTimeError if there is none, or no real time."""
    return _left().cpu


def real_seconds_left() -> float:
    """How long a process may take; OutOfTimeError if there is no time."""
    return _left().real


def _left() -> _Ends:
    ends = _ENDS.get()
    if ends is None:
        return _Ends(SECONDS, WAITING)
    left = _Ends(ends.cpu - thread_time(), ends.real - monotonic())
    if min(left) <= 0:
        raise OutOfTimeError
    return left


@contextmanager
def not_counted() -> Iterator[None]:
    """What happens inside takes nothing from the budget."""
    started = _Ends(thread_time(), monotonic())
    try:
        yield
    finally:
        ends = _ENDS.get()
        if ends is not None:
            cpu = ends.cpu + thread_time() - started.cpu
            _ENDS.set(_Ends(cpu, ends.real + monotonic() - started.real))
