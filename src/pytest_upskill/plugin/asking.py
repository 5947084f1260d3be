"""Where the questions of a process go: to its own engine, or over a link to the controller's.

The controller of an xdist run has an engine and the server of the link, a worker has a client of
that link, and a process without xdist has just an engine.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Final

import pytest

from ..engine import Engine, LinkClient, LinkServer
from ..engine.batches import Waiting
from ..engine.lane import STOPPED
from ..errors import UpskillError
from ..trials.answer import NoAnswer, Reply
from ..trials.plan import Plan
from ..trials.trial import Question
from .spending import Spending
from .status_line import ProgressLine

_LINK: Final = "upskill_link"
_NO_ENGINE: Final = "not asked: this xdist worker is not connected to the engine"


class Asking:
    """How this process asks questions."""

    def __init__(
        self, config: pytest.Config, engine: Engine | None, on_plan: Callable[[Plan], None]
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

    def step(self) -> Waiting | None:
        """Ask what needs no waiting for a batch; returns the batches to wait for."""
        asker = self._client or self.engine
        try:
            return asker.step() if asker and not self._refusal else None
        except UpskillError as error:
            self.refuse(f"not asked: {error}")
            return None

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
