"""pytest's sections of errors, with every cause told once.

Only what the terminal shows is changed, and only after all other plugins got the reports: JUnit,
the cache of --lf and IDEs have the whole message for each test.
"""

from collections.abc import Callable, Generator, Sequence
from copy import copy
from typing import Any

import pytest

from .._util.texts import counted, harmless
from ..results.causes import Cause, causes_of
from ..trials.records import Record

_ERRORS = "error"  # the name that pytest has for them


class SameErrors:
    """Swaps the reports of errors for others while pytest writes its sections."""

    def __init__(self, records_of: Callable[[str], Sequence[Record]]) -> None:
        self._records_of = records_of
        self._short: list[Any] = []

    def register(self, manager: pytest.PytestPluginManager) -> None:
        manager.register(self, "upskill-same-errors")
        manager.register(_Between(self._before_the_short_summary), "upskill-same-errors-short")

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest's own
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None]:
        stats = terminalreporter.stats
        if not (whole := stats.get(_ERRORS)):
            return (yield)
        stats[_ERRORS], self._short = self._told_once(whole)
        try:
            return (yield)
        finally:
            stats[_ERRORS] = whole

    def _before_the_short_summary(self, stats: dict[str, list[Any]]) -> None:
        if self._short:
            stats[_ERRORS] = self._short

    def _told_once(self, reports: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """What the section of errors has, and what the short summary has."""
        of_setup = [one for one in reports if getattr(one, "when", None) == "setup"]
        found = causes_of(
            (one.nodeid, record) for one in of_setup for record in self._records_of(one.nodeid)
        )
        by_test: dict[str, list[Cause]] = {}
        for cause in found:
            for test in cause.tests:
                by_test.setdefault(test, []).append(cause)
        names = {one.nodeid: one.head_line or one.nodeid for one in of_setup}
        whole, short = list[Any](), list[Any]()
        for report in reports:
            own = by_test.get(report.nodeid, [])
            if all(len(cause.tests) == 1 for cause in own):
                whole.append(report)
                short.append(report)
                continue
            new = [cause for cause in own if next(iter(cause.tests)) == report.nodeid]
            if new or report.sections:
                whole.append(_as_first(report, new, names))
            short.append(_in_short(report, _reference(own, new, names)))
        return whole, short


class _Between:
    """Runs when pytest has written the long sections, before it writes the short summary."""

    def __init__(self, begin: Callable[[dict[str, list[Any]]], None]) -> None:
        self._begin = begin

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        self._begin(terminalreporter.stats)


def _as_first(report: Any, new: Sequence[Cause], names: dict[str, str]) -> Any:
    """The report with the causes that it is the first to have."""
    told = copy(report)
    vars(told).pop("node", None)  # of xdist: others of these tests ran elsewhere
    told.longrepr = "\n".join(harmless(cause.text) for cause in new)
    most = max((len(cause.tests) for cause in new), default=1)
    if most > 1:
        file, line, _ = report.location
        more = counted(most - 1, "more test")
        told.location = (file, line, f"{names[report.nodeid]} and {more}")
    return told


def _reference(own: Sequence[Cause], new: Sequence[Cause], names: dict[str, str]) -> str:
    cause = max(new or own, key=lambda one: len(one.tests))
    if new:
        return f"{counted(len(cause.tests), 'test')}: {harmless(cause.text)}"
    return f"same as {names[next(iter(cause.tests))]}"


def _in_short(report: Any, text: str) -> Any:
    """The report with this text in the short summary."""
    if not hasattr(report.longrepr, "reprcrash"):
        return report
    told = copy(report)
    told.longrepr = copy(report.longrepr)
    told.longrepr.reprcrash = copy(report.longrepr.reprcrash)
    told.longrepr.reprcrash.message = text.split("\n")[0]
    return told
