"""What an agent gets besides its question: a workspace, copies of skills, limits."""

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import Final

from .._util.texts import digest
from ..settings import DEFAULT_MAX_TURNS, TRIGGER_TURNS, Settings
from ..skills.case import NO_NEEDS, Case, SandboxNeeds, WorkspaceFile
from ..skills.case_files import is_path
from .arm import Arm, SkillCopy

# Where skill-creator keeps the files of its cases; most ask for "data.csv", not for this path.
_EVALS: Final = re.compile(r"(?:.*/)?evals/(?:files/)?")


@dataclass(frozen=True)
class Task:
    """A trial of an agent. With the question it is all that shapes the answer."""

    agent: str
    version: str = ""  # of the agent
    files: tuple[WorkspaceFile, ...] = ()
    setup: str = ""  # a command that runs before the agent
    skills: tuple[SkillCopy, ...] = ()
    tested: str = ""  # the name of the skill under test; empty in the baseline
    needs: SandboxNeeds = NO_NEEDS
    max_turns: int = DEFAULT_MAX_TURNS
    image: str = ""  # of the sandbox, if that is a container
    confined: bool = True  # False: no sandbox, so it may see and do all that the user can
    until_opened: bool = False  # ends as soon as it is decided whether the tested skill is opened

    @cached_property
    def content(self) -> str:
        """A key of all of it. Where a skill's folder is makes no difference."""
        return digest(
            self.agent,
            self.version,
            self.setup,
            self.image,
            str(self.max_turns),
            repr(tuple(self.needs)),
            *(file.digest for file in self.files),
            *(() if self.confined else ("unconfined",)),
            *(("until opened",) if self.until_opened else ()),
            "skills",
            *(digest(skill.name, skill.digest) for skill in self.skills),
        )


def task_of(case: Case, agent: str, arm: Arm, settings: Settings, version: str = "") -> Task:
    """The task of an arm; ValueError if a file of the case can't be in a workspace."""
    return Task(
        agent,
        version,
        start_files(case),
        case.setup,
        arm.skills,
        arm.tested,
        case.sandbox,
        min(TRIGGER_TURNS, settings.max_turns) if case.is_trigger else settings.max_turns,
        settings.image or "",
        settings.sandbox != "none",
        until_opened=case.is_trigger,
    )


def start_files(case: Case) -> tuple[WorkspaceFile, ...]:
    """The files of a case's workspace; ValueError if one can't be there."""
    return _start_files(case.files, case.exact, case.input if case.is_eval else None)


@lru_cache(maxsize=64)  # the arms of a case share them, also on their way to another process
def _start_files(
    texts: tuple[tuple[str, str], ...], exact: tuple[WorkspaceFile, ...], prompt: str | None
) -> tuple[WorkspaceFile, ...]:
    """With the ``prompt`` of an eval, files have the names that it uses."""
    files = {name: WorkspaceFile(name, text.encode("utf-8", "replace")) for name, text in texts}
    files |= {file.path: file for file in exact}
    if prompt is not None:
        paths = {name: _name_in(prompt, name) for name in files}
        if len(set(paths.values())) == len(paths):
            files = {paths[name]: replace(file, path=paths[name]) for name, file in files.items()}
    for name in files:
        if not is_path(name):
            raise ValueError(f"{name!r} can't be a file in a workspace; use a relative path")
        parents = map(str, PurePosixPath(name).parents)
        if above := next((parent for parent in parents if parent in files), None):
            raise ValueError(f"{name!r} can't be in {above!r}, which is a file")
    return tuple(files[name] for name in sorted(files))


def _name_in(prompt: str, path: str) -> str:
    """The end of a path that a prompt names; else the path without skill-creator's folders."""
    parts = path.split("/")
    ends = ["/".join(parts[at:]) for at in range(len(parts))]
    named = (end for end in ends if re.search(rf"(?<![\w.-]){re.escape(end)}(?![\w-])", prompt))
    return next(named, _EVALS.sub("", path))
