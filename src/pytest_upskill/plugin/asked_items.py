"""A case on a model, as a test."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .._util.keys import without_keys
from .._util.texts import harmless, one_line
from ..checks import AnyCheck, rubric_of, why_agent
from ..checks.grading import ToGrade, records_of
from ..checks.judging import Ask
from ..errors import shown
from ..reports.terminal.closing_lines import command_lines
from ..reports.terminal.failure import failure_text
from ..reports.terminal.layout import TerminalLook
from ..results.accepted import case_result, planned_case
from ..settings import Settings
from ..skills.case import Case
from ..trials.plan import PlannedCase
from ..trials.records import Record, dump_records
from ..trials.subject import CHAT
from ..trials.trial import Trial
from .display import screen_of
from .items import (
    RECORDS_PROPERTY,
    ItemOfFile,
    NotAnswered,
    SkillNode,
    WrongAnswer,
    is_expected_to_fail,
    judge_present,
)
from .next_command import rerun_of
from .paths import relative


class CaseItem(ItemOfFile):
    """A case on a model. A missing answer is an error, a wrong one is a failure."""

    case: Case
    checks: tuple[AnyCheck, ...]
    _planned: PlannedCase

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._records: list[Record] = []
        self._graded: list[Record] = []

    @classmethod
    def make(
        cls,
        parent: SkillNode,
        file: Path,
        case: Case,
        checks: tuple[AnyCheck, ...],
        trials: Sequence[Trial],
    ) -> "CaseItem":
        """``file`` is that of the case."""
        label, settings = trials[0].label, parent.run.settings
        name = f"{case.id}[{label}]"
        # From a whole node id pytest parses the parameter in brackets, which --lf needs.
        item: CaseItem = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.case, item.checks = case, checks
        item.file, item.place, item.line = file, case.place, case.line
        item._planned = planned_case(
            item.nodeid,
            case,
            trials,
            settings,
            folder=parent.source.folder,
            file=relative(file, parent.config.rootpath),
            accepted=parent.accepted,
            siblings=parent.siblings,
            of=parent.runnable[label][case.is_trigger],
        )
        for mark in ("skill", *(["trigger"] if case.is_trigger else []), *case.tags):
            item.add_marker(mark)
        if case.skip:
            item.add_marker(pytest.mark.skip(reason=_reason(case.skip)))
        if case.xfail:
            item.add_marker(pytest.mark.xfail(reason=_reason(case.xfail), raises=WrongAnswer))
        return item

    @property
    def trials(self) -> tuple[Trial, ...]:
        return self._planned.trials

    @property
    def planned(self) -> PlannedCase:
        """With its present marks and node id, which xdist's loadgroup changes."""
        compared = not is_expected_to_fail(self)
        if (compared, self.nodeid) != (self._planned.compared, self._planned.nodeid):
            self._planned = replace(self._planned, compared=compared, nodeid=self.nodeid)
        return self._planned

    def setup(self) -> None:
        """Get and grade the answers: a missing answer or grade is an error, not a failure."""
        run = self.parent.run
        if run.asks:
            (self._records,) = records_of_items([self], [run.runs_of(self.planned)], run.ask)
            self._require_answers()

    def _require_answers(self) -> None:
        """NotAnswered if a trial of the records errored."""
        errors = [record.error for record in self._records if record.error is not None]
        if errors:
            self._attach_records()  # other trials may have been answered
            reasons = "\n".join(dict.fromkeys(map(harmless, errors)))
            replayed = self.parent.run.settings.replay_file
            text = f"{self.name}: {reasons}" if replayed else reasons
            commands = next_steps(self, "", screen_of(self.config).width)
            raise NotAnswered("\n".join([text, "", *commands]), pytrace=False)

    def runtest(self) -> None:
        """Fail unless enough runs with the skill passed."""
        self._attach_records()
        planned, run = self.planned, self.parent.run
        result = case_result(self._records, planned.digest)
        assert result, "setup reports missing answers"
        standing = judge_present(
            self, run.settings, planned, result.count, lambda: run.regression_of(planned)
        )
        if standing:
            reason = standing.reason if standing.kind == "regressed" else None
            raise WrongAnswer(without_keys(self._failure_text(reason)), pytrace=False)

    def _attach_records(self) -> None:
        """Attach the records to the test's report."""
        self.user_properties[:] = [(RECORDS_PROPERTY, dump_records(self._records))]

    def _failure_text(self, regression: str | None) -> str:
        screen, verbosity = screen_of(self.config), self.config.get_verbosity()
        expected = [self.case.expected]
        if self.case.validator:
            expected.append(dict([self.case.validator]))
        text = failure_text(
            self.trials[0].question.messages[-1][1],
            self._records,
            expected=expected,
            against=self.parent.info.against,
            standing=regression,
            look=TerminalLook(screen.width, screen.marks, verbosity=verbosity),
        )
        link = link_to(self._planned, self.parent.run.settings)
        width = screen.width if verbosity < 2 else None
        return "\n".join([text, "", *next_steps(self, link, width)])

    @property
    def lacks_judge(self) -> bool:
        """Only with --collect-only: in a run, such a case is broken."""
        return bool(rubric_of(self.checks).texts) and not self.parent.run.settings.judge

    @property
    def lacks_agent(self) -> bool:
        """The same for a case that needs an agent."""
        return self._planned.agent == CHAT and bool(why_agent(self.case, self.checks))


def _reason(text: str) -> str:
    """On one line. pytest may wrap it anywhere, and no line of a log may begin with ``::``.

    GitHub would obey it as a command.
    """
    return one_line(text, None).replace("::", r"\u003a:")


def records_of_items(
    items: Sequence[CaseItem], runs: Sequence[int], ask: Ask
) -> list[list[Record]]:
    """The records of each item up to its number of runs; new questions are asked all at once."""
    trials_by_item = [
        [trial for trial in item.trials if not trial.later or trial.run <= most]
        for item, most in zip(items, runs, strict=True)
    ]
    graded = [{(record.arm, record.run): record for record in item._graded} for item in items]
    new = [
        (item, records, trial)
        for item, trials, records in zip(items, trials_by_item, graded, strict=True)
        for trial in trials
        if (trial.arm, trial.run) not in records
    ]
    to_grade = [ToGrade(trial, item.case, item.checks) for item, _, trial in new]
    sandbox = items[0].parent.run.settings.sandbox if items else "auto"
    for (item, records, trial), record in zip(new, records_of(to_grade, ask, sandbox), strict=True):
        records[trial.arm, trial.run] = record
        item._graded.append(record)
    return [
        [records[trial.arm, trial.run] for trial in trials]
        for trials, records in zip(trials_by_item, graded, strict=True)
    ]


def next_steps(item: pytest.Item, page: str, width: int | None = None) -> list[str]:
    """The last lines of a failure; ``width`` is None if they may have any length."""
    words = rerun_of(item.config).words(item.nodeid)
    rerun = command_lines("To run it again: ", words, sys.maxsize if width is None else width)
    return [*rerun, *([f"In the page: {page}"] if page else [])]


def link_to(test: PlannedCase, settings: Settings) -> str:
    """Where the HTML page has a test, once it is written."""
    if not settings.html_file:
        return ""
    file = shown(settings.html_file)
    if test.is_trigger:  # queries have no rows of their own
        return file
    from ..reports.html.case_data import case_anchor

    return f"{file}#{case_anchor(test.skill, test.case, test.label)}"
