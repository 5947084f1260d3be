"""Skills and their cases as pytest nodes: folder, file, item."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from .._util.json_forms import Location, cases_error
from .._util.texts import harmless
from ..checks import (
    AnyCheck,
    CheckedCase,
    load_checked_cases,
    rubric_of,
    spans,
)
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..errors import CasesError, InputError, shown
from ..reports.terminal.failure import failure_text
from ..reports.terminal.layout import Look
from ..results.accepted import Results, case_result, planned_case, read_results
from ..settings import Settings
from ..skills.case import BrokenCase, Case, LoadedCases, broken_case, how_to_add_cases
from ..skills.context import load_for_run
from ..skills.folder import CASES_NAME
from ..skills.skill import Skill
from ..trials.answer import Reply
from ..trials.plan import PlannedCase, SkillInfo, score_of
from ..trials.records import Record, dump_records
from ..trials.trial import Arm, Prompt, Question, Trial, trials_of
from .display import screen_of
from .hooks import prompts, registered_checks
from .options import message_of, spell
from .outcomes import RECORDS_PROPERTY, NotAnswered, WrongAnswer, judge_present
from .paths import SkillSource, relative

_NO_JUDGE: Final = "this needs a judge; add --skill-judge MODEL"


class Run(Protocol):
    """What nodes need from their run."""

    settings: Settings
    model_ids: dict[str, str]  # by the names that the user gave
    asks: bool  # False with --collect-only and the like

    def ask(self, questions: Sequence[Question]) -> list[Reply]: ...

    def runs_of(self, item: "CaseItem") -> int:
        """How many runs to make: more than the first few only if the verdict is open."""
        ...


class SkillWarning(pytest.PytestWarning):
    """A skill is valid, but something about it looks wrong."""


def info_of(
    skill: Skill, label: str, path: str, settings: Settings, cases: Iterable[Case] = ()
) -> SkillInfo:
    against = settings.against if skill.previous is not None else None
    return SkillInfo.of(skill, label, path, against, score_of(settings.score, cases))


def _warn_of(skill: Skill) -> None:
    """One warning for a skill; lint shows everything."""
    first, *more = skill.warnings
    text = first.message
    if more:
        lint = f"pytest-upskill lint {shown(skill.file.parent)}"
        text = f"{len(more) + 1} problems with its form ({lint}), first: {text}"
    text = harmless(text)
    try:
        warnings.warn_explicit(SkillWarning(text), None, str(skill.file), first.line)
    except SkillWarning:  # -W error
        reason = f"{shown(skill.file)}:{first.line}: {text}"
        raise pytest.Collector.CollectError(reason) from None


def hooks_of_parent(node: Any) -> Any:
    """Use the conftest files of the parent node.

    pytest looks them up by path, and finds none at all in a folder where it loaded none.
    """
    return node.parent.ihook


class SkillFolder(pytest.Collector):
    """A folder that is collected only because of --skill: a skill, or a parent of one.

    Unlike pytest's own node it imports no conftest.py: testing a skill must not run its code.
    """

    run: Run
    sources: Sequence[SkillSource]
    ihook = property(hooks_of_parent)

    @classmethod
    def make(
        cls, parent: pytest.Collector, path: Path, sources: Sequence[SkillSource], run: Run
    ) -> "SkillFolder":
        node: SkillFolder = cls.from_parent(parent, name=path.name, path=path)
        node.sources, node.run = sources, run
        return node

    def collect(self) -> Iterator[pytest.Collector]:
        below: dict[Path, list[SkillSource]] = {}
        for source in self.sources:
            if source.file.parent == self.path:
                yield SkillFile.make(self, source, self.run)
            else:
                step = source.file.relative_to(self.path).parts[0]
                below.setdefault(self.path / step, []).append(source)
        for path, sources in below.items():
            yield SkillFolder.make(self, path, sources, self.run)


class SkillFile(pytest.File):
    """The file of a skill's cases."""

    source: SkillSource
    run: Run
    info: SkillInfo
    accepted: Results
    cases_path: str  # relative to the rootdir
    siblings: tuple[str, ...]  # ids of all cases in the skill's own file
    runnable: dict[str, int]  # by model: the number of its cases that are not skipped
    ihook = property(hooks_of_parent)

    @classmethod
    def make(cls, parent: pytest.Collector, source: SkillSource, run: Run) -> "SkillFile":
        # pytest gives all files outside the rootdir the same empty node id.
        nodeid = relative(source.file, parent.config.rootpath)
        node: SkillFile = cls.from_parent(parent, path=source.file, nodeid=nodeid)
        node.source, node.run = source, run
        return node

    def collect(self) -> Iterator[pytest.Item]:
        try:
            skill = load_for_run(self.source.skill_file, self.run.settings)
            loaded = self._load_cases()
            self.accepted = read_results(self.source.folder)
        except InputError as error:
            raise self.CollectError(message_of(error, self.config)) from None
        if skill.warnings:
            _warn_of(skill)
        for line, text in loaded.warnings:
            warnings.warn_explicit(SkillWarning(text), None, str(loaded.file), lineno=line)
        cases = loaded.cases
        root = self.config.rootpath
        path = relative(self.source.folder, root)
        asked = [case for case, _ in cases]
        self.info = info_of(skill, self.source.label, path, self.run.settings, asked)
        self.cases_path = relative(self.source.cases_file or self.path, root)
        own = self.source.cases_file == self.path
        ids = [*(case.id for case, _ in cases), *(broken.name for broken in loaded.broken)]
        self.siblings = tuple(ids) if own else ()
        # A broken case counts, so that the run is known to lack it.
        self.runnable = {
            model: sum(not case.skip and case.is_for(model, model_id) for case, _ in cases)
            + len(loaded.broken)
            for model, model_id in self.run.model_ids.items()
        }
        for tag in sorted({tag for case, _ in cases for tag in case.tags}):
            self.config.addinivalue_line("markers", f"{tag}: tag of skill cases.")
        prompt = prompts(self.ihook, self.config)
        try:
            items: list[CaseItem | BrokenCaseItem] = [
                CaseItem.make(self, skill, case, checks, model, prompt)
                for case, checks in cases
                for model, model_id in self.run.model_ids.items()
                if case.is_for(model, model_id)
            ]
        except InputError as error:
            raise self.CollectError(str(error)) from None
        items += [BrokenCaseItem.make(self, broken) for broken in loaded.broken]
        if not items:
            text = f"no case is for {', '.join(self.run.model_ids)}"
            warnings.warn_explicit(SkillWarning(text), None, str(self.source.cases_file), lineno=1)
        yield from sorted(items, key=lambda item: item.place)  # as in the file

    def _load_cases(self) -> LoadedCases[CheckedCase]:
        folder, file = self.source.folder, self.source.cases_file
        if file is None:
            how = how_to_add_cases(folder / CASES_NAME)
            raise CasesError(folder, "this skill has no cases", how)
        loaded = load_checked_cases(
            file,
            registered_checks(self.ihook, self.config),
            folder=folder,
            allow_code=self.run.settings.allow_code,
            allowed_by=spell("allow_code"),
        )
        return loaded if self.run.settings.judge else _without_judge(loaded)


