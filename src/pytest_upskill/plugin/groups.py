"""What is decided over many cases: which of them are asked further, and what regressed.

Every xdist worker has all items and decides alone, from the same answers and with the
same result: no question is asked twice, and nothing has to be sent around.
"""

from collections.abc import Sequence
from functools import cached_property

import pytest

from ..checks.judging import Ask
from ..results.regressions import Standing, compare_all
from ..trials.plan import Plan
from .items import CaseItem, grade_further, grade_items


class Groups:
    """The items of a run that are compared with accepted results.

    The first item that may have regressed waits for the answers to all of them and
    grades them; the grades stay in the items.
    """

    def __init__(self, plan: Plan, items: Sequence[pytest.Item], ask: Ask) -> None:
        # As planned: tests that have run may have an xfail mark since.
        self._tests = [test for test in plan.tests if test.expected]
        self._items = {
            item.nodeid: item for item in items if isinstance(item, CaseItem)
        }
        self._ask = ask

    def ask_further(self) -> None:
        """Ask for the extra trials of all cases that need them, side by side."""
        grade_items(self._graded, self._ask)
        grade_further(self._graded, self._ask)

    @property
    def _graded(self) -> list[CaseItem]:
        nodeids = [test.nodeid for test in self._tests]
        return [self._items[nodeid] for nodeid in nodeids if nodeid in self._items]

    def regression_of(self, nodeid: str) -> Standing | None:
        """The standing of a case that regressed, alone or as a part of its group."""
        return self._regressions.get(nodeid)

    @cached_property
    def _regressions(self) -> dict[str, Standing]:
        """By node id, over all cases of the run.

        Empty if tests in Python have accepted results: what they answer
        is only known in the end.
        """
        if any(test.nodeid not in self._items for test in self._tests):
            return {}

        self.ask_further()
        regressions = {}
        for comparison in compare_all(
            self._tests, lambda test: self._items[test.nodeid].records
        ):
            for case in comparison.regressed:
                regressions[case.test.nodeid] = comparison.standing(case)
        return regressions
