"""Asking: what a run needs before its first call, and where its questions go.

They go to the engine of this process, or over a link to that of xdist's controller.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

import pytest

from .._util.interrupts import stop_on_second_interrupt
from ..errors import InputError, UpskillError
from ..trials.answer import NoAnswer, Reply
from ..trials.plan import Plan
from ..trials.trial import Question
from .announcing import announce
from .display import write_lines
from .hooks import call
from .opening import is_ready, open_engine, require_all
from .planning import make_plan
from .pytest_options import message_of
from .run import Run
from .skill_args import asks_for_skills

if TYPE_CHECKING:
    from ..engine import Engine, LinkClient, LinkServer
    from .progress import ProgressLine

_LINK: Final = "upskill_link"
_NO_ENGINE: Final = "not asked: this xdist worker is not connected to the engine"
_COLLECTION_FAILED: Final = (
    "not asked: collection failed. Fix it, or add --continue-on-collection-errors"
)


class Asking:
    """How this process asks questions.

    xdist's controller has an engine and the server of the link, a worker has a client
    of that link, and a process without xdist has just an engine.
    """

    def __init__(self, run: Run) -> None:
        self.engine: Engine | None = None
        self._run = run
        # Tests that nobody asked for are skipped without a key, but not in CI. Later,
        # the arguments of pytest are others.
        self._may_skip = not os.environ.get("CI") and not asks_for_skills(run.config)
        self._server: LinkServer | None = None
        self._client: LinkClient | None = None
        self._progress: ProgressLine | None = None
        self._refusal = ""
        self._announced: list[str] = []  # lines that are not written yet

    # Before the first call.

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self) -> Generator[None]:
        run = self._run
        if not run.is_worker:
            try:
                if is_ready(run, may_skip=self._may_skip):
                    open_engine(run)
            except InputError as error:
                message = message_of(error, run.config)
                raise pytest.UsageError(message) from None
        if self.engine and run.has_workers:
            from ..engine import LinkServer

            self._server = LinkServer(self.engine, self._begin)
            # Also if the session never starts.
            run.config.add_cleanup(self._server.close)
        return (yield)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        """Send the address of the link to a worker that is about to start."""
        if self._server:
            node.workerinput[_LINK] = self._server.address  # type: ignore[attr-defined]

    # From the plan to the last answer.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(
        self, session: pytest.Session
    ) -> Generator[None, object, object]:
        run = self._run
        goes_on = run.config.option.continue_on_collection_errors
        with self._show_progress():
            if session.testsfailed and not goes_on:
                # pytest stops here, but xdist runs what was collected.
                self._refusal = _COLLECTION_FAILED
            elif run.asks and not run.has_workers:
                # xdist's controller collects nothing: its workers have the plan.
                self.connect()
                plan = make_plan(run, session.items)
                if plan.nodeids or plan.untested or plan.unmatched:
                    self._begin(plan)
            return (yield)

    def connect(self) -> None:
        """In a worker, connect to the controller's engine."""
        if address := self._run.workerinput.get(_LINK):
            from ..engine import LinkClient

            with self._refuse_on_error():
                self._client = LinkClient(address)

    def _begin(self, plan: Plan) -> None:
        """Start on a plan; in xdist's controller on a thread of the link."""
        run = self._run
        if run.ledger:
            run.ledger.add_plan(plan)
            if run.has_workers and run.config.get_verbosity() >= -1:
                self._announced += announce(run, plan)
            try:
                hook = run.config.hook.pytest_upskill_planned
                call(hook, config=run.config, plan=plan)
                if plan.tests and not run.selected.sources:
                    # Those of tests in Python.
                    require_all(run)
            except InputError as error:
                self.stop(f"not asked: {message_of(error, run.config)}")
        self.start(plan)

    def start(self, plan: Plan) -> None:
        asker = self._client or self.engine
        if asker:
            with self._refuse_on_error():
                asker.start(plan)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Write lines from the main thread, but not into a row of dots."""
        config = self._run.config
        reporter = config.pluginmanager.hasplugin("terminalreporter")
        if not self._announced or not reporter:
            return
        if not config.get_terminal_writer().width_of_current_line:
            write_lines(config, self._announced)
            self._announced = []

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        asker = self._client or self.engine
        if asker and not self._refusal:
            waits = self.engine and not self.engine.has_settled(questions)
            progress = self._progress if waits else None
            shown = progress.waiting() if progress else nullcontext()
            with shown, self._refuse_on_error():
                return asker.ask(questions)
        return [NoAnswer(self._refusal or _NO_ENGINE)] * len(questions)

    @contextmanager
    def _refuse_on_error(self) -> Iterator[None]:
        """Ask nothing more after an error, as when the run has ended."""
        try:
            yield
        except UpskillError as error:
            self._refusal = f"not asked: {error}"

    @contextmanager
    def _show_progress(self) -> Iterator[None]:
        run = self._run
        reporter = run.config.pluginmanager.hasplugin("terminalreporter")
        if not run.spending or not reporter:
            yield
            return

        from .progress import ProgressLine

        self._progress = ProgressLine(run.config, run.spending)
        try:
            # xdist's controller does nothing but wait; without xdist, `ask` waits.
            with self._progress.waiting() if self._server else nullcontext():
                yield
        finally:
            self._progress.close()

    # The end.

    def stop(self, *reason: str) -> None:
        if self.engine:
            self.engine.stop(*reason)

    # Before pytest describes the interrupt, which takes time.
    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        """Ctrl-C, pytest.exit, or a stop by pytest or a plugin."""
        self._expect_interrupts()
        self._run.stopped = str(excinfo.value) or excinfo.typename
        self.stop()

    # Before xdist ends its workers, which may wait for a reply.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._expect_interrupts()
        for part in (self._client, self.engine, self._server):
            if part:
                part.close()

    def _expect_interrupts(self) -> None:
        ledger = self._run.ledger
        if ledger and ledger.concerns_skills:
            self._run.config.add_cleanup(stop_on_second_interrupt())
