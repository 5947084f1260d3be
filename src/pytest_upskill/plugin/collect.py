"""A skill's cases as pytest items: one for each case on each model, both arms inside."""

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from ..cases import Case, how_to_add_cases
from ..checks import TAKEN, AnyCheck, CheckedCase, grade, load_checked_cases, registered_kinds
from ..errors import CasesError, CheckError, InputError
from ..records import (
    NoAnswer,
    Record,
    Reply,
    dump_records,
    errored_record,
    graded_record,
)
from ..reports.failure import failure_text
from ..settings import Settings
from ..skills import CASES_NAME, EVALS_NAME, Skill, load_skill
from ..trials import Question, SkillInfo, Trial, trials_of

RECORDS_PROPERTY: Final = "upskill"


class Run(Protocol):
    """What the nodes need of the run that they belong to."""

    settings: Settings
    model_ids: dict[str, str]  # by the names that the user wrote
    asks: bool  # else pytest only looks, as with --collect-only

    def ask(self, questions: Sequence[Question]) -> list[Reply]: ...


class SkillWarning(pytest.PytestWarning):
    """Something about a skill is odd, but not wrong."""


@dataclass(frozen=True)
class SkillSource:
    """Where a skill and its cases are; ``file`` is the one that pytest collects for it."""

    label: str
    skill_file: Path
    cases_file: Path | None

    @property
    def folder(self) -> Path:
        return self.skill_file.parent

    @property
    def file(self) -> Path:
        inside = self.cases_file and self.cases_file.is_relative_to(self.folder)
        return self.cases_file if inside and self.cases_file else self.skill_file


def sources_of(
    skill_files: Sequence[Path], tests_file: Path | None, root: Path
) -> list[SkillSource]:
    """The skills of a run; two of one name are told apart by their paths."""
    names = [file.parent.name for file in skill_files]
    sources = []
    for file, name in zip(skill_files, names, strict=True):
        label = name if names.count(name) == 1 else relative(file.parent, root)
        own = (file.parent / name for name in (CASES_NAME, EVALS_NAME))
        found = next((path for path in own if path.is_file()), None)
        sources.append(SkillSource(label, file, tests_file or found))
    return sources


def relative(path: Path, root: Path) -> str:
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive of Windows
        return path.as_posix()


def _hooks_of_parent(node: Any) -> Any:
    """The conftest files that count for a node are those of the node above.

    pytest finds them by a node's path, and would find none at all for a folder where it did
    not load any.
    """
    return node.parent.ihook


class SkillFolder(pytest.Collector):
    """A folder that pytest comes to only because of --skill: a skill's, or one on the way to it.

    Unlike pytest's own it imports no conftest.py: a skill from elsewhere must not run code by
    being tested.
    """

    run: Run
    sources: Sequence[SkillSource]
    ihook = property(_hooks_of_parent)

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
    ihook = property(_hooks_of_parent)

    @classmethod
    def make(cls, parent: pytest.Collector, source: SkillSource, run: Run) -> "SkillFile":
        # pytest's own id of a file outside of the rootdir is empty, and so the same for all.
        nodeid = relative(source.file, parent.config.rootpath)
        node: SkillFile = cls.from_parent(parent, path=source.file, nodeid=nodeid)
        node.source, node.run = source, run
        return node

    def collect(self) -> Iterator[pytest.Item]:
        try:
            skill = load_skill(self.source.skill_file)
            cases = self._load_cases()
        except InputError as error:
            raise self.CollectError(str(error)) from None
        for line, text in skill.warnings:
            warnings.warn_explicit(
                SkillWarning(text), None, str(self.source.skill_file), lineno=line
            )
        root = self.config.rootpath
        path = relative(self.source.folder, root)
        self.info = SkillInfo(self.source.label, path, skill.digest, skill.tokens)
        for tag in sorted({tag for case, _ in cases for tag in case.tags}):
            self.config.addinivalue_line("markers", f"{tag}: a tag of a skill's cases.")
        items = [
            CaseItem.make(self, skill, case, checks, model)
            for case, checks in cases
            for model, model_id in self.run.model_ids.items()
            if _is_for(case, model, model_id)
        ]
        if not items:
            text = f"all cases are for other models than {', '.join(self.run.model_ids)}"
            warnings.warn_explicit(SkillWarning(text), None, str(self.source.cases_file), lineno=1)
        yield from items

    def _load_cases(self) -> list[CheckedCase]:
        folder, file = self.source.folder, self.source.cases_file
        if file is None:
            how = how_to_add_cases(folder / CASES_NAME)
            raise CasesError(folder, "this skill has no cases", how)
        registered = self.ihook.pytest_upskill_checks(config=self.config)
        return load_checked_cases(
            file,
            registered_kinds(registered, TAKEN),
            folder=folder,
            allow_code=self.run.settings.allow_code,
        )


