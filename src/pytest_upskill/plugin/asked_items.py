"""Tests that ask something: a case, or a query of a trigger, on a model."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from .._util.keys import without_keys
from .._util.texts import harmless, one_line
from ..checks import AnyCheck, rubric_of, why_agent
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..errors import shown
from ..reports.terminal.closing_lines import command_lines
from ..reports.terminal.failure import failure_text
from ..reports.terminal.layout import TerminalLook
from ..reports.terminal.trigger_lines import trigger_failure
from ..results.accepted import case_result, planned_case
from ..results.regressions import Standing
from ..results.trigger_summary import query_rate
from ..settings import Settings
from ..skills.case import Case
from ..skills.skill import Skill
from ..skills.trigger_loading import Trigger
from ..trials.arm import Arm
from ..trials.plan import PlannedCase
from ..trials.records import Record, dump_records
from ..trials.subject import CHAT, Subject
from ..trials.trial import Prompt, Trial, trials_of
from ..trials.trigger_trials import trigger_record, trigger_trials
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


class AskedItem(ItemOfFile):
    """A test of answers. A missing answer is an error, a wrong one is a failure."""

    _planned: PlannedCase

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._records: list[Record] = []

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

    def _wrong(self) -> Standing | None:
        """Why the test fails, if it does: too few of its runs were right."""
        self._attach_records()
        planned, run = self.planned, self.parent.run
        result = case_result(self._records, planned.digest)
        assert result, "setup reports missing answers"
        return judge_present(
            self, run.settings, planned, result.count, lambda: run.regression_of(planned)
        )

    def _attach_records(self) -> None:
        """Attach the records to the test's report."""
        self.user_properties[:] = [(RECORDS_PROPERTY, dump_records(self._records))]


class CaseItem(AskedItem):
    """A case on a model."""

    case: Case
    checks: tuple[AnyCheck, ...]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._graded: list[Record] = []

    @classmethod
    def make(
        cls,
        parent: SkillNode,
        skill: Skill,
        case: Case,
        checks: tuple[AnyCheck, ...],
        subject: Subject,
        prompt: Prompt,
        arms: Sequence[Arm],
    ) -> "CaseItem":
        name = f"{case.id}[{subject.label}]"
        # From a whole node id pytest parses the parameter in brackets, which --lf needs.
        item: CaseItem = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.case, item.checks = case, checks
        item.place, item.line = case.place, case.line
        label, settings = parent.source.label, parent.run.settings
        rubric = rubric_for(checks, settings.judge, skill)
        version = parent.run.subjects.version_of(subject.agent)
        item._planned = planned_case(
            item.nodeid,
            case,
            trials_of(label, case, subject, arms, settings, rubric, prompt, version=version),
            settings,
            folder=parent.source.folder,
            file=parent.cases_path,
            accepted=parent.accepted,
            siblings=parent.siblings,
            of=parent.runnable[subject.label],
        )
        for mark in ("skill", *case.tags):
            item.add_marker(mark)
        if case.skip:
            item.add_marker(pytest.mark.skip(reason=_reason(case.skip)))
        if case.xfail:
            item.add_marker(pytest.mark.xfail(reason=_reason(case.xfail), raises=WrongAnswer))
        return item

    def setup(self) -> None:
        """Get and grade the answers: a missing answer or grade is an error, not a failure."""
        run = self.parent.run
        if run.asks:
            (self._records,) = records_of_items([self], [run.runs_of(self.planned)], run.ask)
            self._require_answers()

    def runtest(self) -> None:
        """Fail unless enough runs with the skill passed."""
        if standing := self._wrong():
            reason = standing.reason if standing.kind == "regressed" else None
            raise WrongAnswer(without_keys(self._failure_text(reason)), pytrace=False)

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


class TriggerItem(AskedItem):
    """A query on a model: is the skill opened when it should be, and only then?"""

    trigger: Trigger

    @classmethod
    def make(
        cls, parent: SkillNode, trigger: Trigger, subject: Subject, arms: Sequence[Arm]
    ) -> "TriggerItem":
        name = f"{trigger.id}[{subject.label}]"
        item: TriggerItem = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.trigger, item.place, item.line = trigger, trigger.place, trigger.line
        source, settings, queries = parent.source, parent.run.settings, parent.queries
        item._planned = planned_case(
            item.nodeid,
            trigger,
            trigger_trials(
                source.label,
                trigger,
                subject,
                arms,
                settings,
                version=parent.run.subjects.version_of(subject.agent),
                runs=settings.trigger_runs,
            ),
            settings,
            folder=source.folder,
            file=relative(trigger.file, parent.config.rootpath),
            accepted=parent.accepted,
            siblings=tuple(query.id for query in queries.triggers),
            of=len(queries.triggers) + len(queries.broken),
        )
        for mark in ("skill", "trigger"):
            item.add_marker(mark)
        return item

    def setup(self) -> None:
        """Get the decisions: a trial that decided nothing is an error, not a failure."""
        run = self.parent.run
        if run.asks:
            (self._records,) = records_of_queries([self], run.ask)
            self._require_answers()

    def runtest(self) -> None:
        """Fail unless enough runs decided right."""
        if standing := self._wrong():
            planned = self._planned
            text = trigger_failure(
                query_rate(planned, self.trigger.query, self._records),
                self._records,
                standing=standing.reason if standing.kind == "regressed" else "",
                where=self.trigger.location,
            )
            link, width = link_to(planned, self.parent.run.settings), screen_of(self.config).width
            text = "\n".join([text, *next_steps(self, link, width)])
            raise WrongAnswer(without_keys(text), pytrace=False)

    @property
    def _line(self) -> int:
        return self.line if self.path == self.trigger.file else 1


def records_of_queries(items: Sequence[TriggerItem], ask: Ask) -> list[list[Record]]:
    """The records of each item; new questions are asked all at once."""
    new = [item for item in items if not item._records]
    replies = iter(ask([trial.question for item in new for trial in item.trials]))
    for item in new:
        should_trigger = item.trigger.should_trigger
        item._records = [
            trigger_record(trial, next(replies), should_trigger) for trial in item.trials
        ]
    return [item._records for item in items]


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
    if test.should_trigger is not None:  # queries have no rows of their own
        return file
    from ..reports.html.case_data import case_anchor

    return f"{file}#{case_anchor(test.skill, test.case, test.label)}"
