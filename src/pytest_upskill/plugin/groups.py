"""What is decided over many cases: how many runs a skill on a model gets,
and what regressed.

Every xdist worker has all items and decides alone, from the same answers and with the
same result: no question is asked twice, and nothing has to be sent around.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import pytest

from .._util import grouped
from ..checks.judging import Ask
from ..results.regressions import Standing, compare_all
from ..results.summary import alike, summarize
from ..settings import Settings
from ..stats import look, look_plan, rest_after, steps
from ..trials.plan import Group, PlannedCase
from ..trials.subject import ORACLE, SkillOnSubject
from .items import CaseItem, records_of_items
from .planning import plan_of


def looks_of(settings: Settings) -> tuple[int, ...]:
    """The numbers of runs after which to look at the verdict;
    none without a range of runs.
    """
    return look_plan(settings.first_runs, settings.runs) if settings.first_runs else ()


class Groups:
    """The items of a run by skill and model.

    The first item that needs a decision waits for the answers that it is based on and
    grades them; the grades stay in the items.
    """

    def __init__(
        self, settings: Settings, ask: Ask, items: Sequence[pytest.Item]
    ) -> None:
        self._looks = looks_of(settings)
        self._most = settings.runs
        self._max_age = settings.max_age
        # So that a round of all groups is one batch
        self._together = settings.batch is not None
        self._ask = ask
        self._items = {
            item.nodeid: item for item in items if isinstance(item, CaseItem)
        }
        self._all = items
        self._runs: dict[SkillOnSubject, dict[str, int]] = {}  # by node id

    @cached_property
    def _tests(self) -> dict[Group, list[PlannedCase]]:
        return grouped(plan_of(self._all).tests, lambda test: test.group)

    def runs_of(self, test: PlannedCase) -> int:
        """How many of ``--skill-runs 3..12`` a case gets."""
        if not self._looks or not test.in_lift or test.agent == ORACLE:
            return self._most
        if test.pair not in self._runs:
            self._decide(self._tests if self._together else [test.group])
        return self._runs[test.pair][test.nodeid]

    def _decide(self, groups_of_cases: Iterable[Group]) -> None:
        groups = [
            self._rounds(group)
            for group in groups_of_cases
            if self._items_of(group)
            and not group.of_triggers
            and group.pair.subject.agent != ORACLE
        ]
        while runs := {
            key: most for group in groups for key, most in next(group, {}).items()
        }:
            items = [self._items[nodeid] for nodeid in runs]
            records_of_items(items, list(runs.values()), self._ask)

    def _rounds(self, group: Group) -> Iterator[Mapping[str, int]]:
        """The runs that each item needs for the next look, until one decides."""
        items, pair = self._items_of(group), group.pair
        score, rest_look = items[0].parent.info.score, rest_after(self._looks)
        tests = self._tests[group]
        models = sum(
            other.pair.skill == pair.skill
            for other in self._tests
            if not other.of_triggers and other.pair.subject.agent != ORACLE
        )
        rested, most = set[str](), dict[str, int]()
        for runs in steps(self._looks):
            most |= {item.nodeid: runs for item in items if item.nodeid not in rested}
            yield most
            records_of_cases = records_of_items(
                items, [most[item.nodeid] for item in items], self._ask
            )
            records = [record for of_case in records_of_cases for record in of_case]
            summary = summarize(
                records,
                pair,
                model_id=pair.subject.model,
                not_run=0,
                looks=self._looks,
                score=score,
                tests=tests,
                max_age=self._max_age,
            )
            # With an answer missing, or at the end of the budget,
            # more runs would not help.
            scores, chance = (
                summary.scores(over="baseline"),
                summary.run_variance(over="baseline"),
            )
            is_known = bool(scores) and not summary.incomplete and not summary.not_asked
            if not (is_known and look(scores, runs, self._looks, chance, models).open):
                break
            if runs == rest_look:
                rested = {
                    item.nodeid
                    for item, case_records in zip(items, records_of_cases, strict=True)
                    if alike(case_records, score)
                }
        self._runs[pair] = most

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
        runs = [self.runs_of(test) for test in tests]
        records = dict(
            zip(
                (test.nodeid for test in tests),
                records_of_items(items, runs, self._ask),
                strict=True,
            )
        )
        return {
            case.test.nodeid: comparison.standing(case)
            for comparison in compare_all(tests, lambda test: records[test.nodeid])
            for case in comparison.of_kind("regressed", "drifted")
        }

    def _items_of(self, group: Group) -> list[CaseItem]:
        nodeids = [test.nodeid for test in self._tests[group] if test.in_lift]
        return [self._items[nodeid] for nodeid in nodeids if nodeid in self._items]
