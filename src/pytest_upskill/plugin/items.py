"""Tests of a skill's file: cases on models, broken ones, and how tests end."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from .._util.json_forms import Location
from .._util.keys import without_keys
from .._util.texts import harmless, one_line
from ..checks import AnyCheck, rubric_of, why_agent
from ..checks.grading import ToGrade, records_of
from ..checks.judging import Ask
from ..errors import CasesError, printable, shown
from ..reports.terminal.closing_lines import command_lines
from ..reports.terminal.failure import failure_text
from ..reports.terminal.layout import TerminalLook
from ..results.accepted import case_digest, case_result, planned_case
from ..results.oracle_results import oracle_faults
from ..results.regressions import Standing, fell, next_trial, standing_of
from ..settings import Settings
from ..skills.case import Case
from ..skills.loaded_cases import BrokenCase
from ..trials.plan import Count, PlannedCase
from ..trials.records import RECORDS_PROPERTY, Record, dump_records
from ..trials.subject import CHAT, ORACLE
from ..trials.trial import Trial
from .case_file import CaseFile
from .display import screen_of
from .next_command import rerun_of
from .paths import relative
from .pytest_options import FLAGS, message_of

BROKEN_PROPERTY: Final = "upskill_broken"  # why a skill or a case can't be tested
# Why a test failed, compared with all others
REGRESSION_PROPERTY: Final = "upskill_regression"
# An argument names a case that is not there
MISSING_PROPERTY: Final = "upskill_missing"
ASKED_PROPERTY: Final = "upskill_asked"  # what a test in Python asked
_PROPERTIES: Final = (
    *(RECORDS_PROPERTY, BROKEN_PROPERTY, REGRESSION_PROPERTY),
    *(MISSING_PROPERTY, ASKED_PROPERTY),
)


class NotAnswered(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """No answer, or no grade for it: an error even where a failure is expected."""

    __module__ = "builtins"  # short where pytest shows its name


class WrongAnswer(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """Answers that did not pass: the failure that an xfail of a case expects."""


class ItemOfFile(pytest.Item):
    """A test at the line of its case."""

    parent: CaseFile
    file: Path  # of the case
    place: Location
    line: int

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
            crash.path, crash.lineno = printable(str(self.path)), self._line
            crash.message = harmless(self._short_message(failure)).split("\n")[0]

    def _short_message(self, failure: BaseException) -> str:
        return str(failure)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        # pytest shows it beside the node id if they differ.
        return self.parent.printable_path, self._line - 1, self.name

    @property
    def _line(self) -> int:
        """The line of the case, if pytest collects the file that it is in."""
        return self.line if self.path == self.file else 1


class Unrunnable(ItemOfFile):
    """A skill that can't be tested, or a case that is not there:
    an ERROR with a message.

    Not an error of collection: pytest would run nothing else then,
    and xdist goes on regardless.
    """

    message: str
    line = 1
    file = Path()

    @classmethod
    def make(cls, parent: CaseFile, message: str, case: str = "") -> "Unrunnable":
        nodeid = f"{parent.nodeid}::{case}" if case else parent.nodeid
        name = case or parent.source.label
        item: Unrunnable = cls.from_parent(parent, name=name, nodeid=nodeid)
        item.message = message
        return item

    def setup(self) -> None:
        self.user_properties.append((BROKEN_PROPERTY, self.message))
        if self.nodeid != self.parent.nodeid:
            self.user_properties.append((MISSING_PROPERTY, True))
        raise NotAnswered(self.message, pytrace=False)

    def _short_message(self, failure: BaseException) -> str:  # noqa: ARG002
        """Without the file, which comes before it."""
        return self.message.removeprefix(f"{shown(self.path)}:").strip()

    def runtest(self) -> None:
        """Never called: setup fails."""


class BrokenCaseItem(ItemOfFile):
    """A case that can't be run: a failed test that says why, and asks nothing."""

    error: CasesError

    @classmethod
    def make(cls, parent: CaseFile, broken: BrokenCase) -> "BrokenCaseItem":
        nodeid = f"{parent.nodeid}::{broken.name}"
        item: BrokenCaseItem = cls.from_parent(parent, name=broken.name, nodeid=nodeid)
        item.place, item.line = broken.place, broken.line
        item.error = broken.error
        for mark in ("skill", *(["trigger"] if broken.is_trigger else [])):
            item.add_marker(mark)
        return item

    def setup(self) -> None:
        """A broken task is an error: nobody here wrote it."""
        if self.parent.source.task_files:
            self.user_properties.append((BROKEN_PROPERTY, self.message))
            raise NotAnswered(self.message, pytrace=False)

    def runtest(self) -> None:
        self.user_properties.append((BROKEN_PROPERTY, self.message))
        pytest.fail(self.message, pytrace=False)

    @property
    def message(self) -> str:
        return message_of(self.error, self.config)

    def _short_message(self, failure: BaseException) -> str:  # noqa: ARG002
        """Without the file and the line, which come before it."""
        return self.error.problem if self._is_here else self.message

    @property
    def _line(self) -> int:
        return self.line if self._is_here else 1

    @property
    def _is_here(self) -> bool:
        """Whether the mistake is in the file that pytest collects."""
        return self.error.where.startswith(shown(self.path))


