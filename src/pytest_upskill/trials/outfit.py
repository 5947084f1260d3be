"""What an agent has in the trials of a skill: the task of each arm of a case."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from ..settings import Settings
from ..skills.case import Case
from ..skills.skill import Skill
from ..skills.workspace import WorkspaceFile, is_path
from .installing import installed
from .task import Installed, Needs, StartFile, Task

if TYPE_CHECKING:
    from .trial import Arm

# Where skill-creator keeps the files of its cases; most ask for "data.csv", not for this path.
_EVALS: Final = re.compile(r"(?:.*/)?evals/(?:files/)?")


@dataclass(frozen=True)
class Outfit:
    """An agent with the skills that it has in each arm; its tasks differ in nothing else."""

    agent: str
    version: str
    skills: "Mapping[Arm, tuple[Installed, ...]]"
    max_turns: int
    image: str
    confined: bool = True

    @classmethod
    def of(
        cls,
        agent: str,
        version: str,
        skill: Skill,
        settings: Settings,
        others: tuple[Installed, ...] = (),
        without: tuple[str, ...] = (),
    ) -> "Outfit":
        """``others`` are in all arms; ``without`` are files of the skill's cases."""
        folder = skill.file.parent
        skills: dict[Arm, tuple[Installed, ...]] = {
            "baseline": _by_name(*others),
            "skill": _by_name(installed(skill.name, folder, None, without, tested=True), *others),
        }
        if skill.previous is not None:
            then = installed(skill.name, folder, settings.against, without, tested=True)
            skills["previous"] = _by_name(then, *others)
        image, confined = settings.image or "", settings.sandbox != "none"
        return cls(agent, version, skills, settings.max_turns, image, confined)

    def tasks(self, case: Case) -> "dict[Arm, Task]":
        """The task of each arm; ValueError if a file of the case can't be in a workspace."""
        files = start_files(case)  # held once
        return {
            arm: Task(
                self.agent,
                self.version,
                files,
                case.setup,
                skills,
                Needs(*case.sandbox),
                self.max_turns,
                self.image,
                self.confined,
            )
            for arm, skills in self.skills.items()
        }


def _by_name(*skills: Installed) -> tuple[Installed, ...]:
    """As agents list skills: the tested one has no better place than any other."""
    return tuple(sorted(skills, key=lambda one: one.name))


def start_files(case: Case) -> tuple[StartFile, ...]:
    """The files of a case's workspace; ValueError if one can't be there."""
    return _start_files(case.files, case.exact, case.input if case.is_eval else None)


@lru_cache(maxsize=64)  # the arms of a case share them, also on their way to another process
def _start_files(
    texts: tuple[tuple[str, str], ...], exact: tuple[WorkspaceFile, ...], prompt: str | None
) -> tuple[StartFile, ...]:
    """With the ``prompt`` of an eval, files have the names that it uses."""
    files = {name: StartFile(name, text.encode("utf-8", "replace")) for name, text in texts}
    files |= {file.path: StartFile(*file) for file in exact}
    if prompt is not None:
        paths = {name: _name_in(prompt, name) for name in files}
        if len(set(paths.values())) == len(paths):
            files = {paths[name]: replace(file, path=paths[name]) for name, file in files.items()}
    for name in files:
        if not is_path(name):
            raise ValueError(f"{name!r} can't be a file in a workspace; use a relative path")
        above = next((str(one) for one in PurePosixPath(name).parents if str(one) in files), None)
        if above:
            raise ValueError(f"{name!r} can't be in {above!r}, which is a file")
    return tuple(files[name] for name in sorted(files))


def _name_in(prompt: str, path: str) -> str:
    """As much of the end of a path as a prompt names; else it without skill-creator's folders."""
    parts = path.split("/")
    ends = ["/".join(parts[at:]) for at in range(len(parts))]
    named = (end for end in ends if re.search(rf"(?<![\w.-]){re.escape(end)}(?![\w-])", prompt))
    return next(named, _EVALS.sub("", path))
