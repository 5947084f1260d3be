"""Tests of a skill's file: what all of them have in common, how they end, and broken ones."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from .._util.json_forms import Location
from .._util.texts import harmless
from ..errors import CasesError, printable, shown
from ..results.accepted import NOTHING_ACCEPTED
from ..results.regressions import Standing, fell, standing_of
from ..settings import Settings
from ..skills.loaded_cases import BrokenCase
from ..trials.answer import Reply
from ..trials.plan import Count, PlannedCase, SkillInfo
from ..trials.trial import Question
from .paths import SkillSource
from .pytest_options import message_of
from .run_subjects import RunSubjects

RECORDS_PROPERTY: Final = "upskill"
BROKEN_PROPERTY: Final = "upskill_broken"  # why a skill or a case can't be tested
REGRESSION_PROPERTY: Final = "upskill_regression"  # why a test failed, compared with all others
ASKED_PROPERTY: Final = "upskill_asked"  # what a test in Python asked


class NotAnswered(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """No answer, or no grade for it: an error even where a failure is expected."""

    __module__ = "builtins"  # short where pytest shows its name


class WrongAnswer(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """Answers that did not pass: the failure that an xfail of a case expects."""


class Run(Protocol):
    """What nodes need from their run."""

    settings: Settings
    subjects: RunSubjects
    asks: bool  # False with --collect-only and the like

    def load_conftests(self, folder: Path) -> None: ...

    def ask(self, questions: Sequence[Question]) -> list[Reply]: ...

    def runs_of(self, test: PlannedCase) -> int:
        """How many runs to make: more than the first few only if the verdict is open."""
        ...

    def regression_of(self, test: PlannedCase) -> Standing | None:
        """The standing of a regressed test, compared with all others of its skill and model."""
        ...


class SkillNode(pytest.File):
    """What tests need from the file of their skill."""

    source: SkillSource
    run: Run
    info: SkillInfo
    accepted = NOTHING_ACCEPTED
    siblings: tuple[str, ...] = ()  # ids of all cases in the skill's own files
    # By label: how many of its cases, and of its triggers, are not skipped.
    runnable: dict[str, Counter[bool]]
    printable_path: Path


class ItemOfFile(pytest.Item):
    """A test at the line of its case."""

    parent: SkillNode
    file: Path  # of the case
    place: Location
    line: int

    @property
    def ihook(self) -> Any:
        """Use the conftest files of the parent node: pytest looks them up by path."""
        return self.parent.ihook

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        text: Any = super().repr_failure(excinfo, style)
        if isinstance(excinfo.value, pytest.fail.Exception):
            self._set_crash(text, self._short_message(excinfo.value))
        return text

    def _set_crash(self, longrepr: Any, text: str) -> None:
        """One line at the place of the case, for the short summary, JUnit and --tb=line."""
        if crash := getattr(longrepr, "reprcrash", None):
            crash.path, crash.lineno = printable(str(self.path)), self._line
            crash.message = harmless(text).split("\n")[0]
            if self.config.getoption("tbstyle", None) == "line":
                longrepr.reprtraceback.reprentries.clear()

    def _short_message(self, failure: BaseException) -> str:
        return str(failure)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        # pytest shows it beside the node id if they differ.
        return self.parent.printable_path, self._line - 1, self.name

    @property
    def _line(self) -> int:
        """The line of the case, if pytest collects the file that it is in."""
        return self.line if self.path == self.file else 1


class Unrunnable(ItemOfFile):
    """A skill that can't be tested, or a case that is not there: an ERROR with a message.

    Not an error of collection: pytest would run nothing else then, and xdist goes on regardless.
    """

    message: str
    line = 1
    file = Path()

    @classmethod
    def make(cls, parent: SkillNode, message: str, case: str = "") -> "Unrunnable":
        nodeid = f"{parent.nodeid}::{case}" if case else parent.nodeid
        name = case or parent.source.label
        item: Unrunnable = cls.from_parent(parent, name=name, nodeid=nodeid)
        item.message = message
        return item

    def setup(self) -> None:
        self.user_properties.append((BROKEN_PROPERTY, self.message))
        raise NotAnswered(self.message, pytrace=False)

    def shorten(self, longrepr: Any) -> None:
        """Drop the file, which comes before the message in the short summary."""
        self._set_crash(longrepr, self.message.removeprefix(f"{shown(self.path)}:").strip())

    def runtest(self) -> None:
        """Never called: setup fails."""


class BrokenCaseItem(ItemOfFile):
    """A case that can't be run: a failed test that says why, and asks nothing."""

    error: CasesError

    @classmethod
    def make(cls, parent: SkillNode, broken: BrokenCase) -> "BrokenCaseItem":
        nodeid = f"{parent.nodeid}::{broken.name}"
        item: BrokenCaseItem = cls.from_parent(parent, name=broken.name, nodeid=nodeid)
        item.place, item.line = broken.place, broken.line
        item.error = broken.error
        for mark in ("skill", *(["trigger"] if broken.is_trigger else [])):
            item.add_marker(mark)
        return item

    def runtest(self) -> None:
        self.user_properties.append((BROKEN_PROPERTY, self.message))
        pytest.fail(self.message, pytrace=False)

    @property
    def message(self) -> str:
        return message_of(self.error, self.config)

    def _short_message(self, failure: BaseException) -> str:  # noqa: ARG002
        """Without the file and the line, which come before it."""
        return self.error.problem if self._is_here else self.message

    @property
    def _line(self) -> int:
        return self.line if self._is_here else 1

    @property
    def _is_here(self) -> bool:
        """Whether the mistake is in the file that pytest collects."""
        return self.error.where.startswith(shown(self.path))


def judge_present(
    item: pytest.Item,
    settings: Settings,
    planned: PlannedCase,
    now: Count,
    among_others: Callable[[], Standing | None] = lambda: None,
) -> Standing | None:
    """Compare the runs of a test with its accepted result; None if they passed.

    If fewer pass than accepted, ``among_others`` tells whether that is a regression. Any other
    failure that was accepted, is accepted now, or could be chance becomes an xfail: by a mark, so
    that --runxfail and --xfail-tb work.
    """
    standing = standing_of(now, planned.threshold, planned.expected)
    if standing.kind != "regressed" and planned.compared and fell(now, planned.expected):
        standing = among_others() or standing
    if standing.kind == "regressed":
        item.user_properties.append((REGRESSION_PROPERTY, standing.reason))
    if standing.kind in ("passed", "better"):
        return None
    if settings.accept:
        standing = Standing("accepted as failing", f"accepted as failing ({now})")
    if standing.kind in ("accepted as failing", "could be chance"):
        item.add_marker(pytest.mark.xfail(reason=harmless(standing.reason)))
    return standing


def is_skipped(item: pytest.Item) -> bool:
    """Whether pytest will skip the test, so that nothing needs to be asked.

    Only pytest evaluates a condition given as a string, so such a test is not taken as skipped.
    """
    for mark in item.iter_markers():
        if mark.name == "skip" or (mark.name == "skipif" and _holds(mark)):
            return True
        not_run = mark.name == "xfail" and mark.kwargs.get("run") is False
        if not_run and _holds(mark) and not item.config.getoption("runxfail", False):
            return True
    return False


def is_expected_to_fail(item: pytest.Item) -> bool:
    """Whether an xfail mark of its own holds; a condition given as a string is not known to."""
    return any(map(_holds, item.iter_markers("xfail")))


def _holds(mark: pytest.Mark) -> bool:
    conditions = [mark.kwargs["condition"]] if "condition" in mark.kwargs else mark.args
    return not conditions or any(condition is True for condition in conditions)