class CaseItem(ItemOfFile):
    """A case on a model. A missing answer is an error, a wrong one is a failure."""

    case: Case
    checks: tuple[AnyCheck, ...]
    _planned: PlannedCase

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._records: list[Record] = []

    @classmethod
    def make(
        cls,
        parent: CaseFile,
        file: Path,
        case: Case,
        checks: tuple[AnyCheck, ...],
        trials: Sequence[Trial],
    ) -> "CaseItem":
        """``file`` is that of the case."""
        label, settings = trials[0].label, parent.run.settings
        name = f"{case.id}[{label}]"
        # From a whole node id pytest parses the parameter in brackets,
        # which --lf needs.
        item: CaseItem = cls.from_parent(
            parent, name=name, nodeid=f"{parent.nodeid}::{name}"
        )
        item.case, item.checks = case, checks
        item.file, item.place, item.line = file, case.place, case.line
        item._planned = planned_case(
            item.nodeid,
            case,
            trials,
            settings,
            digest=case_digest(case, parent.case_folder),
            folder=parent.source.folder,
            file=relative(file, parent.config.rootpath),
            accepted=parent.accepted,
            siblings=parent.siblings,
            of=parent.runnable[label][case.is_trigger],
        )
        for mark in ("skill", *(["trigger"] if case.is_trigger else []), *case.tags):
            item.add_marker(mark)
        is_oracle = item._planned.agent == ORACLE
        if reason := case.skip or (is_oracle and parent.not_played.get(case.id)):
            item.add_marker(pytest.mark.skip(reason=_reason(reason)))
        if case.xfail and not is_oracle:  # which no model has to solve
            item.add_marker(
                pytest.mark.xfail(reason=_reason(case.xfail), raises=WrongAnswer)
            )
        return item

    @property
    def trials(self) -> tuple[Trial, ...]:
        return self._planned.trials

    @property
    def planned(self) -> PlannedCase:
        """With its present marks and node id, which xdist's loadgroup changes."""
        compared = not is_expected_to_fail(self) and not self.parent.run.settings.aa
        compared = compared and self._planned.agent != ORACLE
        if (compared, self.nodeid) != (self._planned.compared, self._planned.nodeid):
            extra_trials = self._planned.extra_trials if compared else ()
            self._planned = replace(
                self._planned,
                compared=compared,
                extra_trials=extra_trials,
                nodeid=self.nodeid,
            )
        return self._planned

    def setup(self) -> None:
        """Get and grade the answers: a missing answer or grade is an error,
        not a failure.
        """
        run = self.parent.run
        if run.asks:
            grade_items([self], run.ask)
            if self.next_trial:
                run.groups.ask_further()
            self._require_answers()

    @property
    def records(self) -> Sequence[Record]:
        """What has been graded so far."""
        return self._records

    @property
    def next_trial(self) -> Trial | None:
        return next_trial(self.planned, self._records)

    def _require_answers(self) -> None:
        """NotAnswered if a trial of the records errored."""
        errors = [record.error for record in self._records if record.error is not None]
        if errors:
            self._attach_records()  # other trials may have been answered
            reasons = "\n".join(dict.fromkeys(map(harmless, errors)))
            replayed = self.parent.run.settings.replay_file
            text = f"{self.name}: {reasons}" if replayed else reasons
            commands = next_steps(self, "", screen_of(self.config).width)
            raise NotAnswered("\n".join([text, *commands]), pytrace=False)

    def runtest(self) -> None:
        """Fail unless enough runs with the skill passed; the oracle,
        if the case is not sound.
        """
        self._attach_records()
        if self._planned.agent == ORACLE:
            if oracle_faults(self._records):
                raise WrongAnswer(without_keys(self._failure_text(None)), pytrace=False)
            return
        planned, run = self.planned, self.parent.run
        result = case_result(self._records, planned.digest)
        assert result, "setup reports missing answers"
        standing = judge_present(
            self,
            run.settings,
            planned,
            result.count,
            lambda: run.groups.regression_of(planned.nodeid),
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
            has_skill=bool(self.case.skills) or not self.case.is_task,
            look=TerminalLook(screen.width, screen.marks, verbosity=verbosity),
        )
        link = link_to(self._planned, self.parent.run.settings)
        width = screen.width if verbosity < 2 else None
        blank = [""] if verbosity > 0 else []
        return "\n".join([text, *blank, *next_steps(self, link, width)])

    @property
    def lacks_judge(self) -> bool:
        """Only with --collect-only: in a run, such a case is broken."""
        lacks = (
            bool(rubric_of(self.checks).texts) and not self.parent.run.settings.judge
        )
        return lacks and self._planned.agent != ORACLE  # which skips it

    @property
    def lacks_agent(self) -> bool:
        """The same for a case that needs an agent."""
        return self._planned.agent == CHAT and bool(why_agent(self.case, self.checks))

    @property
    def lacks_user(self) -> bool:
        """The same for a user with facts that no model plays."""
        user = self.case.user if self._planned.agent not in (CHAT, ORACLE) else None
        return bool(user and user.facts) and not self.parent.run.settings.model_of_users