def _without_judge(loaded: LoadedCases[CheckedCase]) -> LoadedCases[CheckedCase]:
    """Cases with a rubric can't run; if no other can either, that is one error for the file."""
    judged = [case for case, checks in loaded.cases if rubric_of(checks).texts]
    if judged and len(judged) == len(loaded.cases):
        raise cases_error(loaded.file, [(judged[0].place, _NO_JUDGE)])
    return loaded.only(
        [one for one in loaded.cases if one[0] not in judged],
        [broken_case(loaded.file, case, [(case.place, _NO_JUDGE)]) for case in judged],
    )


class ItemOfFile(pytest.Item):
    """A test at the line of its case."""

    parent: "SkillFile"
    place: Location
    line: int
    ihook = property(hooks_of_parent)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        shown: Any = super().repr_failure(excinfo, style)
        crash = getattr(shown, "reprcrash", None)
        if crash and isinstance(excinfo.value, pytest.fail.Exception):
            # For the short summary, JUnit and --tb=line: one line, at the place of the case.
            crash.path, crash.lineno = str(self.path), self._line
            crash.message = self._in_short(excinfo.value).split("\n")[0]
            if self.config.getoption("tbstyle", None) == "line":
                shown.reprtraceback.reprentries.clear()
        return shown

    def _in_short(self, failure: BaseException) -> str:
        return str(failure)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, self._line - 1, self.name

    @property
    def _line(self) -> int:
        """The line of the case, if pytest collects the file that it is in."""
        return self.line if self.path == self.parent.source.cases_file else 1


