"""What ends a run early: Ctrl-C, and SIGTERM, which CI,
containers and ``timeout`` send.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from types import FrameType
from typing import Final

_ENDING: Final = (
    b"\nupskill: the run is ending, which may take some seconds;"
    b" Ctrl-C again ends it at once, without its reports\n"
)
# ``timeout`` signals its child and then the child's group: that is one wish to end.
_SAME_WISH: Final = 5.0  # seconds
_BETWEEN_LINES: Final = 0.01  # seconds


def take_sigterm_as_ctrl_c() -> Callable[[], None]:
    """Raise KeyboardInterrupt on SIGTERM, which else ends a process
    before it keeps anything.

    Returns what restores the default. Another program's handler stays.
    """
    last = -_SAME_WISH

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        # Between two lines, of which pytest can't tell
        if frame and frame.f_lineno is None:
            Timer(_BETWEEN_LINES, os.kill, (os.getpid(), number)).start()
        elif now - last >= _SAME_WISH:
            last = now
            raise KeyboardInterrupt("SIGTERM")

    return _handled(signal.SIGTERM, signal.SIG_DFL, interrupt)


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    restore = take_sigterm_as_ctrl_c()
    try:
        yield
    finally:
        restore()


def stop_on_second_interrupt() -> Callable[[], None]:
    """Answer the next Ctrl-C with a line: a run may take seconds
    to stop agents and workers.

    One more Ctrl-C ends the run before its reports. Returns what restores the default.
    """

    def warn(_number: int, _frame: object) -> None:
        restore()
        os.write(2, _ENDING)  # a stream may be in use just now

    restore = _handled(signal.SIGINT, signal.default_int_handler, warn)
    return restore


def _handled(
    number: signal.Signals,
    usual: signal.Handlers | Callable[..., object],
    handler: Callable[[int, FrameType | None], None],
) -> Callable[[], None]:
    if current_thread() is not main_thread() or signal.getsignal(number) is not usual:
        return lambda: None
    signal.signal(number, handler)

    def restore() -> None:
        if signal.getsignal(number) is handler:
            signal.signal(number, usual)

    return restore
