"""An arm: a name, and what is there when a case is carried out in it.

Arms are compared, so those of a comparison differ by the skill and by nothing else.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

from pydantic import StringConstraints

from .._util.files import read_file, reason_of
from .._util.texts import digest
from ..errors import SkillError
from ..settings import Settings
from ..skills.bundle import Bundle
from ..skills.case import WorkspaceFile
from ..skills.context import FilesAtRef, FilesOnDisk, files_at_ref
from ..skills.folder import (
    MANIFEST,
    SKILL_NAMES,
    belongs,
    installed_files,
    is_installed,
    is_taught,
    mode_of,
)
from ..skills.plugins import (
    files_on_disk,
    installed_paths,
    read_manifest,
    server_files,
    skill_places,
    without_servers,
)
from ..skills.skill import Skill

# The arms of a run of tests, in this order. ``previous`` is the skill at a git ref;
# ``again`` is the same skill, in place of a baseline; ``trace``, in teach, is a
# trace in place of its text.
BASELINE: Final = "baseline"
PREVIOUS: Final = "previous"
AGAIN: Final = "again"
TRACE: Final = "trace"
SKILL: Final = "skill"

ArmName = Annotated[
    str, StringConstraints(max_length=120, pattern=r"^[^\x00-\x1f\x7f]+$")
]

MOST_FILES: Final = 5_000
MOST_BYTES: Final = 200_000_000


@dataclass(frozen=True)
class SkillCopy:
    """A skill as an agent finds it installed: the files of a folder,
    now or at a git ref.
    """

    name: str
    folder: str  # absolute
    digest: str  # of every file that is installed: path, content, executable or not
    ref: str | None = None  # as it was at this git ref
    # Paths in the folder, of files or folders, of the cases
    without: tuple[str, ...] = ()
    text: str = ""  # of a bundled skill, which is this SKILL.md and has no folder
    plugin: bool = False  # a whole plugin, for agents that take one
    in_plugin: str | None = None  # the folder of this skill in the plugin of its arm

    @classmethod
    def of(
        cls,
        name: str,
        folder: Path,
        ref: str | None = None,
        without: tuple[str, ...] = (),
        *,
        plugin: bool = False,
        in_plugin: str | None = None,
    ) -> "SkillCopy":
        """A skill or plugin to install; SkillError if it is too large."""
        place = str(folder)
        return cls(name, place, "", ref, without, "", plugin, in_plugin)._with_digest()

    @classmethod
    def bundled(cls, name: str, text: str) -> "SkillCopy":
        """A skill that comes with us: one file, and no folder
        that could change or go away.
        """
        return cls(name, "", "", text=text)._with_digest()

    def _with_digest(self) -> "SkillCopy":
        return replace(self, digest=digest_of_copy(self.files()))

    def files(self) -> tuple[WorkspaceFile, ...]:
        """All files to install, sorted; without the cases, hidden files and secrets.

        Read once: a copy that is sent to another machine has its files with it.
        """
        return self._files

    @cached_property
    def _files(self) -> tuple[WorkspaceFile, ...]:
        if self.text:
            return (WorkspaceFile(SKILL_NAMES[0], self.text.encode()),)
        folder = Path(self.folder)
        if self.plugin:
            found = _plugin_files(folder, self.ref, self.without)
        elif self.ref is None:
            found = _on_disk(folder, installed_files(folder), self.without)
        else:
            found = _at_ref(folder, self.ref, self.without)

        files = []
        size = 0
        for file in found:
            files.append(file)
            size += len(file.data)
            if len(files) > MOST_FILES or size > MOST_BYTES:
                limit = f"{MOST_FILES:,} files or {MOST_BYTES // 10**6} MB"
                problem = f"more than {limit}, too much to install"
                hint = "Move what agents don't need out of the skill."
                raise SkillError(folder, problem, hint)
        return tuple(sorted(files, key=lambda file: file.path))


@dataclass(frozen=True)
class Arm:
    """A name, and what is there: a text in context,
    or skills that are installed for an agent.
    """

    name: str  # unique in its plan
    text: str | None = None  # in the context of a plain completion
    # Sorted by name, so tested ones have no better place
    skills: tuple[SkillCopy, ...] = ()
    # Names of the skills under test; none where they are not there
    tested: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """The same for all arms where the same is there, whatever their names."""
        text = () if self.text is None else (self.text,)
        return digest(
            *text, "skills", *(digest(copy.name, copy.digest) for copy in self.skills)
        )


def arms_of(
    skill: Skill,
    settings: Settings,
    others: tuple[SkillCopy, ...] = (),
    without: tuple[str, ...] = (),
    *,
    agents: bool = False,
) -> tuple[Arm, ...]:
    """The arms of a run of tests, in the order in which they are asked.

    Only where there are ``agents``, skills are installed: ``others`` in all arms,
    and the tested one, or those of a bundle, without the files of cases.
    SkillError if it is too large.
    """

    def arm(name: str, text: str, ref: str | None = None) -> Arm:
        tested = _names_at(skill, ref)
        if not agents:
            return Arm(name, text, tested=tested)
        return Arm(
            name, text, by_name(*others, *copies_of(skill, ref, without)), tested
        )

    if settings.aa:
        return arm(AGAIN, skill.text), arm(SKILL, skill.text)
    arms = [Arm(BASELINE, skills=by_name(*others))] if settings.baseline else []
    if skill.previous is not None:
        arms.append(arm(PREVIOUS, skill.previous, settings.against))
    return (*arms, arm(SKILL, skill.text))


def copies_of(
    skill: Skill, ref: str | None = None, without: tuple[str, ...] = ()
) -> list[SkillCopy]:
    """A skill to install; of a bundle all of its skills, and the plugin if it is one.

    ``without`` are paths of cases in its folder. SkillError if it is too large.
    """
    if not isinstance(skill, Bundle):
        return [SkillCopy.of(skill.name, skill.folder, ref, without)]
    names = (
        zip(_names_at(skill, None), skill.places, strict=True)
        if ref is None
        else skill.before
    )
    copies = [
        SkillCopy.of(
            name, skill.root / place, ref, _below(place, without), in_plugin=place
        )
        for name, place in names
    ]
    if skill.plugin:
        paths = (*without, *skill.left_out)
        copies.append(SkillCopy.of(skill.name, skill.root, ref, paths, plugin=True))
    return copies


def _names_at(skill: Skill, ref: str | None) -> tuple[str, ...]:
    if ref is not None and isinstance(skill, Bundle):
        return tuple(name for name, _ in skill.before)
    return tuple(member.name for member in skill.members)


def _below(folder: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Those of some paths that are below a folder, relative to it."""
    pure = (PurePosixPath(path) for path in paths)
    return tuple(
        str(path.relative_to(folder)) for path in pure if path.is_relative_to(folder)
    )


