"""Tests of a skill's file, whatever they test; and those that only say what is wrong."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .._util.json_forms import Location
from .._util.texts import harmless
from ..errors import CasesError, printable, shown
from ..skills.loaded import BrokenCase
from .outcomes import BROKEN_PROPERTY, NotAnswered
from .pytest_options import message_of

if TYPE_CHECKING:
    from .nodes import SkillFile


def hooks_of_parent(node: Any) -> Any:
    """Use the conftest files of the parent node: pytest looks them up by path."""
    return node.parent.ihook


class ItemOfFile(pytest.Item):
    """A test at the line of its case."""

    parent: "SkillFile"
    place: Location
    line: int
    ihook = property(hooks_of_parent)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        shown: Any = super().repr_failure(excinfo, style)
        if isinstance(excinfo.value, pytest.fail.Exception):
            self._set_crash(shown, self._in_short(excinfo.value))
        return shown

    def _set_crash(self, shown: Any, text: str) -> None:
        """One line at the place of the case, for the short summary, JUnit and --tb=line."""
        if crash := getattr(shown, "reprcrash", None):
            crash.path, crash.lineno = printable(str(self.path)), self._line
            crash.message = harmless(text).split("\n")[0]
            if self.config.getoption("tbstyle", None) == "line":
                shown.reprtraceback.reprentries.clear()

    def _in_short(self, failure: BaseException) -> str:
        return str(failure)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        # pytest shows it beside the node id if they differ.
        return self.parent.told_path, self._line - 1, self.name

    @property
    def _line(self) -> int:
        """The line of the case, if pytest collects the file that it is in."""
        return self.line if self.parent.has_lines else 1


class Unrunnable(ItemOfFile):
    """A skill that can't be tested, or a case that is not there: an ERROR with a message.

    Not an error of collection: pytest would run nothing else then, and xdist goes on regardless.
    """

    message: str
    line = 1

    @classmethod
    def make(cls, parent: "SkillFile", message: str, case: str = "") -> "Unrunnable":
        nodeid = f"{parent.nodeid}::{case}" if case else parent.nodeid
        name = case or parent.source.label
        item: Unrunnable = cls.from_parent(parent, name=name, nodeid=nodeid)
        item.message = message
        return item

    def setup(self) -> None:
        self.user_properties.append((BROKEN_PROPERTY, self.message))
        raise NotAnswered(self.message, pytrace=False)

    def shorten(self, longrepr: Any) -> None:
        """Without the file, which stands before it in the short summary."""
        self._set_crash(longrepr, self.message.removeprefix(f"{shown(self.path)}:").strip())

    def runtest(self) -> None:
        """Never called: setup fails."""


class BrokenCaseItem(ItemOfFile):
    """A case that can't be run: a failed test that says why, and asks nobody."""

    error: CasesError

    @classmethod
    def make(cls, parent: "SkillFile", broken: BrokenCase, *marks: str) -> "BrokenCaseItem":
        nodeid = f"{parent.nodeid}::{broken.name}"
        item: BrokenCaseItem = cls.from_parent(parent, name=broken.name, nodeid=nodeid)
        item.place, item.line = broken.place, broken.line
        item.error = broken.error
        for mark in ("skill", *marks):
            item.add_marker(mark)
        return item

    def runtest(self) -> None:
        self.user_properties.append((BROKEN_PROPERTY, self.message))
        pytest.fail(self.message, pytrace=False)

    @property
    def message(self) -> str:
        return message_of(self.error, self.config)

    def _in_short(self, failure: BaseException) -> str:  # noqa: ARG002
        """Without the file and the line, which stand before it."""
        return self.error.problem if self._is_here else self.message

    @property
    def _line(self) -> int:
        return self.line if self._is_here else 1

    @property
    def _is_here(self) -> bool:
        """Whether the mistake is in the file that pytest collects."""
        return self.error.where.startswith(shown(self.path))
