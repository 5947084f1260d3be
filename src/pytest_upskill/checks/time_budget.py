"""All checks of one answer share a few seconds, so that no pattern of a stranger hangs a run.

Whatever may take long asks how much is left, and stops when that is used up. Python code of the
project can't be stopped; its time does not count.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Final

SECONDS: Final = 5.0

_END: Final = ContextVar[float | None]("end", default=None)


class OutOfTimeError(Exception):
    """The time of an answer's checks is used up."""

    def __init__(self) -> None:
        super().__init__(f"an answer's checks have {SECONDS:g} s in all")


@contextmanager
def time_budget(seconds: float | None = None) -> Iterator[None]:
    """Give everything inside this much time in all."""
    token = _END.set(monotonic() + (SECONDS if seconds is None else seconds))
    try:
        yield
    finally:
        _END.reset(token)


def seconds_left() -> float:
    """What is left; OutOfTimeError if there is nothing."""
    end = _END.get()
    left = SECONDS if end is None else end - monotonic()
    if left <= 0:
        raise OutOfTimeError
    return left


@contextmanager
def not_counted() -> Iterator[None]:
    """What happens inside takes nothing from the budget."""
    started = monotonic()
    try:
        yield
    finally:
        end = _END.get()
        if end is not None:
            _END.set(end + monotonic() - started)