def _is_for(case: Case, *names: str) -> bool:
    """Whether one of a model's names fits a pattern of the case, in whatever case."""
    return not case.models or any(
        fnmatchcase(name.lower(), pattern.lower()) for pattern in case.models for name in names
    )


def _holds(mark: pytest.Mark) -> bool:
    conditions = [mark.kwargs["condition"]] if "condition" in mark.kwargs else mark.args
    return not conditions or any(condition is True for condition in conditions)


class WrongAnswer(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """Answers that did not pass. An xfail expects this, and not that there is no answer."""


class CaseItem(pytest.Item):
    """A case on a model."""

    parent: SkillFile
    case: Case
    checks: tuple[AnyCheck, ...]
    trials: list[Trial]
    ihook = property(_hooks_of_parent)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._records: list[Record] = []

    @classmethod
    def make(
        cls, parent: SkillFile, skill: Skill, case: Case, checks: tuple[AnyCheck, ...], model: str
    ) -> "CaseItem":
        name = f"{case.id}[{model}]"
        # Given as a whole, pytest knows the brackets for a parameter, as --lf needs it.
        item: CaseItem = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.case, item.checks = case, checks
        item.trials = trials_of(parent.source.label, skill, case, model, parent.run.settings)
        for mark in ("skill", *case.tags):
            item.add_marker(mark)
        if case.skip:
            item.add_marker(pytest.mark.skip(reason=case.skip))
        if case.xfail:
            item.add_marker(pytest.mark.xfail(reason=case.xfail, raises=WrongAnswer))
        return item

    @property
    def is_passed_by(self) -> bool:
        """Whether pytest will not run it, so that nothing has to be asked.

        A condition that is written as a text is pytest's to evaluate: such a test is asked for.
        """
        not_run = [mark for mark in self.iter_markers("xfail") if mark.kwargs.get("run") is False]
        conditional = [
            *self.iter_markers("skipif"),
            *([] if self.config.getoption("runxfail") else not_run),
        ]
        return any(self.iter_markers("skip")) or any(map(_holds, conditional))

    def setup(self) -> None:
        """Fetch the answers and grade them: what has no grade is an error, not a failure."""
        if not self.parent.run.asks:
            return
        replies = self.parent.run.ask([trial.question for trial in self.trials])
        self._records = list(map(self._record, self.trials, replies))
        errors = [record.error for record in self._records if record.error is not None]
        if errors:
            self._send_records()  # of the other trials too: what was answered is not lost
            told = "\n".join(dict.fromkeys(errors))
            replayed = self.parent.run.settings.replay_file
            pytest.fail(f"{self.name}: {told}" if replayed else told, pytrace=False)

    def runtest(self) -> None:
        """The skill's answers must pass in enough of the runs."""
        self._send_records()
        passed = [record.outcome == "passed" for record in self._records if record.arm == "skill"]
        share = sum(passed) / len(passed)
        if not (share > 0.5 if self.case.threshold is None else share >= self.case.threshold):
            question = self.trials[0].question.messages[-1][1]
            whole = self.config.get_verbosity() >= 2
            raise WrongAnswer(failure_text(question, self._records, whole=whole), pytrace=False)

    def _record(self, trial: Trial, reply: Reply) -> Record:
        if isinstance(reply, NoAnswer):
            return errored_record(trial, reply.reason)
        try:
            return graded_record(trial, reply, grade(self.checks, reply))
        except CheckError as error:
            return errored_record(trial, str(error))

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
            if self.config.getoption("tbstyle") == "line":
                shown.reprtraceback.reprentries.clear()
        return shown

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, self._line - 1, self.name

    @property
    def _line(self) -> int:
        """Where the case stands; in another file than pytest's own for the skill, nowhere."""
        return self.case.line if self.path == self.parent.source.cases_file else 1
