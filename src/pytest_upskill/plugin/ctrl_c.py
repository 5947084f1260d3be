"""Ctrl-C while a run ends, which takes seconds if agents or workers have to end first."""

import os
import signal
from threading import current_thread, main_thread
from typing import Final

import pytest

_ENDING: Final = (
    b"\nupskill: the run is ending, which may take some seconds;"
    b" Ctrl-C again ends it at once, without its reports\n"
)


def end_in_peace(config: pytest.Config) -> None:
    """Answer the next Ctrl-C with a line: only one more ends the run before its reports."""
    usual = signal.default_int_handler
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not usual:
        return

    def restore() -> None:
        signal.signal(signal.SIGINT, usual)

    def tell(_number: int, _frame: object) -> None:
        restore()
        os.write(2, _ENDING)  # a stream may be in use just now

    signal.signal(signal.SIGINT, tell)
    config.add_cleanup(restore)
