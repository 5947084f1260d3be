"""The tasks of a set as pytest collects them: each has a file of its own,
all are read once.
"""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import pytest

from .._util.texts import counted
from ..errors import InputError
from ..skills.case import Case
from ..trials.arm import Arm
from ..trials.subject import ORACLE, Subject
from .case_file import Run
from .items import CaseItem, Unrunnable
from .paths import SkillSource
from .pytest_options import message_of
from .skill_files import ReadSkill, SkillFile


def files_of(session: pytest.Session, source: SkillSource, run: Run) -> list[SkillFile]:
    """The files of a skill's cases that pytest collects; of a task set,
    those of its tasks.
    """
    if not source.task_files:
        return [SkillFile.make(session, source, run)]
    tasks = [TaskFile.make(session, source, run, file) for file in source.task_files]
    for task in tasks:
        assert isinstance(task, TaskFile)
        task.tasks = tasks
    return tasks


def uncompared_lines(items: Iterable[pytest.Item]) -> list[str]:
    """How many tasks have no skills, so that nothing is compared."""
    asked = [item for item in items if isinstance(item, CaseItem)]
    asked = [
        item for item in asked if item.case.is_task and item.planned.agent != ORACLE
    ]
    tasks = {
        item.case.id: item.case for item in asked if isinstance(item.parent, TaskFile)
    }
    without = sum(not case.skills and not case.skip for case in tasks.values())
    what = f"{without:,} of {counted(len(tasks), 'task')}"
    return (
        [f"upskill: no skills to compare in {what}: pass rate only"] if without else []
    )


class TaskFile(SkillFile):
    """A task of a set. What is decided over all of its tasks, the first one reads."""

    tasks: list[SkillFile]

    @property
    def _first(self) -> "TaskFile":
        first = self.tasks[0]
        assert isinstance(first, TaskFile)
        return first

    @cached_property
    def _read(self) -> "ReadSkill | InputError":
        try:
            return super().read()
        except InputError as error:
            return error

    def _items(self) -> list[pytest.Item]:
        first = self._first
        first.conftests = first.conftests or self.conftests
        read = first._read
        if isinstance(read, InputError):
            if first.collected is None:  # one error for all
                first.collected = 0
                return [Unrunnable.make(self, message_of(read, self.config))]
            return []
        for name in ("accepted", "cases", "siblings", "runnable", "info", "for_agents"):
            setattr(self, name, getattr(first, name))
        self.not_played = first.not_played
        own = [of_file for of_file in read.loaded if of_file.file == self.path]
        items = [item for of_file in own for item in self.of_file(read.skill, of_file)]
        return [
            *(read.refused if self is first else ()),
            *items,
            *self._not_there(items),
        ]

    def _not_there(self, items: list[pytest.Item]) -> Iterable[pytest.Item]:
        """Node ids on the command line that name this file, and no test of it."""
        names = {case.id for case in self.cases}
        names |= {item.name.partition("[")[0] for item in items}
        missing = [case for case, _ in self.source.picks if case not in names]
        return self.missing(items) if missing and self is self._first else ()

    def arms_for(self, case: Case, subject: Subject) -> tuple[Arm, ...]:
        maker = self.run.subjects.arm_maker
        return maker.of_task(case, compared=subject.agent == ORACLE)

    @property
    def case_folder(self) -> Path:
        return self.path.parent

    @property
    def own_cases(self) -> tuple[Case, ...]:
        read = self._first._read
        if isinstance(read, InputError):
            return ()
        own = (of_file for of_file in read.loaded if of_file.file == self.path)
        return tuple(case for of_file in own for case, _ in of_file.cases)