def by_name(*skills: SkillCopy) -> tuple[SkillCopy, ...]:
    return tuple(sorted(skills, key=lambda skill: skill.name))


def digest_of_copy(files: Iterable[WorkspaceFile]) -> str:
    """The digest of every file of a copy: path, content, executable or not."""
    return digest(*(file.digest for file in files))


def _plugin_files(
    root: Path, ref: str | None, without: Collection[str]
) -> Iterator[WorkspaceFile]:
    """All of a plugin but its cases and its MCP servers."""
    at_ref = None if ref is None else files_at_ref(Path(os.path.realpath(root)), ref)
    manifest = read_manifest(root / MANIFEST, at_ref.data(MANIFEST) if at_ref else None)
    without = {*without, *server_files(manifest)}
    if at_ref:
        paths = installed_paths(at_ref.paths, manifest)
        files = _read_at_ref(at_ref, paths, without)
    else:
        places = skill_places(FilesOnDisk(root), manifest)
        files = _on_disk(root, files_on_disk(root, manifest, places), without)
    for file in files:
        if file.path == MANIFEST:
            yield replace(file, data=without_servers(file.data, manifest))
        else:
            yield file


def _on_disk(
    folder: Path, found: Mapping[str, Path], without: Collection[str]
) -> Iterator[WorkspaceFile]:
    root = Path(os.path.realpath(folder))
    for path, file in found.items():
        real = Path(os.path.realpath(file))
        inside = real.name
        if real.is_relative_to(root):
            inside = real.relative_to(root).as_posix()
        if belongs(path, without) and belongs(inside, without):
            try:
                yield WorkspaceFile(path, read_file(file, MOST_BYTES), mode_of(file))
            except OSError as error:
                raise SkillError(file, reason_of(error), "Check the file.") from None


def _at_ref(
    folder: Path, ref: str, without: Collection[str]
) -> Iterator[WorkspaceFile]:
    at_ref = files_at_ref(Path(os.path.realpath(folder)), ref)
    pure = {path: PurePosixPath(path) for path in at_ref.paths}
    # The folder of another skill is not part of this one.
    skills = {file.parent for file in pure.values() if file.name in SKILL_NAMES}
    other_skills = {parent for parent in skills if parent.parts}
    paths = list[str]()
    for path, file in pure.items():
        above = [file, *(parent for parent in file.parents if parent.parts)]
        if (
            all(map(is_taught, above))
            and other_skills.isdisjoint(above)
            and is_installed(file)
        ):
            paths.append(path)
    return _read_at_ref(at_ref, paths, without)


def _read_at_ref(
    at_ref: FilesAtRef, paths: Iterable[str], without: Collection[str]
) -> Iterator[WorkspaceFile]:
    for path in paths:
        try:
            real = at_ref.real(path)
        except ValueError:
            continue  # a link out of the skill, as on disk
        is_there = real == path or is_installed(PurePosixPath(real))
        if is_there and belongs(path, without) and belongs(real, without):
            yield at_ref.file(path, real)
