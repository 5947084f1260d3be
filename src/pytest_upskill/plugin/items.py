"""A case on a model as a pytest item: all arms inside, asked, judged, graded."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import pytest

from .._util.texts import harmless
from ..checks import AnyCheck, spans
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..reports.terminal.failure import Look, failure_text
from ..results.accepted import Count, Expectation, case_digest, case_result
from ..results.regressions import Standing, standing_of
from ..settings import Settings
from ..skills.cases import Case
from ..skills.skill import Skill
from ..trials.records import Record, Reply, dump_records
from ..trials.trial import Arm, CaseInfo, Question, Trial, trials_of
from .screen import screen_of

if TYPE_CHECKING:
    from .collect import SkillFile

RECORDS_PROPERTY: Final = "upskill"
ASKED_PROPERTY: Final = "upskill_asked"  # what a test in Python asked: keys and texts


class Run(Protocol):
    """What the nodes need of the run that they belong to."""

    settings: Settings
    model_ids: dict[str, str]  # by the names that the user wrote
    asks: bool  # else pytest only looks, as with --collect-only

    def ask(self, questions: Sequence[Question]) -> list[Reply]: ...

    def runs_of(self, item: "CaseItem") -> int:
        """How many runs count, of those that are asked only where the verdict is open."""
        ...


def hooks_of_parent(node: Any) -> Any:
    """The conftest files that count for a node are those of the node above.

    pytest finds them by a node's path, and would find none at all for a folder where it did
    not load any.
    """
    return node.parent.ihook


def is_passed_by(item: pytest.Item) -> bool:
    """Whether pytest will not run it, so that nothing has to be asked.

    A condition that is written as a text is pytest's to evaluate: such a test is asked for.
    """
    not_run = [mark for mark in item.iter_markers("xfail") if mark.kwargs.get("run") is False]
    conditional = [
        *item.iter_markers("skipif"),
        *([] if item.config.getoption("runxfail", False) else not_run),
    ]
    return any(item.iter_markers("skip")) or any(map(_holds, conditional))


def _holds(mark: pytest.Mark) -> bool:
    conditions = [mark.kwargs["condition"]] if "condition" in mark.kwargs else mark.args
    return not conditions or any(condition is True for condition in conditions)


class NotAnswered(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """No answer, or no grade for it: an error, whatever failure was expected."""

    __module__ = "builtins"  # as those of pytest: it is shown on a line with little room


def judge_present(
    item: pytest.Item, settings: Settings, info: CaseInfo, now: Count, expected: Expectation | None
) -> Standing | None:
    """What the present runs of a test are beside the accepted ones; None if they passed.

    A failure that was accepted, or is accepted now, or may be chance becomes an expected one:
    by a mark, so that --runxfail and --xfail-tb do what they say.
    """
    standing = standing_of(now, info.threshold, expected)
    if standing.kind in ("passed", "better"):
        return None
    if settings.accept:
        standing = Standing("accepted as failing", f"accepted as failing ({now})")
    if standing.kind in ("accepted as failing", "perhaps chance"):
        item.add_marker(pytest.mark.xfail(reason=harmless(standing.reason)))
    return standing


class WrongAnswer(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """Answers that did not pass. An xfail expects this, and not that there is no answer."""


class CaseItem(pytest.Item):
    """A case on a model."""

    parent: "SkillFile"
    case: Case
    checks: tuple[AnyCheck, ...]
    trials: list[Trial]
    expected: Expectation | None  # what is accepted of it
    ihook = property(hooks_of_parent)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._graded: dict[tuple[Arm, int], Record] = {}
        self._records: list[Record] = []

    @classmethod
    def make(
        cls, parent: "SkillFile", skill: Skill, case: Case, checks: tuple[AnyCheck, ...], model: str
    ) -> "CaseItem":
        name = f"{case.id}[{model}]"
        # Given as a whole, pytest knows the brackets for a parameter, as --lf needs it.
        item: CaseItem = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.case, item.checks = case, checks
        label, settings = parent.source.label, parent.run.settings
        rubric = rubric_for(checks, settings.judge)
        item.trials = trials_of(label, skill, case, model, settings, rubric)
        accepted = parent.accepted.get(model)
        item.expected = accepted.expectation(case.id, case_digest(case)) if accepted else None
        for mark in ("skill", *case.tags):
            item.add_marker(mark)
        if case.skip:
            item.add_marker(pytest.mark.skip(reason=harmless(case.skip)))
        if case.xfail:
            item.add_marker(pytest.mark.xfail(reason=harmless(case.xfail), raises=WrongAnswer))
        return item

    def setup(self) -> None:
        """Fetch the answers and grade them: what has no grade is an error, not a failure."""
        if not self.parent.run.asks:
            return
        run = self.parent.run
        (self._records,) = records_of_items([self], run.runs_of(self), run.ask)
        errors = [record.error for record in self._records if record.error is not None]
        if errors:
            self._send_records()  # of the other trials too: what was answered is not lost
            told = "\n".join(dict.fromkeys(map(harmless, errors)))
            replayed = self.parent.run.settings.replay_file
            raise NotAnswered(f"{self.name}: {told}" if replayed else told, pytrace=False)

    def runtest(self) -> None:
        """The skill's answers must pass in enough of the runs."""
        self._send_records()
        info, settings = self.info, self.parent.run.settings
        result = case_result(self._records, info.digest)
        assert result, "an answer is missing, which is told in the setup"
        standing = judge_present(self, settings, info, result.count, self.expected)
        if standing:
            told = standing.reason if standing.kind == "regressed" else None
            raise WrongAnswer(self._failure_text(told), pytrace=False)

    def _failure_text(self, standing: str | None) -> str:
        screen = screen_of(self.config)
        expected = [self.case.expected]
        if self.case.validator:
            expected.append(dict([self.case.validator]))
        return failure_text(
            self.trials[0].question.messages[-1][1],
            self._records,
            expected=expected,
            found=lambda answer: spans(self.checks, answer),
            against=self.parent.info.against,
            standing=standing,
            look=Look(screen.width, self.config.get_verbosity(), screen.marks),
        )

    @property
    def info(self) -> CaseInfo:
        """For the accepted results, which are compared and written elsewhere."""
        file, settings = self.parent, self.parent.run.settings
        return CaseInfo(
            folder=str(file.source.folder),
            digest=case_digest(self.case),
            file=file.cases_path,
            line=self.case.line,
            threshold=self.case.threshold or settings.case_threshold,
            compared=not any(self.iter_markers("xfail")),
            siblings=file.siblings,
            of=file.runnable[self.trials[0].model],
            tags=self.case.tags,
        )

    def _send_records(self) -> None:
        """They travel on the test's own report."""
        self.user_properties[:] = [(RECORDS_PROPERTY, dump_records(self._records))]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        shown: Any = super().repr_failure(excinfo, style)
        crash = getattr(shown, "reprcrash", None)
        if crash and isinstance(excinfo.value, pytest.fail.Exception):
            # What the short summary, JUnit and --tb=line say: one line, and not of this file.
            crash.path, crash.lineno = str(self.path), self._line
            crash.message = str(excinfo.value).split("\n")[0]
            if self.config.getoption("tbstyle", None) == "line":
                shown.reprtraceback.reprentries.clear()
        return shown

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, self._line - 1, self.name

    @property
    def _line(self) -> int:
        """Where the case stands; in another file than pytest's own for the skill, nowhere."""
        return self.case.line if self.path == self.parent.source.cases_file else 1


def records_of_items(items: Sequence[CaseItem], runs: int, ask: Ask) -> list[list[Record]]:
    """The records of each of some items, for so many runs. What is new is asked all at once."""
    wanted = [
        [trial for trial in item.trials if not trial.later or trial.run <= runs] for item in items
    ]
    new = [
        (item, trial)
        for item, trials in zip(items, wanted, strict=True)
        for trial in trials
        if (trial.arm, trial.run) not in item._graded
    ]
    records = records_of([ToGrade(trial, item.case, item.checks) for item, trial in new], ask)
    for (item, trial), record in zip(new, records, strict=True):
        item._graded[trial.arm, trial.run] = record
    return [
        [item._graded[trial.arm, trial.run] for trial in trials]
        for item, trials in zip(items, wanted, strict=True)
    ]
