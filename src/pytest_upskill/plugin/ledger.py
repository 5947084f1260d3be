"""The ledger of a run in the controller: test reports in, records and results out.

It is the same with and without xdist, since records ride on the reports of their tests.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Final

import pytest

from .._util.git import commit_of
from .._util.texts import digest
from ..errors import shown
from ..models.model import shown_address
from ..models.prices import PriceOf, priced
from ..results.outcomes import Reported
from ..results.run import RunResults, versions
from ..settings import Settings
from ..trials.answer import NoAnswer
from ..trials.plan import Plan, PlannedCase, SkillInfo
from ..trials.records import (
    RECORDS_PROPERTY,
    Record,
    load_records,
    make_record,
)
from ..trials.trial import Trial
from .item_reports import (
    ASKED_PROPERTY,
    BROKEN_PROPERTY,
    taken_properties,
)

CRASHED: Final = "the xdist worker of this test crashed. Run again, or without -n"


class Ledger:
    """The plan of a run and the records of its tests."""

    def __init__(
        self,
        model_ids: dict[str, str],  # by label
        price_of: PriceOf,
    ) -> None:
        self.model_ids = model_ids
        self._price_of = cache(price_of)  # lazy: it may import a lot
        self._started = datetime.now(UTC)
        self._clock = monotonic()
        self._plan = Plan((), ())
        self._planned: dict[str, PlannedCase] = {}
        # Of the tests of skills; None without a plan
        self._nodeids: dict[str, None] | None = None
        # Node ids of all tests that xdist workers collected
        self._collected: dict[str, None] = {}
        self._reported: dict[str, Reported] = {}  # by node id
        self._records: dict[str, list[Record]] = {}
        self._broken: dict[str, str] = {}  # by node id, why it can't be tested
        self._asked: dict[str, list[tuple[str, int, str, str]]] = {}  # by Python tests

    def add_plan(self, plan: Plan) -> None:
        """xdist runs nothing if its workers collect different tests."""
        self._plan = plan
        self._planned |= {test.nodeid: test for test in plan.tests}
        self._nodeids = {**(self._nodeids or {}), **dict.fromkeys(plan.nodeids)}

    def add_collected(self, nodeids: Iterable[str]) -> None:
        """What a worker collected, in case it dies before it sends its plan."""
        self._collected |= dict.fromkeys(nodeids)

    @property
    def lost(self) -> tuple[str, ...]:
        """Tests that were collected but never reported; without a plan,
        that is any test.
        """
        nodeids = self._collected if self._nodeids is None else self._nodeids
        return tuple(nodeid for nodeid in nodeids if nodeid not in self._reported)

    def add_report(self, report: pytest.TestReport) -> None:
        nodeid = report.nodeid
        self._add_word(report)
        own = taken_properties(report)
        if BROKEN_PROPERTY in own:
            self._broken[nodeid] = own[BROKEN_PROPERTY]
        if report.when in ("setup", "call"):
            if RECORDS_PROPERTY in own:
                self._records[nodeid] = [
                    priced(record, self._price_of)
                    for record in load_records(own[RECORDS_PROPERTY])
                ]
            if ASKED_PROPERTY in own:
                asked = json.loads(own[ASKED_PROPERTY])
                self._asked[nodeid] = [tuple(entry) for entry in asked]
            is_graded = nodeid in self._records or nodeid not in self._planned
            if report.failed and not is_graded:
                # For example, a fixture failed before anything was graded.
                crash = getattr(report.longrepr, "reprcrash", None)
                self._broken[nodeid] = crash.message if crash else report.longreprtext
        elif report.when != "teardown" and nodeid in self._planned:
            # xdist's own report of a dead worker, with "???" for the phase. If the test
            # had ended by then, its records stay.
            trials = self._planned[nodeid].trials
            lost = [make_record(trial, NoAnswer(CRASHED)) for trial in trials]
            self._records.setdefault(nodeid, lost)

    def _add_word(self, report: pytest.TestReport) -> None:
        """How pytest counts a test; it counts one twice that failed and has an error,
        too.
        """
        word: Reported = "passed"
        if report.failed:
            word = "error" if report.when in ("setup", "teardown") else "failed"
        elif report.skipped:
            word = "xfailed" if hasattr(report, "wasxfail") else "skipped"
        if word == "passed" and report.when != "call":
            self._reported.setdefault(report.nodeid, word)
        elif word != "error" or self._reported.get(report.nodeid) != "failed":
            self._reported[report.nodeid] = word

    @property
    def has_plan(self) -> bool:
        return bool(self._planned)

    @property
    def concerns_skills(self) -> bool:
        """Whether a test of a skill was selected, or a skill has none to select."""
        return bool(self._nodeids or self._plan.untested or self.lost)

    @property
    def skills(self) -> tuple[SkillInfo, ...]:
        return self._plan.skills

    def is_of_skill(self, nodeid: str) -> bool:
        return nodeid in self._planned or nodeid in self._broken

    @property
    def planned(self) -> list[PlannedCase]:
        return list(self._planned.values())

    def test(self, nodeid: str) -> PlannedCase | None:
        return self._planned.get(nodeid)

    def records_of(self, nodeid: str) -> list[Record]:
        return self._records.get(nodeid, [])

    def records(self) -> list[Record]:
        """All records, in the order of the plan."""
        records = []
        for nodeid in self._planned:
            records += self.records_of(nodeid)
        return records

    def results(
        self, settings: Settings, root: Path, interrupted: str | None = None
    ) -> RunResults:
        """The results, after the last report."""
        tests = []
        questions: dict[tuple[str, str], str] = {}
        for test in self.planned:
            first = test.trials[0]
            texts = [text for _, text in self._asked_in(test.nodeid, first)]
            if not first.is_open:
                texts.insert(0, first.question.messages[-1][1])
            questions.setdefault((test.skill, test.case), "\n\n".join(texts))
            tests.append(self._finish(test))

        reported = {}
        for nodeid in [*self._planned, *sorted(self._broken)]:
            if nodeid in self._reported:
                reported[nodeid] = self._reported[nodeid]
        results = RunResults(
            started=self._started,
            seconds=monotonic() - self._clock,
            skills=self.skills,
            model_ids=self.model_ids,
            tests=tuple(tests),
            records=tuple(self.records()),
            questions=questions,
            gates=settings.gates,
            idle_gates=self._plan.idle_gates,
            by_outcome=self._plan.by_outcome,
            unmatched=self._plan.unmatched,
            broken=self._broken,
            reported=reported,
            untested=self._plan.untested,
            lost=self.lost,
            interrupted=interrupted,
            commit=commit_of(root, [skill.path for skill in self.skills]),
            versions=versions(),
            base_url=shown_address(settings.base_url or ""),
            with_skills=tuple(map(shown, settings.with_skills)),
            noise=settings.noise,
            judge=settings.judge,
            max_age=settings.max_age,
        )
        if results.selected_to_fail:  # no gate can judge these
            return replace(results, idle_gates=tuple(vars(settings.gates)))
        return results

    def _finish(self, test: PlannedCase) -> PlannedCase:
        """Without trials; the sample of a Python test is all that it asked first."""
        keys = self.open_keys(test.nodeid, test.trials[0])
        return replace(
            test,
            trials=(),
            extra_trials=(),
            sample=test.sample or (digest(*keys)[:16] if keys else ""),
        )

    def open_keys(self, nodeid: str, trial: Trial) -> list[str]:
        """The keys of what a Python test asked in a trial."""
        return [key for key, _ in self._asked_in(nodeid, trial)]

    def _asked_in(self, nodeid: str, trial: Trial) -> Iterator[tuple[str, str]]:
        """Keys and questions."""
        for arm, run, key, text in self._asked.get(nodeid, ()):
            if (arm, run) == (trial.arm, trial.run):
                yield key, text
