"""SIGTERM as Ctrl-C."""

import signal
from collections.abc import Callable, Iterator
from threading import Event
from types import FrameType, SimpleNamespace
from typing import cast

import pytest

from pytest_upskill._util import interrupts
from pytest_upskill._util.interrupts import sigterm_as_ctrl_c


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def test_two_signals_at_once_are_one_interrupt() -> None:
    cleaned_up = list[str]()

    @sigterm_as_ctrl_c()
    def run() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)  # as `timeout` does
            cleaned_up.append("yes")

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        run()
    assert cleaned_up
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_it_waits_for_the_next_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else pytest, which shows where it was, breaks: such a place has no number."""
    later = list[Callable[[], None]]()

    def timer(
        _seconds: float, kill: Callable[..., None], args: tuple[int, int]
    ) -> object:
        def kill_and_wait() -> None:
            kill(*args)
            Event().wait(60)

        return SimpleNamespace(start=lambda: later.append(kill_and_wait))

    monkeypatch.setattr(interrupts, "Timer", timer)
    between = cast(FrameType, SimpleNamespace(f_lineno=None))
    with sigterm_as_ctrl_c():
        handler = signal.getsignal(signal.SIGTERM)
        assert callable(handler)
        handler(signal.SIGTERM, between)
        (kill_and_wait,) = later
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            kill_and_wait()


def test_a_handler_of_others_stays() -> None:
    received = list[int]()

    def handler(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    signal.signal(signal.SIGTERM, handler)
    with sigterm_as_ctrl_c():
        signal.raise_signal(signal.SIGTERM)
    assert received == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is handler
