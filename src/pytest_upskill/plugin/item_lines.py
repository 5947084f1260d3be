"""What pytest shows of single tests of skills: numbers, colours, and each error
once.
"""

import sys
from collections.abc import Callable, Generator, Sequence
from copy import copy
from typing import Any, Final, NamedTuple

import pytest

from .._util.texts import counted, harmless, one_line
from ..errors import without_commands
from ..reports.terminal.closing_lines import command_lines
from ..reports.terminal.failure import painted_failure
from ..reports.terminal.layout import (
    TerminalLook,
    clipped,
    text_width,
    unpainted,
    wrapped,
)
from ..reports.terminal.live import item_numbers
from ..results.accepted import case_result
from ..results.causes import Cause, causes_of
from ..results.outcomes import missed
from ..settings import Settings
from ..trials.records import Record
from .display import screen_of
from .items import ItemOfFile, link_to
from .ledger import Ledger
from .next_command import rerun_of

_PERCENT: Final = len(" [100%]")
_INDENT: Final = "    "
_ERRORS: Final = "error"  # pytest's names for them
_FAILURES: Final = "failed"
_MOST_FILES: Final = 20  # beyond that, progress is dots alone
_PAINTED: Final = (_FAILURES, _ERRORS, "xfailed")


class _Room(NamedTuple):
    """How many failures are shown in full, in brief,
    and named in pytest's short summary.
    """

    full: int
    brief: int
    named: int


_ROOM: Final = {  # by verbosity; -vv shows all in full
    -1: _Room(1, 10, 40),
    0: _Room(3, 20, 40),
    1: _Room(3, sys.maxsize, sys.maxsize),
}

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
        if getattr(report, "when", None) != "call":
            return None
        if not (records := self._records_of(report.nodeid)):
            return None
        return item_numbers(records, screen_of(self._config).marks, self._against)

    def _joined(self, word: str, numbers: str, report: Any) -> str:
        """On a narrow terminal, the numbers get a line of their own.

        Not in a log, where lines may be long, nor under xdist,
        where the test's name comes last.
        """
        line = f"{word} {numbers}"
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or not reporter.isatty or hasattr(report, "node"):
            return line
        writer = self._config.get_terminal_writer()
        fits = (
            writer.width_of_current_line + text_width(line) + _PERCENT
            < writer.fullwidth
        )
        return line if fits else f"{word}\n{_INDENT}{numbers}"


def only_dots(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Have pytest show no names of files, as with -q, if many skills are all that
    runs.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    files = {item.parent for item in items}
    of_skills = all(isinstance(item, ItemOfFile) for item in items)
    if (
        reporter
        and of_skills
        and len(files) > _MOST_FILES
        and config.get_verbosity() == 0
    ):
        reporter.showfspath = False


class FittedText:
    """What pytest shows of a failure: in lines that fit,
    painted where there are colours.
    """

    def __init__(self, plain: Any, look: TerminalLook) -> None:
        self._plain = plain
        self._look = look

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._plain, name)

    def __str__(self) -> str:
        return str(self._plain)

    def toterminal(self, writer: Any) -> None:
        text, look = str(self._plain), self._look
        paint = writer.markup if writer.hasmarkup else unpainted
        headlines = len(_fitted(text.partition("\n")[0], look))
        for line in painted_failure(_fitted(text, look), look.marks, paint, headlines):
            writer.line(line)


def _is_text(longrepr: Any) -> bool:
    """Not the traceback of a test in Python, which pytest shows best."""
    return getattr(getattr(longrepr, "reprtraceback", None), "style", "") == "value"


def _fitted(text: str, look: TerminalLook) -> list[str]:
    """With -vv lines stay whole, so that they can be copied."""
    lines = text.split("\n")
    if look.verbosity > 1:
        return lines
    parts = (part for line in lines for part in wrapped(line, look.width, rest="  "))
    return [*map(without_commands, parts)]


