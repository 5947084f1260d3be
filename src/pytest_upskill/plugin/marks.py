"""What is planned for a test, and what its marks say of it before it runs."""

from dataclasses import replace

import pytest

from ..trials.plan import PlannedCase
from ..trials.subject import ORACLE
from .run import PLANNED, RUN


def planned_of(item: pytest.Item) -> PlannedCase | None:
    """The case of a test of a skill, also if it is skipped; None for any other test.

    It has the test's present marks, and its node id, which xdist's loadgroup changes.
    """
    test = item.stash.get(PLANNED, None)
    if test is None:
        return None

    case = test.case
    compared = not is_expected_to_fail(item) and case.agent != ORACLE
    if item.config.stash[RUN].settings.aa:
        compared = False
    if (compared, item.nodeid) != (case.compared, case.nodeid):
        extra_trials = case.extra_trials if compared else ()
        test.case = replace(
            case, compared=compared, extra_trials=extra_trials, nodeid=item.nodeid
        )
    return test.case


def is_skipped(item: pytest.Item) -> bool:
    """Whether pytest will skip the test, so that nothing needs to be asked.

    Only pytest evaluates a condition given as a string,
    so such a test is not taken as skipped.
    """
    for mark in item.iter_markers():
        if mark.name == "skip" or (mark.name == "skipif" and _holds(mark)):
            return True
        if mark.name == "xfail" and mark.kwargs.get("run") is False and _holds(mark):
            return not item.config.getoption("runxfail", default=False)
    return False


def is_expected_to_fail(item: pytest.Item) -> bool:
    """Whether an xfail mark of its own holds; a condition given as
    a string is not known to.
    """
    return any(_holds(mark) for mark in item.iter_markers("xfail"))


def _holds(mark: pytest.Mark) -> bool:
    conditions = [mark.kwargs["condition"]] if "condition" in mark.kwargs else mark.args
    return not conditions or any(condition is True for condition in conditions)
