"""What pytest shows of single tests of skills: numbers, colours, and each error
once.
"""

from collections.abc import Generator, Sequence
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
from .display import screen_of
from .ledger import Ledger
from .run import PLANNED, Run

_ERRORS: Final = "error"  # pytest's names for them
_FAILURES: Final = "failed"
_PAINTED: Final = (_FAILURES, _ERRORS, "xfailed")
_MAX_IN_FULL: Final = {0: 3, 1: 10}  # by verbosity; -vv shows all
_MAX_SKILLS_IN_FULL: Final = 3
_MAX_FILES: Final = 20
_MAX_NAMED: Final = 10  # in pytest's short summary

Status = tuple[str, str, str | tuple[str, dict[str, bool]]]


class ItemLines:
    """Lines of single tests: with -v, the numbers of a test are added to its line."""

    def __init__(self, run: Run, ledger: Ledger) -> None:
        self._config = run.config
        self._against = run.settings.against
        self._ledger = ledger
        verbosity = run.config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES)
        self._is_shown = verbosity > 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Have pytest show no names of files, as with -q, if many skills are all that
        runs.
        """
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        files = {item.parent for item in session.items}
        are_many = len(files) > _MAX_FILES and self._config.get_verbosity() == 0
        if (
            reporter
            and are_many
            and all(PLANNED in item.stash for item in session.items)
        ):
            reporter.showfspath = False

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self, report: Any) -> Generator[None, Status, Status]:
        """Keep the status word first: people and programs look for it there."""
        category, letter, word = yield
        is_call = getattr(report, "when", None) == "call"
        records = self._ledger.records_of(report.nodeid) if is_call else []
        if not self._is_shown or not records or not word:
            return category, letter, word

        marks = screen_of(self._config).marks
        numbers = item_numbers(records, marks, self._against)
        if isinstance(word, tuple):
            text, markup = word
            return category, letter, (self._join(text, numbers, report), markup)
        return category, letter, self._join(word, numbers, report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """The short summary uses the same words, and has no room for numbers."""
        self._is_shown = False

    def _join(self, word: str, numbers: str, report: Any) -> str:
        """On a narrow terminal, the numbers get a line of their own.

        Not in a log, where lines may be long, nor under xdist,
        where the test's name comes last.
        """
        line = f"{word} {numbers}"
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or not reporter.isatty or hasattr(report, "node"):
            return line

        writer = self._config.get_terminal_writer()
        width = writer.width_of_current_line + text_width(f"{line} [100%]")
        return line if width < writer.fullwidth else f"{word}\n    {numbers}"


class FittedText:
    """What pytest shows of a failure: in lines that fit,
    painted where there are colours.
    """

    def __init__(self, plain: Any, look: TerminalLook) -> None:
        self.reprcrash = plain.reprcrash
        self._text = str(plain)
        self._look = look

    def __str__(self) -> str:
        return self._text

    def toterminal(self, writer: Any) -> None:
        look = self._look
        paint = writer.markup if writer.hasmarkup else unpainted
        lines = _fit(self._text, look)
        headlines = len(_fit(self._text.partition("\n")[0], look))
        for line in painted_failure(lines, look.marks, paint, headlines):
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

    Pytest writes what its reporter has in ``stats``: while it writes its long sections
    and its short summary, that is less. Only what the terminal shows is changed, after
    all other plugins got the reports: JUnit, the cache of --lf and IDEs have the whole
    message for each test.
    """

    def __init__(self, run: Run, ledger: Ledger) -> None:
        self._config = run.config
        self._ledger = ledger
        self._named: dict[str, list[Any]] = {}  # in pytest's short summary
        self._hidden = 0  # failures that are not shown in full

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
            shown[_FAILURES] = sorted(shown[_FAILURES], key=self._find_lift)

        self._named = shown
        unnamed = 0
        if verbosity < 2:
            in_full = _MAX_IN_FULL.get(verbosity, 0)
            if len(self._ledger.skills) > _MAX_SKILLS_IN_FULL and verbosity < 1:
                in_full = 0
            self._named = {kind: self._cut(shown[kind], _MAX_NAMED) for kind in shown}
            for kind, reports in shown.items():
                stats[kind] = self._cut(reports, in_full)
                unnamed += len(reports) - len(self._named[kind])
            failures = shown.get(_FAILURES, [])
            self._hidden = len(failures) - len(stats.get(_FAILURES, []))
        try:
            return (yield)
        finally:
            stats |= whole
            if unnamed:
                terminalreporter.write_line(f"and {unnamed:,} more")

    # After the long sections, before what other plugins and the short summary write
    @pytest.hookimpl(tryfirst=True, specname="pytest_terminal_summary")
    def pytest_upskill_short_summary(self, terminalreporter: Any) -> None:
        style = self._config.getoption("tbstyle", None)
        has_sections = terminalreporter.verbosity >= 0 and style not in ("no", "line")
        if self._hidden and has_sections:
            failures = counted(self._hidden, "more failure")
            terminalreporter.write_line(f"{failures} in full: -vv")
        terminalreporter.stats |= self._named

    def _find_lift(self, report: Any) -> float:
        """How much better a test did with the skill than without it."""
        records = self._ledger.records_of(report.nodeid)
        rates = []
        for arm in (SKILL, BASELINE):
            passed = [each.outcome == "passed" for each in records if each.arm == arm]
            if not passed:
                return 0.0
            rates.append(fmean(passed))

        return rates[0] - rates[1]

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
                _show_causes(report, causes[report.nodeid], look)
                chosen.append(report)
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


def _show_causes(report: Any, causes: Sequence[Cause], look: TerminalLook) -> None:
    """Make causes the text of a report, and say how many tests have them."""
    texts = []
    for cause in causes:
        number = len(cause.tests)
        prefix = f"{counted(number, 'test')}: " if number > 1 else ""
        texts.append(prefix + harmless(cause.text))

    vars(report).pop("node", None)  # of xdist: others of these tests ran elsewhere
    others = max(len(cause.tests) for cause in causes) - 1
    if others:
        file, line, name = report.location
        report.location = (file, line, f"{name} and {counted(others, 'more test')}")
    report.longrepr = "\n".join(_fit("\n".join(texts), look))
