"""A case on a model as a pytest item."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from .._util.keys import without_keys
from .._util.texts import one_line
from ..checks import AnyCheck, rubric_of, why_agent
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..reports.terminal.failure import failure_text
from ..reports.terminal.layout import Look
from ..results.accepted import planned_case
from ..skills.case import Case
from ..skills.skill import Skill
from ..trials.outfit import Outfit
from ..trials.records import Record
from ..trials.subject import CHAT, Subject
from ..trials.trial import Prompt, trials_of
from .again import link_to, what_to_do
from .asked_item import AskedItem
from .display import screen_of
from .outcomes import WrongAnswer

if TYPE_CHECKING:
    from .nodes import SkillFile


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
        parent: "SkillFile",
        skill: Skill,
        case: Case,
        checks: tuple[AnyCheck, ...],
        subject: Subject,
        prompt: Prompt,
        outfit: Outfit | None,
    ) -> "CaseItem":
        name = f"{case.id}[{subject.label}]"
        # From a whole node id pytest parses the parameter in brackets, which --lf needs.
        item: CaseItem = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.case, item.checks = case, checks
        item.place, item.line = case.place, case.line
        label, settings = parent.source.label, parent.run.settings
        rubric = rubric_for(checks, settings.judge, skill)
        item._planned = planned_case(
            item.nodeid,
            case,
            trials_of(
                label,
                skill,
                case,
                subject.model,
                settings,
                rubric,
                prompt,
                outfit,
            ),
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
            (self._records,) = records_of_items([self], [run.runs_of(self)], run.ask)
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
        link = link_to(self._planned, self.parent.run.settings)
        width = screen.width if verbosity < 2 else None
        text = failure_text(
            self.trials[0].question.messages[-1][1],
            self._records,
            expected=expected,
            against=self.parent.info.against,
            standing=regression,
            look=Look(screen.width, screen.marks, verbosity=verbosity),
        )
        return "\n".join([text, "", *what_to_do(self, link, width)])

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
    wanted = [
        [trial for trial in item.trials if not trial.later or trial.run <= most]
        for item, most in zip(items, runs, strict=True)
    ]
    known = [{(one.arm, one.run): one for one in item._graded} for item in items]
    new = [
        (item, own, trial)
        for item, trials, own in zip(items, wanted, known, strict=True)
        for trial in trials
        if (trial.arm, trial.run) not in own
    ]
    to_grade = [ToGrade(trial, item.case, item.checks) for item, _, trial in new]
    sandbox = items[0].parent.run.settings.sandbox if items else "auto"
    records = records_of(to_grade, ask, sandbox)
    for (item, own, trial), record in zip(new, records, strict=True):
        own[trial.arm, trial.run] = record
        item._graded.append(record)
    return [
        [own[trial.arm, trial.run] for trial in trials]
        for trials, own in zip(wanted, known, strict=True)
    ]
