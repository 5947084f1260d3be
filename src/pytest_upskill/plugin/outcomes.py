"""How a test of a skill ends, for cases and Python functions alike."""

from collections.abc import Callable
from typing import Final

import pytest

from .._util.texts import harmless
from ..results.regressions import Standing, fell, standing_of
from ..settings import Settings
from ..trials.plan import Count, PlannedCase

RECORDS_PROPERTY: Final = "upskill"
BROKEN_PROPERTY: Final = "upskill_broken"  # why a skill or a case can't be tested
REGRESSION_PROPERTY: Final = "upskill_regression"  # why a test failed, seen with all others
ASKED_PROPERTY: Final = "upskill_asked"  # what a test in Python asked


class NotAnswered(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """No answer, or no grade for it: an error even where a failure is expected."""

    __module__ = "builtins"  # short where pytest shows its name


class WrongAnswer(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """Answers that did not pass: the failure that an xfail of a case expects."""


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


def is_passed_by(item: pytest.Item) -> bool:
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
