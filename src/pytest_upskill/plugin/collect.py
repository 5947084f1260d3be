"""From paths to items: the folders and files of skills as pytest collects them."""

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from .._util.json_forms import cases_error
from ..checks import TAKEN, CheckedCase, load_checked_cases, registered_kinds, rubric_of
from ..errors import CasesError, InputError
from ..results.accepted import Results, read_results
from ..settings import Settings
from ..skills.at_ref import with_previous
from ..skills.cases import how_to_add_cases
from ..skills.skill import CASES_NAME, Skill, find_cases, load_skill
from ..trials.trial import SkillInfo
from .items import CaseItem, Run, hooks_of_parent

_NO_JUDGE: Final = "only a judge can grade this, and there is none; add --skill-judge MODEL"


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
        sources.append(SkillSource(label, file, tests_file or find_cases(file.parent)))
    return sources


def relative(path: Path, root: Path) -> str:
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive of Windows
        return path.as_posix()


def info_of(skill: Skill, label: str, path: str, settings: Settings) -> SkillInfo:
    against = settings.against if skill.previous is not None else None
    return SkillInfo(label, path, skill.digest, skill.tokens, against)


class SkillFolder(pytest.Collector):
    """A folder that pytest comes to only because of --skill: a skill's, or one on the way to it.

    Unlike pytest's own it imports no conftest.py: a skill from elsewhere must not run code by
    being tested.
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
    cases_path: str  # seen from the rootdir
    siblings: tuple[str, ...]  # the ids of the skill's own cases
    runnable: dict[str, int]  # by model: how many cases are for it and not to be skipped
    ihook = property(hooks_of_parent)

    @classmethod
    def make(cls, parent: pytest.Collector, source: SkillSource, run: Run) -> "SkillFile":
        # pytest's own id of a file outside of the rootdir is empty, and so the same for all.
        nodeid = relative(source.file, parent.config.rootpath)
        node: SkillFile = cls.from_parent(parent, path=source.file, nodeid=nodeid)
        node.source, node.run = source, run
        return node

    def collect(self) -> Iterator[pytest.Item]:
        try:
            skill = with_previous(load_skill(self.source.skill_file), self.run.settings.against)
            cases = self._load_cases()
            self.accepted = read_results(self.source.folder)
        except InputError as error:
            raise self.CollectError(str(error)) from None
        for line, text in skill.warnings:
            warnings.warn_explicit(
                SkillWarning(text), None, str(self.source.skill_file), lineno=line
            )
        root = self.config.rootpath
        path = relative(self.source.folder, root)
        self.info = info_of(skill, self.source.label, path, self.run.settings)
        self.cases_path = relative(self.source.cases_file or self.path, root)
        own = self.source.cases_file == self.path
        self.siblings = tuple(case.id for case, _ in cases) if own else ()
        self.runnable = {
            model: sum(not case.skip and case.is_for(model, model_id) for case, _ in cases)
            for model, model_id in self.run.model_ids.items()
        }
        for tag in sorted({tag for case, _ in cases for tag in case.tags}):
            self.config.addinivalue_line("markers", f"{tag}: a tag of a skill's cases.")
        items = [
            CaseItem.make(self, skill, case, checks, model)
            for case, checks in cases
            for model, model_id in self.run.model_ids.items()
            if case.is_for(model, model_id)
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
        cases = load_checked_cases(
            file,
            registered_kinds(registered, TAKEN),
            folder=folder,
            allow_code=self.run.settings.allow_code,
        )
        if not self.run.settings.judge:
            judged = [case.place for case, checks in cases if rubric_of(checks).texts]
            if judged:
                raise cases_error(file, [(judged[0], _NO_JUDGE)])
        return cases
