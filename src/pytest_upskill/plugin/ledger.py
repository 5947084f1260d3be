"""The ledger of a run in the controller: test reports in, records and results out.

It is the same with and without xdist, since records ride on the reports of their tests.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Final

import pytest

from .._util.git import commit_of
from .._util.texts import counted, digest, dollars
from ..checks.judging import all_questions
from ..engine import Engine
from ..engine.recording import Recorded
from ..errors import shown
from ..measure.evaluate import priced
from ..models.model import shown_address
from ..models.prices import PriceOf, cost
from ..results.outcomes import Reported
from ..results.regressions import AcceptedComparison, compare_all
from ..results.run import RunResults, versions
from ..settings import Settings
from ..trials.answer import Answer, total_usage
from ..trials.plan import Plan, PlannedCase, SkillInfo, Unmatched
from ..trials.records import (
    RECORDS_PROPERTY,
    Record,
    agents_in,
    errored_record,
    load_records,
)
from ..trials.trial import Trial
from .items import (
    ASKED_PROPERTY,
    BROKEN_PROPERTY,
    MISSING_PROPERTY,
    REGRESSION_PROPERTY,
    taken_properties,
)
from .paths import relative

REFERENCE: Final = "upskill"  # the property of reports that the ledger has records of
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
        self._skills: tuple[SkillInfo, ...] = ()
        self._planned: dict[str, PlannedCase] = {}
        self._unmatched: tuple[Unmatched, ...] = ()
        self._idle_gates: tuple[str, ...] = ()
        self._by_outcome = False
        self._untested: dict[str, str] = {}
        # Of the tests of skills; None without a plan
        self._nodeids: dict[str, None] | None = None
        # Node ids of all tests that xdist workers collected
        self._collected: dict[str, None] = {}
        self._reported: dict[str, Reported] = {}  # by node id
        self._skipped: set[str] = set()  # while running
        self._records: dict[str, list[Record]] = {}
        self._priced: dict[str, list[Record]] = {}  # with prices
        # Tests that have not failed yet
        self._to_fail: dict[str, pytest.TestReport] = {}
        self._regressions: dict[str, str] = {}  # by node id, why its test failed
        self._broken: dict[str, str] = {}  # by node id, why it can't be tested
        self._missing: set[str] = set()  # node ids of cases that are not there
        self._asked: dict[str, list[tuple[str, int, str, str]]] = {}  # by Python tests

    def add_plan(self, plan: Plan) -> None:
        """There is one, unless an xdist worker collects other tests than the first."""
        skills = {skill.name: skill for skill in (*self._skills, *plan.skills)}
        self._skills = tuple(skills.values())
        self._planned |= {test.nodeid: test for test in plan.tests}
        self._untested |= plan.untested
        self._unmatched = plan.unmatched or self._unmatched
        self._idle_gates = plan.idle_gates
        self._by_outcome = plan.by_outcome
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
        self._add_word(report)
        if report.skipped and report.when in ("setup", "call"):
            self._skipped.add(report.nodeid)
        own = taken_properties(report)
        if REGRESSION_PROPERTY in own:
            self._regressions[report.nodeid] = own[REGRESSION_PROPERTY]
        if report.failed:
            self._to_fail.pop(report.nodeid, None)
        elif report.when == "call":
            self._to_fail[report.nodeid] = report
        if BROKEN_PROPERTY in own:
            self._broken[report.nodeid] = own[BROKEN_PROPERTY]
        if MISSING_PROPERTY in own:
            self._missing.add(report.nodeid)
        if report.when in ("setup", "call"):
            if RECORDS_PROPERTY in own:
                self._records[report.nodeid] = load_records(own[RECORDS_PROPERTY])
            if ASKED_PROPERTY in own:
                asked = json.loads(own[ASKED_PROPERTY])
                self._asked[report.nodeid] = [tuple(entry) for entry in asked]
            graded = (
                report.nodeid in self._records or report.nodeid not in self._planned
            )
            if report.failed and not graded:
                # For example, a fixture failed before anything was graded.
                crash = getattr(report.longrepr, "reprcrash", None)
                self._broken[report.nodeid] = (
                    crash.message if crash else report.longreprtext
                )
        elif report.when != "teardown" and report.nodeid in self._planned:
            # xdist's own report of a dead worker, with "???" for the phase. If the test
            # had ended by then, its records stay.
            trials = self._planned[report.nodeid].trials
            lost = [errored_record(trial, CRASHED) for trial in trials]
            self._records.setdefault(report.nodeid, lost)

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
    def has_errors(self) -> bool:
        """Whether an answer is missing, or a test was not run."""
        return bool(self._broken or self.lost) or self._any_errored

    @property
    def only_missing(self) -> bool:
        """Whether the only errors are names of cases that are not there."""
        others = self._broken.keys() - self._missing or self.lost or self._any_errored
        return bool(self._missing) and not others

    @property
    def _any_errored(self) -> bool:
        records = (record for of_test in self._records.values() for record in of_test)
        return any(record.outcome == "errored" for record in records)

    @property
    def concerns_skills(self) -> bool:
        """Whether a test of a skill was selected, or a skill has none to select."""
        return bool(self._nodeids or self._untested or self.lost)

    @property
    def skills(self) -> tuple[SkillInfo, ...]:
        return self._skills

    def is_of_skill(self, nodeid: str) -> bool:
        return nodeid in self._planned or nodeid in self._broken

    @property
    def planned(self) -> list[PlannedCase]:
        return list(self._planned.values())

    def test(self, nodeid: str) -> PlannedCase | None:
        return self._planned.get(nodeid)

    @property
    def unmatched(self) -> tuple[Unmatched, ...]:
        """Accepted results that no test of the run is compared with."""
        return self._unmatched

    @property
    def skipped(self) -> list[PlannedCase]:
        """Tests that pytest.skip, pytest.xfail or a plugin
        ended before they were graded.
        """
        return [
            test
            for nodeid, test in self._planned.items()
            if nodeid in self._skipped and nodeid not in self._records
        ]

    def _skipped_now(self) -> Iterator[Unmatched]:
        """The accepted results of skipped tests."""
        for test in self.skipped:
            if test.expected:
                was, date = test.expected.was, test.expected.date
                yield Unmatched(
                    test.skill,
                    test.model,
                    test.case,
                    was,
                    date,
                    "skipped",
                    folder=test.folder,
                    agent=test.agent,
                )

    @property
    def date(self) -> str:
        return self._started.date().isoformat()

    def records_of(self, nodeid: str) -> list[Record]:
        return self._records.get(nodeid, [])

    def version_of(self, tests: Sequence[PlannedCase]) -> str:
        """The version of the agent of these tests, which is the same in all of them."""
        records = (record for test in tests for record in self.records_of(test.nodeid))
        return agents_in(records).get(tests[0].agent, "")

    def comparisons(self) -> list[AcceptedComparison]:
        """Reported tests compared with their accepted results."""
        if not any(test.expected for test in self._planned.values()):
            return []
        return compare_all(self._tests(), lambda test: self.records_of(test.nodeid))

    def report_to_fail(self, nodeid: str) -> pytest.TestReport | None:
        """The report of a test that has not failed."""
        return self._to_fail.get(nodeid)

    def _tests(self) -> tuple[PlannedCase, ...]:
        """Without trials, and with regressions."""
        return tuple(
            replace(
                test,
                trials=(),
                extra_trials=(),
                sample=test.sample or self._sample(test.nodeid, test),
                regression=self._regressions.get(test.nodeid, ""),
            )
            for test in self.planned
        )

    def _sample(self, nodeid: str, test: PlannedCase) -> str:
        """All that a test in Python asked in its first trial."""
        keys = self._open_keys(nodeid, test.trials[0])
        return digest(*keys)[:16] if keys else ""

    def records(self) -> list[Record]:
        """All records, in the order of the plan."""
        return [
            record
            for nodeid in self._planned
            for record in self.priced_records_of(nodeid)
        ]

    def priced_records_of(self, nodeid: str) -> list[Record]:
        records = self.records_of(nodeid)
        if records and self._priced.get(nodeid) is not records:
            with_costs = [priced(record, self._price_of) for record in records]
            records = records if with_costs == records else with_costs
            self._records[nodeid] = self._priced[nodeid] = records
        return records

    def results(
        self, settings: Settings, root: Path, interrupted: str | None = None
    ) -> RunResults:
        """The results, after the last report."""
        results = RunResults(
            started=self._started,
            seconds=monotonic() - self._clock,
            skills=self._skills,
            model_ids=self.model_ids,
            tests=self._tests(),
            records=tuple(self.records()),
            questions=self._questions(),
            gates=settings.gates,
            idle_gates=self._idle_gates,
            by_outcome=self._by_outcome,
            unmatched=(
                ()
                if settings.accept or settings.aa
                else (*self._unmatched, *self._skipped_now())
            ),
            broken=self._broken,
            reported={
                nodeid: self._reported[nodeid]
                for nodeid in dict.fromkeys([*self._planned, *sorted(self._broken)])
                if nodeid in self._reported
            },
            untested=self._untested,
            lost=self.lost,
            interrupted=interrupted,
            commit=commit_of(root, [skill.path for skill in self._skills]),
            versions=versions(),
            base_url=shown_address(settings.base_url or ""),
            with_skills=tuple(map(shown, settings.with_skills)),
            noise=settings.noise,
            judge=settings.judge,
            max_age=settings.max_age,
        )
        selected = results.selected_to_fail  # no gate can judge these
        return (
            replace(results, idle_gates=tuple(vars(settings.gates)))
            if selected
            else results
        )

    def _questions(self) -> dict[tuple[str, str], str]:
        """The last message of each case; for a Python test,
        all it asked in its first trial.
        """
        by_test: dict[tuple[str, str], str] = {}
        for nodeid, test in self._planned.items():
            first = test.trials[0]
            texts = [first.question.messages[-1][1]] if not first.is_open else []
            for arm, run, _, text in self._asked.get(nodeid, ()):
                texts += [text] if (arm, run) == (first.arm, first.run) else []
            by_test.setdefault((test.skill, test.case), "\n\n".join(texts))
        return by_test

    def stored_notes(self) -> list[str]:
        """How many answers came from the cache, and what that saved."""
        records = self.records()
        stored = [record for record in records if record.stored]
        if not stored:
            return []
        tokens = counted(sum(record.tokens or 0 for record in stored), "token")
        usd = sum(record.cost or 0.0 for record in stored)
        saved = dollars(usd) if usd else tokens
        share = f"{len(stored):,} of {counted(len(records), 'answer')}"
        return [f"{share} from cache (saved {saved}); --skill-fresh asks again."]

    def judge_notes(self, judge: str | None, engine: Engine) -> list[str]:
        """What the judge used, apart from the models under test;
        the same answer is judged once.
        """
        judged = sum(bool(record.judge_calls) for record in self.records())
        if not judge or not judged:
            return []
        tests = self._planned.values()
        trials = (trial for test in tests for trial in test.all_trials)
        keys = {
            key
            for trial in trials
            if trial.rubric
            for key in [*_asked_in(trial, engine)][1:]
        }
        replies = map(engine.known_reply, keys)
        usages = [reply.usage for reply in replies if isinstance(reply, Answer)]
        spent = total_usage(usages)
        tokens = None if spent.input is None else spent.input + (spent.output or 0)
        costs = [cost(self._price_of(judge), usage) for usage in usages]
        usd = None if None in costs else sum(filter(None, costs))
        calls = counted(len(usages), "call")
        parts = [f"judged by {judge}: {counted(judged, 'answer')}, {calls}"]
        parts += [counted(tokens, "token")] if tokens is not None else []
        parts += [dollars(usd)] if usd else []
        return [f"{', '.join(parts)}; not in the table."]

    def user_notes(self) -> list[str]:
        """What the users took who are models, apart from the agents."""
        users = [record.user for record in self.records() if record.user]
        notes = list[str]()
        for model in dict.fromkeys(user.model for user in users):
            of_model = [user for user in users if user.model == model]
            tokens = sum(user.usage.tokens for user in of_model)
            usd = sum(user.cost or 0.0 for user in of_model)
            calls = counted(sum(user.calls for user in of_model), "call")
            parts = [f"users played by {model}: {calls}", counted(tokens, "token")]
            parts += [dollars(usd)] if usd else []
            notes.append(f"{', '.join(parts)}; not in the table.")
        return notes

    def recorded(self, engine: Engine, root: Path) -> Iterator[Recorded]:
        """Every answer that was used, including the judge's."""
        for nodeid, test in self._planned.items():
            folder = relative(Path(test.folder), root)
            for trial in test.all_trials:
                open_keys = self._open_keys(nodeid, trial)
                keys = open_keys if trial.is_open else _asked_in(trial, engine)
                for step, key in enumerate(keys):
                    reply = engine.known_reply(key)
                    if isinstance(reply, Answer):
                        yield Recorded(trial, step, key, reply, folder)

    def _open_keys(self, nodeid: str, trial: Trial) -> list[str]:
        """The keys of what a Python test asked in a trial."""
        place, entries = (trial.arm, trial.run), self._asked.get(nodeid, ())
        return [key for arm, run, key, _ in entries if (arm, run) == place]


def _asked_in(trial: Trial, engine: Engine) -> Iterator[str]:
    """The keys of a trial's question and of those to the judge."""
    yield trial.question.key
    answer = engine.known_reply(trial.question.key)
    if trial.rubric and isinstance(answer, Answer):
        for question in all_questions(
            trial.rubric, trial.question, answer, engine.known_reply
        ):
            yield question.key
