"""What an agent gets besides its question: a workspace, copies of skills, limits."""

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from .._util.files import read_file, reason_of
from .._util.texts import digest
from ..errors import SkillError
from ..settings import DEFAULT_MAX_TURNS, Settings
from ..skills.case import Case, WorkspaceFile
from ..skills.case_files import is_path
from ..skills.context import files_at_ref
from ..skills.folder import (
    SKILL_NAMES,
    belongs,
    installed_files,
    is_executable,
    is_installed,
    is_taught,
)
from ..skills.skill import Skill
from .subject import Arm

MOST_FILES: Final = 5_000
MOST_BYTES: Final = 200_000_000
# Where skill-creator keeps the files of its cases; most ask for "data.csv", not for this path.
_EVALS: Final = re.compile(r"(?:.*/)?evals/(?:files/)?")


@dataclass(frozen=True)
class StartFile:
    """A file that a workspace starts with."""

    path: str  # relative to the workspace, with forward slashes
    data: bytes
    executable: bool = False

    @cached_property
    def digest(self) -> str:
        return digest(self.path, sha256(self.data).hexdigest(), str(self.executable))


@dataclass(frozen=True)
class Installed:
    """A skill that is installed for an agent."""

    name: str
    folder: str  # absolute
    digest: str  # of every file that is installed: path, content, executable or not
    ref: str | None = None  # as it was at this git ref
    tested: bool = False  # the skill under test, not one that both arms have
    without: tuple[str, ...] = ()  # paths in the folder that belong to the cases
    text: str = ""  # of a bundled skill, which is this SKILL.md and has no folder


@dataclass(frozen=True)
class Needs:
    """What a skill's scripts need of the sandbox."""

    python: tuple[str, ...] = ()  # requirements of packages
    paths: tuple[str, ...] = ()  # of the host, to be read
    network: bool = False


@dataclass(frozen=True)
class Task:
    """A trial of an agent. With the question it is all that shapes the answer."""

    agent: str
    version: str = ""  # of the agent
    files: tuple[StartFile, ...] = ()
    setup: str = ""  # a command that runs before the agent
    skills: tuple[Installed, ...] = ()
    needs: Needs = Needs()
    max_turns: int = DEFAULT_MAX_TURNS
    image: str = ""  # of the sandbox, if that is a container
    confined: bool = True  # False: no sandbox, so it may see and do all that the user can
    until_opened: bool = False  # ends as soon as it is decided whether the tested skill is opened

    @property
    def tested(self) -> Installed | None:
        """The skill under test; None in the baseline."""
        return next((skill for skill in self.skills if skill.tested), None)

    @cached_property
    def content(self) -> str:
        """A key of all of it. Where a skill's folder is makes no difference."""
        return digest(
            self.agent,
            self.version,
            self.setup,
            self.image,
            str(self.max_turns),
            repr(self.needs),
            *(file.digest for file in self.files),
            *(() if self.confined else ("unconfined",)),
            *(("until opened",) if self.until_opened else ()),
            "skills",
            *(digest(skill.name, skill.digest) for skill in self.skills),
        )


# The copy of a skill that is installed: its files, on disk or at a git ref.


def skill_files(
    folder: Path, ref: str | None = None, without: Collection[str] = ()
) -> tuple[StartFile, ...]:
    """All files of a skill's copy, sorted; without the cases, hidden files and secrets.

    ``without`` are paths in the folder, of files or folders, that belong to the cases.
    """
    files = _on_disk(folder, without) if ref is None else _at_ref(folder, ref, without)
    return tuple(sorted(files, key=lambda file: file.path))


def files_to_install(skill: Installed) -> tuple[StartFile, ...]:
    """All files of a skill that is to be installed."""
    if skill.text:
        return (StartFile(SKILL_NAMES[0], skill.text.encode()),)
    return skill_files(Path(skill.folder), skill.ref, skill.without)


def digest_of_copy(files: Iterable[StartFile]) -> str:
    """The digest of every file of a copy: path, content, executable or not."""
    return digest(*(file.digest for file in files))


def installed(
    name: str,
    folder: Path,
    ref: str | None = None,
    without: tuple[str, ...] = (),
    *,
    tested: bool = False,
) -> Installed:
    """A skill to install; SkillError if it is too large."""
    copy_digest = digest_of_copy(skill_files(folder, ref, without))
    return Installed(name, str(folder), copy_digest, ref, tested, without)


def bundled(name: str, text: str) -> Installed:
    """A skill that comes with us: one file, and no folder that could change or go away."""
    skill = Installed(name, "", "", text=text)
    return replace(skill, digest=digest_of_copy(files_to_install(skill)))


def _on_disk(folder: Path, without: Collection[str]) -> list[StartFile]:
    files, size, root = list[StartFile](), 0, Path(os.path.realpath(folder))
    for path, file in installed_files(folder).items():
        real = Path(os.path.realpath(file)).relative_to(root).as_posix()
        if not (belongs(path, without) and belongs(real, without)):
            continue
        try:
            data = read_file(file, MOST_BYTES)
            executable = is_executable(file)
        except OSError as error:
            raise SkillError(file, reason_of(error), "Check the file.") from None
        size += len(data)
        _require_small(folder, len(files) + 1, size)
        files.append(StartFile(path, data, executable))
    return files


def _at_ref(folder: Path, ref: str, without: Collection[str]) -> list[StartFile]:
    at_ref = files_at_ref(Path(os.path.realpath(folder)), ref)
    pure = {path: PurePosixPath(path) for path in at_ref.paths}
    # The folder of another skill is not part of this one.
    skills = {file.parent for file in pure.values() if file.name in SKILL_NAMES}
    other_skills = {parent for parent in skills if parent.parts}
    files, size = list[StartFile](), 0
    for path, file in pure.items():
        above = [file, *(parent for parent in file.parents if parent.parts)]
        if not all(map(is_taught, above)) or not other_skills.isdisjoint(above):
            continue
        try:
            real = at_ref.real(path)
        except ValueError:
            continue  # a link out of the skill, as on disk
        if not is_installed(file) or not is_installed(PurePosixPath(real)):
            continue
        if not (belongs(path, without) and belongs(real, without)):
            continue
        size += at_ref.size(real)
        _require_small(folder, len(files) + 1, size)
        files.append(StartFile(path, at_ref.data(real), at_ref.is_executable(real)))
    return files


def _require_small(folder: Path, files: int, size: int) -> None:
    if files > MOST_FILES or size > MOST_BYTES:
        problem = f"more than {MOST_FILES:,} files or {MOST_BYTES // 10**6} MB, too much to install"
        raise SkillError(folder, problem, "Move what agents don't need out of the skill.")


@dataclass(frozen=True)
class Outfit:
    """An agent with the skills that it has in each arm; its tasks differ in nothing else."""

    agent: str
    version: str
    skills: Mapping[Arm, tuple[Installed, ...]]
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
            previous = installed(skill.name, folder, settings.against, without, tested=True)
            skills["previous"] = _by_name(previous, *others)
        image, confined = settings.image or "", settings.sandbox != "none"
        return cls(agent, version, skills, settings.max_turns, image, confined)

    def tasks(self, case: Case) -> dict[Arm, Task]:
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
    return tuple(sorted(skills, key=lambda skill: skill.name))


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