class BrokenCaseItem(ItemOfFile):
    """A case that can't be run: a failed test that says why, and asks nobody."""

    error: CasesError

    @classmethod
    def make(cls, parent: "SkillFile", broken: BrokenCase) -> "BrokenCaseItem":
        nodeid = f"{parent.nodeid}::{broken.name}"
        item: BrokenCaseItem = cls.from_parent(parent, name=broken.name, nodeid=nodeid)
        item.place, item.line = broken.place, broken.line
        item.error = broken.error
        item.add_marker("skill")
        return item

    def runtest(self) -> None:
        pytest.fail(message_of(self.error, self.config), pytrace=False)

    def _in_short(self, failure: BaseException) -> str:  # noqa: ARG002
        """Without the file and the line, which stand before it."""
        return self.error.problem


class CaseItem(ItemOfFile):
    """A case on a model."""

    case: Case
    checks: tuple[AnyCheck, ...]
    _planned: PlannedCase

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._graded: dict[tuple[Arm, int], Record] = {}
        self._records: list[Record] = []

    @classmethod
    def make(
        cls,
        parent: "SkillFile",
        skill: Skill,
        case: Case,
        checks: tuple[AnyCheck, ...],
        model: str,
        prompt: Prompt,
    ) -> "CaseItem":
        name = f"{case.id}[{model}]"
        # From a whole node id pytest parses the parameter in brackets, which --lf needs.
        item: CaseItem = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.case, item.checks = case, checks
        item.place, item.line = case.place, case.line
        label, settings = parent.source.label, parent.run.settings
        rubric = rubric_for(checks, settings.judge)
        item._planned = planned_case(
            item.nodeid,
            case,
            trials_of(label, skill, case, model, settings, rubric, prompt),
            settings,
            folder=parent.source.folder,
            file=parent.cases_path,
            accepted=parent.accepted,
            siblings=parent.siblings,
            of=parent.runnable[model],
        )
        for mark in ("skill", *case.tags):
            item.add_marker(mark)
        if case.skip:
            item.add_marker(pytest.mark.skip(reason=harmless(case.skip)))
        if case.xfail:
            item.add_marker(pytest.mark.xfail(reason=harmless(case.xfail), raises=WrongAnswer))
        return item

    def setup(self) -> None:
        """Get and grade the answers: a missing answer or grade is an error, not a failure."""
        if not self.parent.run.asks:
            return
        run = self.parent.run
        (self._records,) = records_of_items([self], run.runs_of(self), run.ask)
        errors = [record.error for record in self._records if record.error is not None]
        if errors:
            self._send_records()  # other trials may have been answered
            reasons = "\n".join(dict.fromkeys(map(harmless, errors)))
            replayed = self.parent.run.settings.replay_file
            raise NotAnswered(f"{self.name}: {reasons}" if replayed else reasons, pytrace=False)

    def runtest(self) -> None:
        """Fail unless enough runs with the skill passed."""
        self._send_records()
        planned, settings = self.planned, self.parent.run.settings
        result = case_result(self._records, planned.digest)
        assert result, "setup reports missing answers"
        standing = judge_present(self, settings, planned, result.count)
        if standing:
            reason = standing.reason if standing.kind == "regressed" else None
            raise WrongAnswer(self._failure_text(reason), pytrace=False)

    def _failure_text(self, regression: str | None) -> str:
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
            standing=regression,
            look=Look(screen.width, screen.marks, verbosity=self.config.get_verbosity()),
        )

    @property
    def planned(self) -> PlannedCase:
        """With the marks that it has by now."""
        return replace(self._planned, compared=not any(self.iter_markers("xfail")))

    @property
    def trials(self) -> tuple[Trial, ...]:
        return self._planned.trials

    def _send_records(self) -> None:
        """Attach the records to the test's report."""
        self.user_properties[:] = [(RECORDS_PROPERTY, dump_records(self._records))]


def records_of_items(items: Sequence[CaseItem], runs: int, ask: Ask) -> list[list[Record]]:
    """The records of each item up to a number of runs; new questions are asked all at once."""
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
