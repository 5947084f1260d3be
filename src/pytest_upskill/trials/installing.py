"""The copy of a skill that is installed for agents: its files, on disk or at a git ref."""

import os
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final

from .._util.files import read_file, reason_of
from .._util.texts import digest
from ..errors import SkillError
from ..skills.at_ref import files_at_ref
from ..skills.folder import SKILL_NAMES, belongs, installed_files, is_installed, is_taught
from ..skills.workspace import is_executable
from .task import Installed, StartFile

MOST_FILES: Final = 5_000
MOST_BYTES: Final = 200_000_000


def skill_files(
    folder: Path, ref: str | None = None, without: Collection[str] = ()
) -> tuple[StartFile, ...]:
    """All files of a skill's copy, sorted; without the cases, hidden files and secrets.

    ``without`` are paths in the folder, of files or folders, that belong to the cases.
    """
    found = _on_disk(folder, without) if ref is None else _at_ref(folder, ref, without)
    return tuple(sorted(found, key=lambda file: file.path))


def files_to_install(skill: Installed) -> tuple[StartFile, ...]:
    """The same of a skill that is to be installed."""
    if skill.text:
        return (StartFile(SKILL_NAMES[0], skill.text.encode()),)
    return skill_files(Path(skill.folder), skill.ref, skill.without)


def digest_of_copy(files: Iterable[StartFile]) -> str:
    """Of every file of a copy: path, content, executable or not."""
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
    made = digest_of_copy(skill_files(folder, ref, without))
    return Installed(name, str(folder), made, ref, tested, without)


def bundled(name: str, text: str) -> Installed:
    """A skill that comes with us: one file, and no folder that could change or go away."""
    skill = Installed(name, "", "", text=text)
    return replace(skill, digest=digest_of_copy(files_to_install(skill)))


def _on_disk(folder: Path, without: Collection[str]) -> list[StartFile]:
    files, size, root = list[StartFile](), 0, Path(os.path.realpath(folder))
    for path, file in installed_files(folder).items():
        real = Path(os.path.realpath(file)).relative_to(root).as_posix()
        if not all(belongs(one, without) for one in (path, real)):
            continue
        try:
            data = read_file(file, MOST_BYTES)
            executable = is_executable(file)
        except OSError as error:
            raise SkillError(file, reason_of(error), "Check the file.") from None
        size += len(data)
        _require_room(folder, len(files) + 1, size)
        files.append(StartFile(path, data, executable))
    return files


def _at_ref(folder: Path, ref: str, without: Collection[str]) -> list[StartFile]:
    found = files_at_ref(Path(os.path.realpath(folder)), ref)
    pure = {path: PurePosixPath(path) for path in found.paths}
    # The folder of another skill is not part of this one.
    others = {one.parent for one in pure.values() if one.name in SKILL_NAMES and one.parent.parts}
    files, size = list[StartFile](), 0
    for path, one in pure.items():
        above = [one, *(folder for folder in one.parents if folder.parts)]
        if not all(map(is_taught, above)) or not others.isdisjoint(above):
            continue
        try:
            real = found.real(path)
        except ValueError:
            continue  # a link out of the skill, as on disk
        if not is_installed(one) or not is_installed(PurePosixPath(real)):
            continue
        if not all(belongs(one, without) for one in (path, real)):
            continue
        size += found.size(real)
        _require_room(folder, len(files) + 1, size)
        files.append(StartFile(path, found.data(real), found.is_executable(real)))
    return files


def _require_room(folder: Path, files: int, size: int) -> None:
    if files > MOST_FILES or size > MOST_BYTES:
        problem = f"more than {MOST_FILES:,} files or {MOST_BYTES // 10**6} MB, too much to install"
        raise SkillError(folder, problem, "Move what agents don't need out of the skill.")
