"""The numbers of a test on its line, with -v."""

from collections.abc import Generator
from typing import Any, Final

import pytest

from ..reports.terminal.layout import width_of
from ..reports.terminal.live import item_numbers
from ..trials.records import load_records
from .items import RECORDS_PROPERTY
from .screen import screen_of

_PERCENT: Final = len(" [100%]")
_INDENT: Final = "    "

Status = tuple[str, str, str | tuple[str, dict[str, bool]]]


class ItemLines:
    """A plugin of the process that has the terminal."""

    def __init__(self, config: pytest.Config, against: str | None) -> None:
        self._config = config
        self._against = against
        self._shown = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) > 0

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self, report: Any) -> Generator[None, Status, Status]:
        """The word stays first, whoever chose it, so that people and programs find it."""
        category, letter, word = yield
        numbers = self._numbers(report) if self._shown else None
        if not numbers or not word:
            return category, letter, word
        if isinstance(word, tuple):
            return category, letter, (self._joined(word[0], numbers, report), word[1])
        return category, letter, self._joined(word, numbers, report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """The short summary asks for the words once more, and has no room for numbers."""
        self._shown = False

    def _numbers(self, report: Any) -> str | None:
        if getattr(report, "when", None) != "call":
            return None
        dumped = dict(report.user_properties).get(RECORDS_PROPERTY)
        if dumped is None:
            return None
        records, marks = load_records(str(dumped)), screen_of(self._config).marks
        return item_numbers(records, marks, self._against)

    def _joined(self, word: str, numbers: str, report: Any) -> str:
        """On a terminal too narrow for both, the numbers get a line of their own.

        Not in a log, whose lines have no end; nor under xdist, where the test's name comes last.
        """
        line = f"{word} {numbers}"
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or not reporter.isatty or hasattr(report, "node"):
            return line
        writer = self._config.get_terminal_writer()
        fits = writer.width_of_current_line + width_of(line) + _PERCENT < writer.fullwidth
        return line if fits else f"{word}\n{_INDENT}{numbers}"
