"""Tests of a skill's file: cases on models, broken ones, and how tests end."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from .._util.json_forms import Location
from .._util.keys import without_keys
from .._util.texts import harmless
from ..checks import AnyCheck
from ..errors import CasesError, InputError, printable, shown
from ..results.outcomes import count_passes, next_trial, reaches
from ..results.standings import Standing, StandingKind
from ..settings import Settings
from ..skills.case import Case
from ..trials.plan import PlannedCase
from ..trials.records import RECORDS_PROPERTY, Record, dump_records
from ..trials.subject import ORACLE
from ..trials.trial import Trial
from .display import screen_of
from .hooks import call_for
from .pytest_options import FLAGS, message_of
from .run import PLANNED, RUN, PlannedTest, Run, is_skipped, planned_of

BROKEN_PROPERTY: Final = "upskill_broken"  # why a skill or a case can't be tested
# Why a test failed, compared with all others
REGRESSION_PROPERTY: Final = "upskill_regression"
# An argument names a case that is not there
MISSING_PROPERTY: Final = "upskill_missing"
ASKED_PROPERTY: Final = "upskill_asked"  # what a test in Python asked
_PROPERTIES: Final = (
    RECORDS_PROPERTY,
    BROKEN_PROPERTY,
    REGRESSION_PROPERTY,
    MISSING_PROPERTY,
    ASKED_PROPERTY,
)


class NotAnswered(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """No answer, or no grade for it: an error even where a failure is expected."""

    __module__ = "builtins"  # short where pytest shows its name


class WrongAnswer(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """Answers that did not pass: the failure that an xfail of a case expects."""


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


class Unrunnable(ItemOfFile):
    """A skill that can't be tested, or a case that is not there:
    an ERROR with a message.

    Not an error of collection: pytest would run nothing else then,
    and xdist goes on regardless.
    """

    def __init__(self, *, message: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.message = message

    def setup(self) -> None:
        self.user_properties.append((BROKEN_PROPERTY, self.message))
        if self.nodeid != self.parent.nodeid:
            self.user_properties.append((MISSING_PROPERTY, True))
        raise NotAnswered(self.message, pytrace=False)

    def _shorten_message(self, message: str) -> str:
        """Without the file, which comes before it."""
        first = message.split("\n")[0]
        return first.removeprefix(f"{shown(self.path)}:").strip()

    def runtest(self) -> None:
        """Never called: setup fails."""


class BrokenCaseItem(ItemOfFile):
    """A case that can't be run: a failed test that says why, and asks nothing.

    It is an error if nobody here ``can_mend`` it, as a task of a benchmark.
    """

    def __init__(self, *, error: CasesError, can_mend: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._error = error
        self._can_mend = can_mend
        # Whether the mistake is in the file that pytest collects.
        self._is_here = error.where.startswith(shown(self.path))
        if not self._is_here:
            self.line = 1

    def setup(self) -> None:
        if not self._can_mend:
            self.user_properties.append((BROKEN_PROPERTY, self.message))
            raise NotAnswered(self.message, pytrace=False)

    def runtest(self) -> None:
        self.user_properties.append((BROKEN_PROPERTY, self.message))
        pytest.fail(self.message, pytrace=False)

    @property
    def message(self) -> str:
        return message_of(self._error, self.config)

    def _shorten_message(self, message: str) -> str:
        """Without the file and the line, which come before it."""
        text = self._error.problem if self._is_here else message
        return super()._shorten_message(text)


class CaseItem(ItemOfFile):
    """A case on a model. A missing answer is an error, a wrong one is a failure."""

    def __init__(
        self,
        *,
        case: Case,
        checks: tuple[AnyCheck, ...],
        test: PlannedTest,
        why_not_played: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.case = case
        self.checks = checks
        self.why_not_played = why_not_played
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
        commands = next_steps(self, "", screen_of(self.config).width)
        raise NotAnswered("\n".join([text, *commands]), pytrace=False)

    def runtest(self) -> None:
        """Fail unless enough runs with the skill passed; the oracle,
        if the case is not sound.
        """
        self._attach_records()
        planned = self.planned
        reason = None
        if planned.agent == ORACLE:
            from ..results.oracle_results import oracle_faults

            if not oracle_faults(self.records):
                return
        else:
            standing = judge_present(self, self._run.settings, planned, self.records)
            if standing is None:
                return
            if standing.kind == "regressed":
                reason = standing.reason
        raise WrongAnswer(without_keys(self._failure_text(reason)), pytrace=False)

    def _attach_records(self) -> None:
        """Attach the records to the test's report."""
        self.user_properties[:] = [(RECORDS_PROPERTY, dump_records(self.records))]

    def _failure_text(self, regression: str | None) -> str:
        from ..reports.terminal.failure import failure_text
        from ..reports.terminal.layout import TerminalLook

        test = self.stash[PLANNED]
        screen = screen_of(self.config)
        verbosity = self.config.get_verbosity()
        expected = [self.case.expected]
        if self.case.validator:
            expected.append(dict([self.case.validator]))
        lines = [
            failure_text(
                test.case.trials[0].question.messages[-1][1],
                self.records,
                expected=expected,
                against=test.skill.against,
                standing=regression,
                has_skill=bool(self.case.skills) or not self.case.is_task,
                look=TerminalLook(screen.width, screen.marks, verbosity=verbosity),
            )
        ]
        if verbosity > 0:
            lines.append("")
        width = screen.width if verbosity < 2 else None
        page = link_to(test.case, self._run.settings)
        return "\n".join([*lines, *next_steps(self, page, width)])


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
        needed: Sequence[Trial | None] = case.planned.trials
        if case.records:
            needed = [next_trial(case.planned, case.records)]
        for trial in needed:
            if trial:
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


def next_steps(item: pytest.Item, page: str, width: int | None = None) -> list[str]:
    """The last lines of a failure; ``width`` is None if they may have any length."""
    from ..reports.terminal.closing_lines import command_lines
    from .next_command import rerun_of

    words = rerun_of(item.config).words(item.nodeid)
    lines = command_lines("Rerun: ", words, sys.maxsize if width is None else width)
    if page:
        lines = [*lines, f"In the page: {page}"]
    return lines


def link_to(test: PlannedCase, settings: Settings) -> str:
    """Where the HTML page has a test, once it is written."""
    if not settings.html_file:
        return ""
    from ..reports.page.payload import case_anchor

    file = shown(settings.html_file)
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
    records: Sequence[Record],
) -> Standing | None:
    """How a test ends that has its grades: None if it passes.

    It fails by its own runs, unless a hook expects that: then it is an xfail, by a
    mark, so that --runxfail and --xfail-tb work.
    """
    now = count_passes(records)
    assert now, "setup reports missing answers"
    try:
        hook = item.ihook.pytest_upskill_graded
        standing = call_for(Standing, hook, item=item, case=planned, records=records)
    except InputError as error:
        raise NotAnswered(str(error), pytrace=False) from None
    if standing is None:
        kind: StandingKind = "passed" if reaches(now, planned.threshold) else "failed"
        standing = Standing(kind)
    if standing.kind == "regressed":
        item.user_properties.append((REGRESSION_PROPERTY, standing.reason))
    if standing.kind in ("passed", "better"):
        return None

    if settings.aa:
        reason = f"not judged with {FLAGS['aa']} ({now} passed)"
        standing = Standing("accepted as failing", reason)
    if standing.kind in ("accepted as failing", "could be chance"):
        item.add_marker(pytest.mark.xfail(reason=harmless(standing.reason)))
    return standing
