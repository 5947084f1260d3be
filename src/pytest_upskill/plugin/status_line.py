"""The line that shows the progress of a run while pytest waits for answers.

On a terminal it is below the line that pytest is writing, and gone before pytest goes on; in a
log it is a line of its own every half minute. A thread draws it, so a lock guards the file of
pytest's terminal writer.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Final, TextIO

import pytest

from ..engine import Engine
from ..models.prices import Price, cost
from ..reports.terminal.live import Progress, progress_line
from ..trials.answer import Answer

DRAW_EVERY: Final = 0.25
LOG_EVERY: Final = 30.0
_ENOUGH_TO_GUESS: Final = 3

# Make room for a line below (index, cursor up), save the cursor, go down and clear; then back.
_BELOW: Final = "\x1bD\x1b[1A\x1b7\x1b[1B\r\x1b[2K"
_BACK: Final = "\x1b8"


class Tally:
    """Adds up the replies of the engine, each once."""

    def __init__(self, engine: Engine, price_of: Callable[[str], Price | None]) -> None:
        self._engine = engine
        self._price_of = price_of
        self._started = time.monotonic()
        self._seen = self._reused = self._asked = self._tokens = 0
        self._cost: float | None = 0.0

    def progress(self) -> Progress:
        for model, reply in self._engine.settled(self._seen):
            self._seen += 1
            if not isinstance(reply, Answer):
                continue
            if reply.stored:
                self._reused += 1
                continue
            self._asked += 1
            self._tokens += (reply.usage.input or 0) + (reply.usage.output or 0)
            usd = cost(self._price_of(model), reply.usage)
            self._cost = None if usd is None or self._cost is None else self._cost + usd
        total = self._engine.questions
        left = None
        if self._asked >= _ENOUGH_TO_GUESS:
            elapsed = time.monotonic() - self._started
            left = elapsed / self._asked * (total - self._seen)
        return Progress(
            self._seen,
            total,
            self._engine.in_flight,
            self._reused,
            self._tokens,
            self._cost or None,  # not shown for local models
            left,
            self._engine.pausing,
            *self._engine.agents_at_work,
        )


class GuardedFile:
    """A writer's file, with a line below that is cleared before anything else is written."""

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
        with self.lock:
            self.file.write(line + "\n" if self._at_line_start else f"\n{line}\n")
            self.file.flush()
            self._at_line_start = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


class ProgressLine:
    """Shows the progress of a run until ``close``, but only while something waits."""

    def __init__(self, config: pytest.Config, tally: Tally, environ: Mapping[str, str]) -> None:
        self._writer = config.get_terminal_writer()
        self._file = GuardedFile(self._writer._file)
        self._writer._file = self._file
        capture = config.pluginmanager.getplugin("capturemanager")
        self._uncaptured = capture.global_and_fixture_disabled if capture else nullcontext
        self._tally = tally
        self._in_place = can_draw(self._file.file, environ)
        self._waiting = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="upskill-progress", daemon=True)
        self._thread.start()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A time in which only pytest's own writer writes to the terminal."""
        with self._uncaptured():  # or the line would be captured as the output of a test
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
        while not self._closing.wait(DRAW_EVERY if self._in_place else LOG_EVERY):
            progress = self._tally.progress()
            with self._file.lock:
                if not self._waiting or progress.done == progress.all:
                    self._file.wipe()
                elif self._in_place:
                    self._file.draw(progress_line(progress, self._writer.fullwidth - 1))
                else:
                    self._file.log(progress_line(progress, 200))


def can_draw(file: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether this is a terminal with cursor movement, and not a CI log."""
    if not file.isatty() or environ.get("TERM") == "dumb" or environ.get("CI"):
        return False
    return sys.platform != "win32" or bool(environ.get("WT_SESSION"))
