"""The line that shows the progress of a run while it waits for answers.

On a terminal it is below the line that pytest is writing, and gone before pytest goes
on. In a log it is a line of its own every half minute. A thread draws it, so a lock
guards the file of pytest's terminal writer.
"""

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Final, TextIO

import pytest

from ..reports.terminal.live import progress_line
from .spending import Spending

_DRAW_SECONDS: Final = 0.25
_LOG_SECONDS: Final = 30.0
_MAX_LOG_WIDTH: Final = 200

# Add a line below (index, cursor up), save the cursor, go down and clear; then back.
_BELOW: Final = "\x1bD\x1b[1A\x1b7\x1b[1B\r\x1b[2K"
_BACK: Final = "\x1b8"


class GuardedFile:
    """A writer's file, with a line below that is cleared before
    anything else is written.
    """

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.lock = threading.RLock()
        self.drawn = False
        self._at_line_start = True

    def write(self, text: str) -> int:
        with self.lock:
            self.wipe()
            if text:
                self._at_line_start = text.endswith("\n")
            return self.file.write(text)

    def draw(self, line: str) -> None:
        with self.lock:
            self.file.write(f"{_BELOW}{line}{_BACK}")
            self.file.flush()
            self.drawn = True

    def wipe(self) -> None:
        with self.lock:
            if self.drawn:
                self.file.write(f"{_BELOW}{_BACK}")
                self.file.flush()
                self.drawn = False

    def log(self, line: str) -> None:
        """Write a line of its own, even if that breaks one that has begun."""
        with self.lock:
            if not self._at_line_start:
                self.write("\n")
            self.write(f"{line}\n")
            self.file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


class ProgressLine:
    """Shows the progress of a run while something waits, until ``close``."""

    def __init__(self, config: pytest.Config, spending: Spending) -> None:
        self._writer = config.get_terminal_writer()
        self._file = GuardedFile(self._writer._file)
        self._writer._file = self._file
        capture = config.pluginmanager.getplugin("capturemanager")
        self._uncaptured = (
            capture.global_and_fixture_disabled if capture else nullcontext
        )
        self._spending = spending
        self._in_place = can_draw(self._file.file, os.environ)
        self._waiting = False
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._work, name="upskill-progress", daemon=True
        )
        self._thread.start()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Meanwhile, only pytest's own writer writes to the terminal."""
        # Or the line would be captured as the output of a test
        with self._uncaptured():
            with self._file.lock:
                self._waiting = True
            try:
                yield
            finally:
                with self._file.lock:
                    self._waiting = False
                    self._file.wipe()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        self._file.wipe()
        self._writer._file = self._file.file

    def _work(self) -> None:
        seconds = _DRAW_SECONDS if self._in_place else _LOG_SECONDS
        while not self._closing.wait(seconds):
            progress = self._spending.progress()
            with self._file.lock:
                if not self._waiting or progress.done == progress.all:
                    self._file.wipe()
                elif self._in_place:
                    self._file.draw(progress_line(progress, self._writer.fullwidth - 1))
                else:
                    self._file.log(progress_line(progress, _MAX_LOG_WIDTH))


def can_draw(file: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether this is a terminal with cursor movement, and not a CI log."""
    if not file.isatty() or environ.get("TERM") == "dumb" or environ.get("CI"):
        return False
    return sys.platform != "win32" or bool(environ.get("WT_SESSION"))
