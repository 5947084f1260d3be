"""What pytest shows of single tests of skills: numbers, colours, and each error once."""

from collections.abc import Callable, Generator, Sequence
from copy import copy
from typing import Any, Final

import pytest

from .._util.texts import counted, harmless
from ..reports.terminal.failure import painted_failure
from ..reports.terminal.layout import Marks, text_width
from ..reports.terminal.live import item_numbers
from ..results.causes import Cause, causes_of
from ..trials.records import Record
from .display import screen_of
from .items import ItemOfFile
from .ledger import REFERENCE

_PERCENT: Final = len(" [100%]")
_INDENT: Final = "    "
_ERRORS: Final = "error"  # pytest's names for them
_FAILURES: Final = "failed"
_MOST_FILES: Final = 20  # beyond that, progress is dots alone
_MOST_BLOCKS: Final = 8  # without -v: failures that are shown, and those that are listed
_MOST_NAMED: Final = 40

Status = tuple[str, str, str | tuple[str, dict[str, bool]]]


class ItemLines:
    """With -v, adds the numbers of a test to its line."""

    def __init__(
        self,
        config: pytest.Config,
        against: str | None,
        records_of: Callable[[str], Sequence[Record]],
    ) -> None:
        self._config = config
        self._against = against
        self._records_of = records_of
        self._shown = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) > 0

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self, report: Any) -> Generator[None, Status, Status]:
        """Keep the status word first: people and programs look for it there."""
        category, letter, word = yield
        numbers = self._numbers(report) if self._shown else None
        if not numbers or not word:
            return category, letter, word
        if isinstance(word, tuple):
            return category, letter, (self._joined(word[0], numbers, report), word[1])
        return category, letter, self._joined(word, numbers, report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """The short summary uses the same words, and has no room for numbers."""
        self._shown = False

    def _numbers(self, report: Any) -> str | None:
        if getattr(report, "when", None) != "call" or not _is_of_skill(report):
            return None
        records = self._records_of(report.nodeid)
        return item_numbers(records, screen_of(self._config).marks, self._against)

    def _joined(self, word: str, numbers: str, report: Any) -> str:
        """On a narrow terminal, the numbers get a line of their own.

        Not in a log, where lines may be long, nor under xdist, where the test's name comes last.
        """
        line = f"{word} {numbers}"
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or not reporter.isatty or hasattr(report, "node"):
            return line
        writer = self._config.get_terminal_writer()
        fits = writer.width_of_current_line + text_width(line) + _PERCENT < writer.fullwidth
        return line if fits else f"{word}\n{_INDENT}{numbers}"


def only_dots(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Have pytest show no names of files, as with -q, if many skills are all that runs."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    files = {item.parent for item in items}
    of_skills = all(isinstance(item, ItemOfFile) for item in items)
    if reporter and of_skills and len(files) > _MOST_FILES and config.get_verbosity() == 0:
        reporter.showfspath = False


def paint_failures(config: pytest.Config) -> None:
    """Give the texts of failed tests of skills their colours, where they are shown."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    for kind in ("failed", "error", "xfailed") if reporter else ():
        for report in reporter.stats.get(kind, ()):
            if _is_of_skill(report) and hasattr(report.longrepr, "reprcrash"):
                report.longrepr = PaintedText(report.longrepr, screen_of(config).marks)


class PaintedText:
    """What pytest shows of a failure, painted on a terminal that takes colours."""

    def __init__(self, plain: Any, marks: Marks) -> None:
        self._plain = plain
        self._marks = marks

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._plain, name)

    def __str__(self) -> str:
        return str(self._plain)

    def toterminal(self, writer: Any) -> None:
        if not writer.hasmarkup:
            self._plain.toterminal(writer)
            return
        for line in painted_failure(str(self._plain), self._marks, writer.markup):
            writer.line(line)


class BriefSections:
    """Shows every cause once in pytest's sections of errors, and the first of many failures.

    Only what the terminal shows is changed, and only after all other plugins got the reports:
    JUnit, the cache of --lf and IDEs have the whole message for each test.
    """

    def __init__(
        self, config: pytest.Config, records_of: Callable[[str], Sequence[Record]]
    ) -> None:
        self._config = config
        self._records_of = records_of
        self._short: dict[str, list[Any]] = {}

    def register(self, manager: pytest.PytestPluginManager) -> None:
        manager.register(self, "upskill-brief-sections")
        manager.register(_Between(self._before_the_short_summary), "upskill-brief-short")

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest's own
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None]:
        stats = terminalreporter.stats
        whole = {kind: stats[kind] for kind in (_FAILURES, _ERRORS) if stats.get(kind)}
        long, self._short = dict(whole), dict(whole)
        if reports := whole.get(_ERRORS):
            long[_ERRORS], self._short[_ERRORS] = self._by_cause(reports)
        hidden = named = 0
        if self._config.get_verbosity() < 1:
            hidden = _cut(long, _MOST_BLOCKS)
            named = _cut(self._short, _MOST_NAMED)
        stats |= long
        try:
            return (yield)
        finally:
            stats |= whole
            if hidden:
                listed = f", {named:,} of them not listed" if named else ""
                text = f"{counted(hidden, 'more failure')} not shown{listed}: -v shows all"
                terminalreporter.write_line(text)

    def _before_the_short_summary(self, stats: dict[str, list[Any]]) -> None:
        stats |= self._short

    def _by_cause(self, reports: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The reports of the section of errors, and those of the short summary."""
        of_setup = [report for report in reports if getattr(report, "when", None) == "setup"]
        by_test: dict[str, list[Cause]] = {}
        for cause in causes_of(
            (report.nodeid, record)
            for report in of_setup
            for record in self._records_of(report.nodeid)
        ):
            for test in cause.tests:
                by_test.setdefault(test, []).append(cause)
        names = {report.nodeid: report.head_line or report.nodeid for report in of_setup}
        long, short = list[Any](), list[Any]()
        for report in reports:
            causes = by_test.get(report.nodeid, [])
            if all(len(cause.tests) == 1 for cause in causes):
                long.append(report)
                short.append(_in_short(report, harmless(causes[0].text)) if causes else report)
                continue
            new = [cause for cause in causes if next(iter(cause.tests)) == report.nodeid]
            if new or report.sections:
                long.append(_as_first(report, new, names))
            short.append(_in_short(report, _reference(causes, new, names)))
        return long, short


def _cut(reports: dict[str, list[Any]], most: int) -> int:
    """Leave the first reports on tests of skills, and all others; how many are gone."""
    hidden = 0
    for kind, of_kind in reports.items():
        of_skills = [report for report in of_kind if _is_of_skill(report)]
        cut = {id(report) for report in of_skills[most:]}
        reports[kind] = [report for report in of_kind if id(report) not in cut]
        hidden += len(cut)
    return hidden


def _is_of_skill(report: Any) -> bool:
    return REFERENCE in dict(getattr(report, "user_properties", ()))


class _Between:
    """Runs when pytest has written the long sections, before it writes the short summary."""

    def __init__(self, begin: Callable[[dict[str, list[Any]]], None]) -> None:
        self._begin = begin

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        self._begin(terminalreporter.stats)


def _as_first(report: Any, new: Sequence[Cause], names: dict[str, str]) -> Any:
    """The report with the causes that no earlier report has."""
    first = copy(report)
    vars(first).pop("node", None)  # of xdist: others of these tests ran elsewhere
    first.longrepr = "\n".join(harmless(cause.text) for cause in new)
    most = max((len(cause.tests) for cause in new), default=1)
    if most > 1:
        file, line, _ = report.location
        other_tests = counted(most - 1, "more test")
        first.location = (file, line, f"{names[report.nodeid]} and {other_tests}")
    return first


def _reference(causes: Sequence[Cause], new: Sequence[Cause], names: dict[str, str]) -> str:
    cause = max(new or causes, key=lambda cause: len(cause.tests))
    if new:
        return f"{counted(len(cause.tests), 'test')}: {harmless(cause.text)}"
    return f"same as {names[next(iter(cause.tests))]}"


def _in_short(report: Any, text: str) -> Any:
    """The report with this text in the short summary."""
    if not hasattr(report.longrepr, "reprcrash"):
        return report
    short = copy(report)
    short.longrepr = copy(report.longrepr)
    short.longrepr.reprcrash = copy(report.longrepr.reprcrash)
    short.longrepr.reprcrash.message = text.split("\n")[0]
    return short
