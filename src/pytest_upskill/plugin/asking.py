"""Where the questions of a process go, and the line that is shown
while it waits for answers.

They go to its own engine, or over a link to the controller's. The controller of an
xdist run has an engine and the server of the link, a worker has a client of that link,
and a process without xdist has just an engine.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Final, TextIO

import pytest

from ..engine import Engine, LinkClient, LinkServer
from ..engine.lane import STOPPED
from ..errors import UpskillError
from ..reports.terminal.live import progress_line
from ..trials.answer import NoAnswer, Reply
from ..trials.plan import Plan
from ..trials.trial import Question
from .planning import planned_of
from .spending import Spending

DRAW_EVERY: Final = 0.25
LOG_EVERY: Final = 30.0

# Add a line below (index, cursor up), save the cursor, go down and clear; then back.
_BELOW: Final = "\x1bD\x1b[1A\x1b7\x1b[1B\r\x1b[2K"
_BACK: Final = "\x1b8"
_LINK: Final = "upskill_link"
_NO_ENGINE: Final = "not asked: this xdist worker is not connected to the engine"


class Asking:
    """How this process asks questions."""

    def __init__(
        self,
        config: pytest.Config,
        engine: Engine | None,
        on_plan: Callable[[Plan], None],
    ) -> None:
        self.engine = engine
        self._config = config
        self._client: LinkClient | None = None
        self._progress: ProgressLine | None = None
        self._refusal: str | None = None
        controls = config.pluginmanager.hasplugin("dsession")
        self._link = LinkServer(engine, on_plan) if engine and controls else None

    def send_link(self, node: object) -> None:
        """Send the address of the link to a worker that is about to start."""
        if self._link:
            node.workerinput[_LINK] = self._link.address  # type: ignore[attr-defined]

    def connect(self) -> None:
        """In a worker, connect to the controller's engine."""
        if address := worker_link(self._config):
            try:
                self._client = LinkClient(address)
            except UpskillError as error:  # the run has ended
                self.refuse(f"not asked: {error}")

    def refuse(self, reason: str) -> None:
        """Ask nothing; give this reason in place of every answer."""
        self._refusal = reason

    def start(self, plan: Plan) -> None:
        asker = self._client or self.engine
        if asker:
            try:
                asker.start(plan)
            except UpskillError as error:
                self.refuse(f"not asked: {error}")

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        asker = self._client or self.engine
        if self._refusal or asker is None:
            return [NoAnswer(self._refusal or _NO_ENGINE)] * len(questions)
        waits = self.engine and not self.engine.has_settled(questions)
        with self._progress.waiting() if self._progress and waits else nullcontext():
            try:
                return asker.ask(questions)
            except UpskillError as error:
                self.refuse(f"not asked: {error}")
                return self.ask(questions)

    @contextmanager
    def progress_shown(self, spending: Spending | None) -> Iterator[None]:
        """Show the progress of the run, in the process that has the engine."""
        if not spending or not self._config.pluginmanager.hasplugin("terminalreporter"):
            yield
            return
        self._progress = ProgressLine(self._config, spending, os.environ)
        try:
            # xdist's controller does nothing but wait; without xdist, `ask` waits.
            with self._progress.waiting() if self._link else nullcontext():
                yield
        finally:
            self._progress.close()

    def stop(self, reason: str = STOPPED) -> None:
        if self.engine:
            self.engine.stop(reason)

    def close(self) -> None:
        if self._client:
            self._client.close()
        if self.engine:
            self.engine.close()
        if self._link:
            self._link.close()


def worker_link(config: pytest.Config) -> tuple[object, str] | None:
    """The address of the engine, in an xdist worker."""
    return getattr(config, "workerinput", {}).get(_LINK)


# The line that shows the progress of a run. On a terminal it is below the line that
# pytest is writing, and gone before pytest goes on. In a log it is a line of its
# own every half minute: there, pytest's row of dots is held back until it is whole,
# so that nothing breaks it. A thread draws it, so a lock guards the file of
# pytest's terminal writer.


class GuardedFile:
    """A writer's file, with a line below that is cleared before
    anything else is written.
    """

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.lock = threading.RLock()
        self.drawn = False
        self._holds = False
        self._held = ""
        self._at_line_start = True

    def write(self, text: str) -> int:
        with self.lock:
            self.wipe()
            self._held += text
            lines = self._held.rpartition("\n")
            ready = "".join(lines[:2]) if self._holds else self._held
            self._held = lines[2] if self._holds else ""
            if ready:
                self._at_line_start = ready.endswith("\n")
                self.file.write(ready)
            return len(text)

    def hold(self, *, holds: bool) -> None:
        """Whether to hold back a line until it is complete."""
        with self.lock:
            self._holds = holds
            if self._held and not holds:
                self.write("")

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
        """Write a line above what is held back, unless another line has begun."""
        with self.lock:
            if self._at_line_start:
                self.file.write(f"{line}\n")
                self.file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


class ProgressLine:
    """Shows the progress of a run while something waits, until ``close``."""

    def __init__(
        self, config: pytest.Config, spending: Spending, environ: Mapping[str, str]
    ) -> None:
        self._writer = config.get_terminal_writer()
        self._file = GuardedFile(self._writer._file)
        self._writer._file = self._file
        capture = config.pluginmanager.getplugin("capturemanager")
        self._uncaptured = (
            capture.global_and_fixture_disabled if capture else nullcontext
        )
        self._spending = spending
        self._in_place = can_draw(self._file.file, environ)
        self._waiting = False
        self._manager = config.pluginmanager
        # xdist's controller runs no tests, so none can end in the middle of a line.
        if not self._in_place:
            self._file.hold(holds=self._manager.hasplugin("dsession"))
            self._manager.register(self, "upskill-progress")
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

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Other tests may crash: the log must show which one had begun."""
        self._file.hold(holds=planned_of(item) is not None)

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        self._file.wipe()
        self._file.hold(holds=False)
        if self._manager.hasplugin("upskill-progress"):
            self._manager.unregister(self)
        self._writer._file = self._file.file

    def _work(self) -> None:
        while not self._closing.wait(DRAW_EVERY if self._in_place else LOG_EVERY):
            progress = self._spending.progress()
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
