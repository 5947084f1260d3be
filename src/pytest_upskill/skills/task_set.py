"""A task set: tasks of a benchmark, each with skills of its own,
that are tested as one.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from .._util.texts import digest, one_line
from .folder import digest_of, installed_files
from .search import find_skills
from .skill import LONGEST_NAME, Skill
from .task_folders import has_skills, skills_folder, tasks_at


@dataclass(frozen=True)
class TaskSet(Skill):
    """Tasks of a folder. It has no text: each task brings the
    skills that its arms differ by.
    """

    root: Path = Path()

    @property
    def folder(self) -> Path:
        return self.root

    @property
    def tokens(self) -> int:
        return 0

    @property
    def members(self) -> tuple[Skill, ...]:
        return ()


def set_name(folder: Path) -> str:
    return one_line(Path(os.path.realpath(folder)).name, LONGEST_NAME) or "tasks"


def load_task_set(root: Path) -> TaskSet:
    """The tasks of a folder; its digest is that of all their skills."""
    folders = [skills_folder(task) for task in tasks_at(root) if has_skills(task)]
    skills = [file.parent for folder in folders for file in find_skills(folder).files]
    contents = (
        digest_of(folder, installed_files(folder).values()) for folder in skills
    )
    return TaskSet(set_name(root), "", root, "", digest(*contents), root=root)
