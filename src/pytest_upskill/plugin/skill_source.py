"""A skill that a run may test, with its cases."""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..skills.bundle import bundle_root, folder_of
from ..skills.suites.beside import files_beside
from ..skills.suites.reading import Ask, Suites, read_suites
from ..skills.task_folders import has_tasks

# A case and the label of an agent and model; None for the usual
Pick = tuple[str, str | None]


@dataclass(frozen=True)
class SkillSource:
    """Where a skill and its cases are; pytest collects ``file``."""

    label: str
    skill_file: Path  # its SKILL.md; of a bundle, its manifest or its folder
    tests: Path | None = None  # cases to use instead of the skill's own
    # The hook that reads other forms
    ask: Ask | None = field(default=None, compare=False)
    picks: tuple[Pick, ...] = ()  # of node ids; empty for all cases
    conftests: Path | None = None  # the folder whose conftest files apply

    @property
    def folder(self) -> Path:
        return folder_of(self.skill_file)

    @property
    def file(self) -> Path:
        """The JSON file of its cases, if inside the skill; without cases,
        that of its triggers.

        Node ids of other forms are those of SKILL.md.
        """
        path = self.suites.path
        if path is None:
            return next(iter(files_beside(self.folder)), self.skill_file)
        inside = path.is_relative_to(self.folder) and path.suffix == ".json"
        return path if inside else self.skill_file

    @cached_property
    def suites(self) -> Suites:
        """What the skill is tested with."""
        return read_suites(self.folder, self.tests, self.ask)

    @property
    def case_folder(self) -> Path:
        """The folder whose files cases name: the skill's, or that of a file
        elsewhere.
        """
        return self.suites.cases.folder if self.suites.cases else self.folder

    @cached_property
    def task_files(self) -> tuple[Path, ...]:
        """The files of its tasks, if it is a task set: pytest collects each of them."""
        suite = self.suites.cases
        is_set = bundle_root(self.skill_file) and has_tasks(self.skill_file)
        return (
            tuple(of_file.file for of_file in suite.files) if suite and is_set else ()
        )

    @property
    def is_tested(self) -> bool:
        return self.suites.has_cases or self.suites.has_triggers

    @property
    def has_own_cases(self) -> bool:
        """Whether the cases are those that the skill comes with."""
        return self.tests in (None, read_suites(self.folder, ask=self.ask).path)

    @property
    def are_evals(self) -> bool:
        """Whether its cases are in the form of evals.json or a similar one."""
        suite = self.suites.cases
        return suite is not None and any(case.is_eval for case in suite.cases)

    def wants(self, case: str, label: str, usual: Collection[str]) -> bool:
        """Whether to run a case by an agent on a model;
        ``usual`` are the labels of the run.
        """
        if (case, label) in self.picks:
            return True
        return label in usual and (not self.picks or (case, None) in self.picks)
