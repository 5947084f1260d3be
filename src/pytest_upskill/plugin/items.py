"""Tests of a skill's file: cases on models, broken ones, and how tests end."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from .._util.json_forms import Location
from .._util.texts import harmless
from ..checks import CheckedCase
from ..errors import printable, shown
from ..results.outcomes import find_faults, next_trial
from ..trials.plan import PlannedCase
from ..trials.records import RECORDS_PROPERTY, Record, dump_records
from .failure_lines import describe_failure, next_lines
from .item_reports import (
    BROKEN_PROPERTY,
    NotAnswered,
    WrongAnswer,
    judge_present,
)
from .run import PLANNED, RUN, PlannedTest, Run, is_skipped, planned_of


class ItemOfFile(pytest.Item):
    """A test at the line of its case."""

    parent: pytest.File

    def __init__(
        self,
        *,
        skill: str,
        place: Location = (),
        line: int = 1,
        **kwargs: Any,
    ) -> None:
        # From a whole node id pytest parses the parameter in brackets, which --lf
        # needs.
        nodeid = f"{kwargs['parent'].nodeid}::{kwargs['name']}"
        super().__init__(**{"nodeid": nodeid, **kwargs})
        self.skill = skill  # its label
        self.place = place
        self.line = line

    @property
    def ihook(self) -> Any:
        """Use the conftest files of the parent node: pytest looks them up by path."""
        return self.parent.ihook

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:
        text: Any = super().repr_failure(excinfo, style)
        if isinstance(excinfo.value, pytest.fail.Exception):
            self.shorten(text, excinfo.value)
            if self.config.getoption("tbstyle", None) == "line":
                text.reprtraceback.reprentries.clear()
        return text

    def shorten(self, longrepr: Any, failure: BaseException) -> None:
        """One line at the place of the case, for the short summary,
        JUnit and --tb=line.
        """
        if crash := getattr(longrepr, "reprcrash", None):
            crash.path = printable(str(self.path))
            crash.lineno = self.line
            crash.message = harmless(self._shorten_message(str(failure)))

    def _shorten_message(self, message: str) -> str:
        return message.split("\n")[0]

    def reportinfo(self) -> tuple[Path, int | None, str]:
        # pytest shows it beside the node id if they differ.
        return Path(printable(str(self.path))), self.line - 1, self.name

    @property
    def _run(self) -> Run:
        return self.config.stash[RUN]


class BrokenItem(ItemOfFile):
    """A test that can't be run and asks nothing: an ERROR with a message."""

    def __init__(self, *, message: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.message = message

    def setup(self) -> None:
        self.user_properties.append((BROKEN_PROPERTY, self.message))
        raise NotAnswered(self.message, pytrace=False)

    def runtest(self) -> None:
        """Not called if setup fails."""

    def _shorten_message(self, message: str) -> str:
        """Without the file and the line, which come before it."""
        place = rf"{re.escape(shown(self.path))}:(\d+:)?"
        return re.sub(f"^{place} *", "", super()._shorten_message(message))


class Unrunnable(BrokenItem):
    """A skill that can't be tested, or a case that is not there.

    Not an error of collection: pytest would run nothing else then,
    and xdist goes on regardless.
    """


class BrokenCaseItem(BrokenItem):
    """A case that can't be run: an error if nobody here ``can_mend`` it, as a task of a
    benchmark, else a failure.
    """

    def __init__(self, *, can_mend: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._can_mend = can_mend
        if not self.message.startswith(f"{shown(self.path)}:"):
            # The mistake is in another file.
            self.line = 1

    def setup(self) -> None:
        if not self._can_mend:
            super().setup()

    def runtest(self) -> None:
        self.user_properties.append((BROKEN_PROPERTY, self.message))
        pytest.fail(self.message, pytrace=False)


class CaseItem(ItemOfFile):
    """A case on a model. A missing answer is an error, a wrong one is a failure."""

    def __init__(
        self,
        *,
        checked: CheckedCase,
        test: PlannedTest,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.case, self.checks = checked
        self.records: list[Record] = []  # what has been graded so far
        self.stash[PLANNED] = test

    @property
    def planned(self) -> PlannedCase:
        planned = planned_of(self)
        assert planned
        return planned

    def setup(self) -> None:
        """Get and grade the answers: a missing answer or grade is an error,
        not a failure.
        """
        run = self._run
        if run.asks:
            _grade([self], run)
            if next_trial(self.planned, self.records):
                _grade_extra_trials(self.session.items, run)
            self._require_answers()

    def _require_answers(self) -> None:
        """NotAnswered if a trial of the records errored."""
        errors = []
        for record in self.records:
            if record.error is not None:
                errors.append(harmless(record.error))
        if not errors:
            return

        self._attach_records()  # other trials may have been answered
        text = "\n".join(dict.fromkeys(errors))
        if self._run.settings.replay_file:
            text = f"{self.name}: {text}"
        raise NotAnswered("\n".join([text, *next_lines(self)]), pytrace=False)

    def runtest(self) -> None:
        """Fail unless enough runs with the skill passed; without a model, if anything
        is wrong with the case.
        """
        self._attach_records()
        planned = self.planned
        reason = None
        faults = find_faults(self.records)
        if faults is None:
            standing = judge_present(self, self._run.settings, planned, self.records)
            if standing is None:
                return
            if standing.kind == "regressed":
                reason = standing.reason
        elif not faults:
            return
        expected = [self.case.expected]
        if self.case.validator:
            expected.append(dict([self.case.validator]))
        text = describe_failure(
            self,
            self.records,
            expected=expected,
            standing=reason,
            has_skill=bool(self.case.skills) or not self.case.is_task,
        )
        raise WrongAnswer(text, pytrace=False)

    def _attach_records(self) -> None:
        """Attach the records to the test's report."""
        self.user_properties[:] = [(RECORDS_PROPERTY, dump_records(self.records))]


def _grade_extra_trials(items: Iterable[pytest.Item], run: Run) -> None:
    """Ask and grade the extra trials of all cases that need some, side by side: one of
    each case at a time.

    Every xdist worker has all items, and finds the same answers.
    """
    cases = []
    for item in items:
        if isinstance(item, CaseItem) and not is_skipped(item):
            if item.planned.extra_trials:
                cases.append(item)
    _grade(cases, run)
    while any(next_trial(case.planned, case.records) for case in cases):
        _grade(cases, run)


def _grade(cases: Iterable[CaseItem], run: Run) -> None:
    """Ask and grade the trials that cases need next."""
    from ..checks.grading import ToGrade, records_of

    owners = []
    trials = []
    for case in cases:
        needed = case.planned.trials
        if case.records:
            extra_trial = next_trial(case.planned, case.records)
            needed = (extra_trial,) if extra_trial else ()
        for trial in needed:
            owners.append(case)
            trials.append(ToGrade(trial, case.case, case.checks))
    if not trials:
        return

    settings = run.settings
    records = records_of(
        trials,
        run.asking.ask,
        settings.sandbox,
        network=settings.allow_network,
    )
    for case, record in zip(owners, records, strict=True):
        case.records.append(record)
