"""Ending: the results of a run, its exit status and its last lines."""

from collections.abc import Generator
from typing import TYPE_CHECKING, Final

import pytest

from .._util.texts import harmless
from .display import write_lines
from .pytest_options import cli_value
from .run import Run
from .skill_args import task_hint

if TYPE_CHECKING:
    from .closing import Closing

_NO_SKILL: Final = (
    "upskill: no skill tested: add --skill PATH, or mark a test with"
    " @pytest.mark.skill(PATH)"
)


class Ending:
    """The hooks at the end of a run; slow imports are for the process that asks."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._closing: Closing | None = None
        self._not_tested = ""  # why tests of skills were skipped

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self) -> Generator[None]:
        run = self._run
        if run.ledger and run.spending:
            from .closing import Closing
            from .item_lines import BriefSections, ItemLines

            self._closing = Closing(run, run.ledger, run.spending)
            manager = run.config.pluginmanager
            manager.register(ItemLines(run, run.ledger), "upskill-item-lines")
            manager.register(BriefSections(run, run.ledger), "upskill-brief-sections")
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and self._run.skip_reason in str(report.longrepr):
            self._not_tested = self._run.skip_reason

    def pytest_internalerror(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        self._run.stopped = f"internal error: {excinfo.exconly()}"

    @pytest.hookimpl(tryfirst=True)  # before JUnit writes its file
    def pytest_sessionfinish(self) -> None:
        run = self._run
        if run.ledger and run.spending:
            from .finishing import finish

            finish(run, run.ledger, run.spending)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        run = self._run
        if self._closing and not run.is_quiet:
            self._closing.write_summary(terminalreporter)

        has_tested = not run.ledger or run.ledger.concerns_skills
        chosen = run.selected.sources or terminalreporter.stats.get("deselected")
        if has_tested or chosen or run.session.testsfailed:
            return
        if cli_value(run.config, "models"):
            write_lines(run.config, [task_hint(run.config) or _NO_SKILL])

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Write the last lines, also without a summary."""
        reporter = config.pluginmanager.getplugin("terminalreporter")
        if not reporter:
            return
        if self._closing:
            self._closing.write_last_lines(reporter)
            return

        for problem in self._run.problems:
            write_lines(config, [f"upskill: {harmless(problem)}"], red=True)
        if self._not_tested:
            reporter.write_line(f"! {self._not_tested}", yellow=True)
