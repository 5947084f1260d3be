"""What pytest shows of single tests of skills: numbers, colours, and each error
once.
"""

from collections.abc import Callable, Generator, Sequence
from copy import copy
from statistics import fmean
from typing import Any, Final

import pytest

from .._util.texts import counted, harmless
from ..errors import without_commands
from ..reports.terminal.failure import painted_failure
from ..reports.terminal.layout import TerminalLook, text_width, unpainted, wrap_all
from ..reports.terminal.live import item_numbers
from ..results.causes import Cause, find_causes
from ..trials.arm import BASELINE, SKILL
from ..trials.records import Record
from .display import screen_of
from .items import ItemOfFile
from .ledger import Ledger

_PERCENT: Final = len(" [100%]")
_INDENT: Final = "    "
_ERRORS: Final = "error"  # pytest's names for them
_FAILURES: Final = "failed"
_MOST_FILES: Final = 20  # beyond that, progress is dots alone
_PAINTED: Final = (_FAILURES, _ERRORS, "xfailed")
_MAX_IN_FULL: Final = {0: 3, 1: 10}  # by verbosity; -vv shows all
_MANY_SKILLS: Final = 3
_MAX_NAMED: Final = 10  # in pytest's short summary

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
        text = str(self._plain)
        look = self._look
        paint = writer.markup if writer.hasmarkup else unpainted
        headlines = len(_fit(text.partition("\n")[0], look))
        for line in painted_failure(_fit(text, look), look.marks, paint, headlines):
            writer.line(line)


def _is_text(longrepr: Any) -> bool:
    """Not the traceback of a test in Python, which pytest shows best."""
    return getattr(getattr(longrepr, "reprtraceback", None), "style", "") == "value"


def _fit(text: str, look: TerminalLook) -> list[str]:
    """With -vv lines stay whole, so that they can be copied."""
    lines = text.split("\n")
    if look.verbosity > 1:
        return lines

    return [without_commands(line) for line in wrap_all(lines, look.width)]


class BriefSections:
    """Shows every cause of errors once, a few failures in full and some more by name,
    the worst first.

    Only what the terminal shows is changed, and only after all other plugins got the
    reports: JUnit, the cache of --lf and IDEs have the whole message for each test.
    """

    def __init__(self, config: pytest.Config, ledger: Ledger) -> None:
        self._config = config
        self._ledger = ledger
        self._named: dict[str, list[Any]] = {}  # in pytest's short summary
        self._hidden = 0  # failures that are not shown in full

    def register(self, manager: pytest.PytestPluginManager) -> None:
        manager.register(self, "upskill-brief-sections")
        manager.register(_Between(self._begin_short_summary), "upskill-brief-short")

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest's own
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None]:
        stats = terminalreporter.stats
        screen = screen_of(self._config)
        verbosity = self._config.get_verbosity()
        look = TerminalLook(screen.width, screen.marks, verbosity=verbosity)
        for kind in _PAINTED:
            for report in stats.get(kind, ()):
                if self._is_of_skill(report) and _is_text(report.longrepr):
                    report.longrepr = FittedText(report.longrepr, look)

        whole = {kind: stats[kind] for kind in (_FAILURES, _ERRORS) if kind in stats}
        shown = dict(whole)
        if _ERRORS in shown:
            shown[_ERRORS] = self._show_causes_once(shown[_ERRORS], look)
        if _FAILURES in shown:
            shown[_FAILURES] = sorted(shown[_FAILURES], key=self._lift_of)

        self._named = shown
        unnamed = 0
        if verbosity < 2:
            most = _MAX_IN_FULL.get(verbosity, 0)
            if len(self._ledger.skills) > _MANY_SKILLS and verbosity < 1:
                most = 0
            stats |= {kind: self._cut(shown[kind], most) for kind in shown}
            self._named = {kind: self._cut(shown[kind], _MAX_NAMED) for kind in shown}
            failed = shown.get(_FAILURES, [])
            self._hidden = len(failed) - len(stats.get(_FAILURES, []))
            unnamed = sum(len(shown[kind]) - len(self._named[kind]) for kind in shown)
        try:
            return (yield)
        finally:
            stats |= whole
            if unnamed:
                terminalreporter.write_line(f"and {unnamed:,} more")

    def _begin_short_summary(self, reporter: Any) -> None:
        style = self._config.getoption("tbstyle", None)
        if self._hidden and reporter.verbosity >= 0 and style not in ("no", "line"):
            failures = counted(self._hidden, "more failure")
            reporter.write_line(f"{failures} in full: -vv")
        reporter.stats |= self._named

    def _lift_of(self, report: Any) -> float:
        """How much better a test did with the skill than without it."""
        passed: dict[str, list[bool]] = {SKILL: [], BASELINE: []}
        for record in self._ledger.records_of(report.nodeid):
            if record.arm in passed:
                passed[record.arm].append(record.outcome == "passed")
        if not passed[SKILL] or not passed[BASELINE]:
            return 0.0

        return fmean(passed[SKILL]) - fmean(passed[BASELINE])

    def _show_causes_once(
        self, reports: Sequence[Any], look: TerminalLook
    ) -> list[Any]:
        """The first report of each cause, which says how many tests have it."""
        records = []
        for report in reports:
            if getattr(report, "when", None) == "setup":
                for record in self._ledger.records_of(report.nodeid):
                    records.append((report.nodeid, record))

        causes: dict[str, list[Cause]] = {}  # by the first test that has them
        known = set[str]()
        for cause in find_causes(records):
            causes.setdefault(next(iter(cause.tests)), []).append(cause)
            known.update(cause.tests)

        chosen = []
        for report in reports:
            if report.nodeid in causes:
                chosen.append(_with_causes(report, causes[report.nodeid], look))
            elif report.nodeid not in known or report.sections:
                chosen.append(report)

        return chosen

    def _cut(self, reports: Sequence[Any], most: int) -> list[Any]:
        """The first reports on tests of skills, and all others."""
        kept = []
        for report in reports:
            if self._is_of_skill(report):
                most -= 1
                if most < 0:
                    continue
            kept.append(report)

        return kept

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


def _with_causes(report: Any, causes: Sequence[Cause], look: TerminalLook) -> Any:
    """The report with causes as its text, and how many tests have them."""
    texts = []
    for cause in causes:
        number = len(cause.tests)
        prefix = f"{counted(number, 'test')}: " if number > 1 else ""
        texts.append(prefix + harmless(cause.text))

    first = copy(report)
    vars(first).pop("node", None)  # of xdist: others of these tests ran elsewhere
    others = max(len(cause.tests) for cause in causes) - 1
    if others:
        file, line, name = report.location
        first.location = (file, line, f"{name} and {counted(others, 'more test')}")
    first.longrepr = "\n".join(_fit("\n".join(texts), look))
    return first
