"""A skill's cases as pytest items: one for each case on each model, both arms inside."""

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from ..skills import CASES_NAME, Skill, load_skill
from ..trials import Question, SkillInfo, Trial, trials_of

RECORDS_PROPERTY: Final = "upskill"


class Run(Protocol):
    """What the nodes need of the run that they belong to."""

    settings: Settings
    model_names: tuple[str, ...]
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
        beside = self.cases_file and self.cases_file.parent == self.folder
        return self.cases_file if beside and self.cases_file else self.skill_file


def sources_of(
    skill_files: Sequence[Path], tests_file: Path | None, root: Path
) -> list[SkillSource]:
    """The skills of a run; two of one name are told apart by their paths."""
    names = [file.parent.name for file in skill_files]
    sources = []
    for file, name in zip(skill_files, names, strict=True):
        label = name if names.count(name) == 1 else relative(file.parent, root)
        beside = file.parent / CASES_NAME
        sources.append(
            SkillSource(label, file, tests_file or (beside if beside.is_file() else None))
        )
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
            if source.folder == self.path:
                yield SkillFile.make(self, source, self.run)
            else:
                step = source.folder.relative_to(self.path).parts[0]
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
        for case, checks in cases:
            for model in self.run.model_names:
                yield CaseItem.make(self, skill, case, checks, model)

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
        return item

    def setup(self) -> None:
        """Fetch the answers and grade them: what has no grade is an error, not a failure."""
        if not self.parent.run.asks:
            return
        replies = self.parent.run.ask([trial.question for trial in self.trials])
        self._records = list(map(self._record, self.trials, replies))
        errors = [record.error for record in self._records if record.error is not None]
        if errors:
            self._send_records()  # of the other trials too: what was answered is not lost
            pytest.fail("\n".join(dict.fromkeys(errors)), pytrace=False)

    def runtest(self) -> None:
        """The skill's answers must pass in more than half of the runs."""
        self._send_records()
        passed = [record.outcome == "passed" for record in self._records if record.arm == "skill"]
        if sum(passed) * 2 <= len(passed):
            question = self.trials[0].question.messages[-1][1]
            whole = self.config.get_verbosity() >= 2
            pytest.fail(failure_text(question, self._records, whole=whole), pytrace=False)

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
            crash.path, crash.lineno = str(self.path), 1
            crash.message = str(excinfo.value).split("\n")[0]
            if self.config.getoption("tbstyle") == "line":
                shown.reprtraceback.reprentries.clear()
        return shown

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name
