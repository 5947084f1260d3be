"""What is decided over many cases: which of them regressed.

Every xdist worker has all items and decides alone, from the same answers and with the
same result: no question is asked twice, and nothing has to be sent around.
"""

from collections.abc import Sequence
from functools import cached_property

import pytest

from .._util import grouped
from ..checks.judging import Ask
from ..results.regressions import Standing, compare_all
from ..trials.plan import Group, PlannedCase
from .items import CaseItem, records_of_items
from .planning import plan_of


class Groups:
    """The items of a run by skill and model.

    The first item that needs a decision waits for the answers that it is based on and
    grades them; the grades stay in the items.
    """

    def __init__(self, ask: Ask, items: Sequence[pytest.Item]) -> None:
        self._ask = ask
        self._items = {
            item.nodeid: item for item in items if isinstance(item, CaseItem)
        }
        self._all = items

    @cached_property
    def _tests(self) -> dict[Group, list[PlannedCase]]:
        return grouped(plan_of(self._all).tests, lambda test: test.group)

    def regression_of(self, test: PlannedCase) -> Standing | None:
        """The standing of a case that regressed, alone or as a part of its group."""
        return self._regressions.get(test.nodeid)

    @cached_property
    def _regressions(self) -> dict[str, Standing]:
        """By node id, over all cases of the run.

        Empty if tests in Python have accepted results: what they answer
        is only known in the end.
        """
        tests = [
            test
            for of_group in self._tests.values()
            for test in of_group
            if test.expected
        ]
        if any(test.nodeid not in self._items for test in tests):
            return {}
        items = [self._items[test.nodeid] for test in tests]
        records = dict(
            zip(
                (test.nodeid for test in tests),
                records_of_items(items, self._ask),
                strict=True,
            )
        )
        return {
            case.test.nodeid: comparison.standing(case)
            for comparison in compare_all(tests, lambda test: records[test.nodeid])
            for case in comparison.of_kind("regressed", "drifted")
        }