class BriefSections:
    """Shows every cause of errors once, and the first of many failures;
    the others in brief.

    Only what the terminal shows is changed, and only after all other plugins got the
    reports: JUnit, the cache of --lf and IDEs have the whole message for each test.
    """

    def __init__(
        self, config: pytest.Config, ledger: Ledger, settings: Settings
    ) -> None:
        self._config = config
        self._ledger = ledger
        self._settings = settings
        self._short: dict[str, list[Any]] = {}
        self._brief: list[Any] = []  # failures that are not shown in full

    def register(self, manager: pytest.PytestPluginManager) -> None:
        manager.register(self, "upskill-brief-sections")
        manager.register(
            _Between(self._before_the_short_summary), "upskill-brief-short"
        )

    @property
    def _look(self) -> TerminalLook:
        screen = screen_of(self._config)
        return TerminalLook(
            screen.width, screen.marks, verbosity=self._config.get_verbosity()
        )

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest's own
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None]:
        stats, look = terminalreporter.stats, self._look
        for report in (report for kind in _PAINTED for report in stats.get(kind, ())):
            if self._is_of_skill(report) and _is_text(report.longrepr):
                report.longrepr = FittedText(report.longrepr, look)
        whole = {kind: stats[kind] for kind in (_FAILURES, _ERRORS) if stats.get(kind)}
        long, self._short = dict(whole), dict(whole)
        if reports := whole.get(_ERRORS):
            long[_ERRORS], self._short[_ERRORS] = self._by_cause(reports)
        named = list[Any]()
        if look.verbosity < 2:
            room = _ROOM[max(-1, look.verbosity)]
            self._brief = self._cut(long, room.full)
            named = self._cut(self._short, room.named)
        stats |= long
        try:
            return (yield)
        finally:
            stats |= whole
            if named:
                terminalreporter.write_line(
                    f"{counted(len(named), 'more failure')} not listed"
                )

    def _before_the_short_summary(self, reporter: Any) -> None:
        if self._brief and self._config.getoption("tbstyle", None) not in (
            "no",
            "line",
        ):
            self._write_brief(reporter)
        reporter.stats |= self._short

    def _write_brief(self, reporter: Any) -> None:
        """At most two lines each, with a link if there is a page;
        then how to see one in full.
        """
        look, room = self._look, _ROOM[max(-1, self._look.verbosity)]
        reporter.write_sep("_", counted(len(self._brief), "more failure"))
        for report in self._brief[: room.brief]:
            for line in self._in_brief(report, look):
                reporter.write_line(without_commands(line))
        hidden = len(self._brief) - room.brief
        also = f"{counted(hidden, 'more failure')} not shown. " if hidden > 0 else ""
        words = rerun_of(self._config).words("NODEID")
        for line in command_lines(f"{also}In full: ", words, look.width):
            reporter.write_line(line)

    def _in_brief(self, report: Any, look: TerminalLook) -> list[str]:
        test, name = self._ledger.test(report.nodeid), report.head_line or report.nodeid
        records = self._ledger.records_of(report.nodeid)
        parts = [name, report.longreprtext.split("\n")[0]]
        if test and (reasons := missed(records)):
            result = case_result(records, test.digest)
            was = f" (was {test.expected.was})" if test.expected else ""
            counts = (
                f"{result.count}{was}" if result and (was or result.runs > 1) else ""
            )
            several = len(self._ledger.model_ids) > 1
            parts = [name if several else test.case, counts, "; ".join(reasons)]
        text = one_line(": ".join(filter(None, parts)), 500)
        link = link_to(test, self._settings) if test else ""
        if look.verbosity < 0:
            return clipped(text, look, 1)
        return (
            [*clipped(text, look, 1), f"  {link}"] if link else clipped(text, look, 2)
        )

    def _by_cause(self, reports: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The reports of the section of errors, and those of the short summary."""
        of_setup = [
            report for report in reports if getattr(report, "when", None) == "setup"
        ]
        by_test: dict[str, list[Cause]] = {}
        for cause in causes_of(
            (report.nodeid, record)
            for report in of_setup
            for record in self._ledger.records_of(report.nodeid)
        ):
            for test in cause.tests:
                by_test.setdefault(test, []).append(cause)
        names = {
            report.nodeid: report.head_line or report.nodeid for report in of_setup
        }
        long, short = list[Any](), list[Any]()
        for report in reports:
            causes = by_test.get(report.nodeid, [])
            if all(len(cause.tests) == 1 for cause in causes):
                long.append(report)
                short.append(
                    _in_short(report, harmless(causes[0].text)) if causes else report
                )
                continue
            new = [
                cause for cause in causes if next(iter(cause.tests)) == report.nodeid
            ]
            if new or report.sections:
                long.append(_as_first(report, new, names, self._look))
            short.append(_in_short(report, _reference(causes, new, names)))
        return long, short

    def _cut(self, reports: dict[str, list[Any]], most: int) -> list[Any]:
        """Leave the first reports on tests of skills, and all others;
        those that are gone.
        """
        hidden = list[Any]()
        for kind, of_kind in reports.items():
            of_skills = [report for report in of_kind if self._is_of_skill(report)]
            cut_off = {id(report) for report in of_skills[most:]}
            reports[kind] = [report for report in of_kind if id(report) not in cut_off]
            hidden += of_skills[most:]
        return hidden

    def _is_of_skill(self, report: Any) -> bool:
        return self._ledger.is_of_skill(getattr(report, "nodeid", ""))


class _Between:
    """Runs when pytest has written the long sections,
    before it writes the short summary.
    """

    def __init__(self, begin: Callable[[Any], None]) -> None:
        self._begin = begin

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        self._begin(terminalreporter)


def _as_first(
    report: Any, new: Sequence[Cause], names: dict[str, str], look: TerminalLook
) -> Any:
    """The report with the causes that no earlier report has."""
    first = copy(report)
    vars(first).pop("node", None)  # of xdist: others of these tests ran elsewhere
    text = "\n".join(harmless(cause.text) for cause in new)
    first.longrepr = "\n".join(_fitted(text, look))
    most = max((len(cause.tests) for cause in new), default=1)
    if most > 1:
        file, line, _ = report.location
        other_tests = counted(most - 1, "more test")
        first.location = (file, line, f"{names[report.nodeid]} and {other_tests}")
    return first


def _reference(
    causes: Sequence[Cause], new: Sequence[Cause], names: dict[str, str]
) -> str:
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