def _reason(text: str) -> str:
    """On one line. pytest may wrap it anywhere, and no line of a
    log may begin with ``::``.

    GitHub would obey it as a command.
    """
    return one_line(text, None).replace("::", r"\u003a:")


def grade_items(items: Iterable[CaseItem], ask: Ask) -> None:
    """Ask and grade all planned trials at once, unless that is done."""
    new = [item for item in items if not item.records]
    _grade([(item, trial) for item in new for trial in item.trials], ask)


def grade_further(items: Sequence[CaseItem], ask: Ask) -> None:
    """Ask and grade the extra trials that items need: one of each item at a time."""
    while trials := [(item, trial) for item in items if (trial := item.next_trial)]:
        _grade(trials, ask)


def _grade(trials: Sequence[tuple[CaseItem, Trial]], ask: Ask) -> None:
    if not trials:
        return

    settings = trials[0][0].parent.run.settings
    records = records_of(
        [ToGrade(trial, item.case, item.checks) for item, trial in trials],
        ask,
        settings.sandbox,
        network=settings.allow_network,
    )
    for (item, _), record in zip(trials, records, strict=True):
        item._records.append(record)


def next_steps(item: pytest.Item, page: str, width: int | None = None) -> list[str]:
    """The last lines of a failure; ``width`` is None if they may have any length."""
    words = rerun_of(item.config).words(item.nodeid)
    rerun = command_lines("Rerun: ", words, sys.maxsize if width is None else width)
    return [*rerun, *([f"In the page: {page}"] if page else [])]


def link_to(test: PlannedCase, settings: Settings) -> str:
    """Where the HTML page has a test, once it is written."""
    if not settings.html_file:
        return ""
    file = shown(settings.html_file)
    from ..reports.page.payload import case_anchor

    return f"{file}#{case_anchor(test.skill, test.case, test.label)}"


# How tests end.


def taken_properties(report: pytest.TestReport) -> dict[str, str]:
    """Take our properties off a report: JUnit and other plugins
    would write every answer.
    """
    properties = report.user_properties
    own = {name: str(value) for name, value in properties if name in _PROPERTIES}
    properties[:] = [pair for pair in properties if pair[0] not in own]
    return own


def judge_present(
    item: pytest.Item,
    settings: Settings,
    planned: PlannedCase,
    now: Count,
    among_others: Callable[[], Standing | None] = lambda: None,
) -> Standing | None:
    """Compare the runs of a test with its accepted result; None if they passed.

    If fewer pass than accepted, ``among_others`` tells whether that is a regression.
    Any other failure that was accepted, is accepted now, is the model's or could be
    chance becomes an xfail: by a mark, so that --runxfail and --xfail-tb work.
    """
    standing = standing_of(now, planned.threshold, planned.expected)
    if planned.compared and fell(now, planned.expected):
        standing = among_others() or standing
    if standing.kind == "regressed":
        item.user_properties.append((REGRESSION_PROPERTY, standing.reason))
    if standing.kind in ("passed", "better"):
        return None
    if settings.accept:
        standing = Standing(
            "accepted as failing", f"failing, in a run to accept ({now})"
        )
    elif settings.aa:
        standing = Standing(
            "accepted as failing", f"not judged with {FLAGS['aa']} ({now} passed)"
        )
    if standing.kind in ("accepted as failing", "could be chance"):
        item.add_marker(pytest.mark.xfail(reason=harmless(standing.reason)))
    return standing


def is_trigger(item: pytest.Item) -> bool:
    return isinstance(item, CaseItem) and item.planned.is_trigger


def is_beside_lift(item: pytest.Item) -> bool:
    """Whether a test is asked with the skill alone,
    so that it is no evidence for a verdict.
    """
    return isinstance(item, CaseItem) and not item.planned.in_lift


def is_skipped(item: pytest.Item) -> bool:
    """Whether pytest will skip the test, so that nothing needs to be asked.

    Only pytest evaluates a condition given as a string,
    so such a test is not taken as skipped.
    """
    for mark in item.iter_markers():
        if mark.name == "skip" or (mark.name == "skipif" and _holds(mark)):
            return True
        not_run = mark.name == "xfail" and mark.kwargs.get("run") is False
        if (
            not_run
            and _holds(mark)
            and not item.config.getoption("runxfail", default=False)
        ):
            return True
    return False


def is_expected_to_fail(item: pytest.Item) -> bool:
    """Whether an xfail mark of its own holds; a condition given as
    a string is not known to.
    """
    return any(map(_holds, item.iter_markers("xfail")))


def _holds(mark: pytest.Mark) -> bool:
    conditions = [mark.kwargs["condition"]] if "condition" in mark.kwargs else mark.args
    return not conditions or any(condition is True for condition in conditions)
