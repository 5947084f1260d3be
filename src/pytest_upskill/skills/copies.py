"""Copies of a skill: without some of its parts,
or changed and saved beside the original.
"""

import os
import shutil
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from .._util.files import read_file, reason_of, replace_file, resolved
from .._util.keys import without_keys
from ..errors import InputError, SkillError
from .context import FilesOnDisk
from .folder import (
    MAX_FILE_BYTES,
    TOOL_FOLDERS,
    belongs,
    installed_files,
    mode_of,
)
from .frontmatter import with_field
from .skill import LONGEST_NAME, Skill
from .skill_parts import By, Part, PartedText, told_apart


@dataclass(frozen=True)
class PartedSkill:
    """A skill, and the parts of its SKILL.md and of the files that it names."""

    skill: Skill
    text: PartedText
    files: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, skill: Skill, by: By = "section", files: Iterable[str] = ()
    ) -> "PartedSkill":
        """``files`` are paths in the skill's folder."""
        try:
            data = read_file(skill.file, MAX_FILE_BYTES)
        except OSError as error:
            raise SkillError(skill.file, reason_of(error), "Check the path.") from None
        return cls(skill, PartedText(data.decode("utf-8", "replace"), by), tuple(files))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Everything that can be left out, with unique names."""
        files = [Part(path, "file") for path in self.files]
        return tuple(told_apart([*self.text.parts, *files]))

    def without(self, parts: Iterable[Part]) -> tuple[str, frozenset[str]]:
        """The text of SKILL.md without these parts, and the files that are left out."""
        left_out = list(parts)
        lines = {part.line for part in left_out if part.kind != "file"}
        names = {part.name for part in self.text.parts if part.line in lines}
        gone = frozenset(part.name for part in left_out if part.kind == "file")
        return self.text.without(names), gone

    def write(
        self, target: Path, parts: Iterable[Part] = (), cases: Collection[str] = ()
    ) -> Path:
        """Write the skill without these parts to a new folder, and return its SKILL.md.

        Only what agents get is copied. ``cases`` are paths that belong to the
        skill's cases. What a file that is left out was named for stays: a text is
        not changed but by whole parts.
        """
        text, gone = self.without(parts)
        skill_file = self.skill.file
        return write_copy(skill_file, target, text.encode("utf-8"), {*gone, *cases})


def write_copy(
    file: Path, target: Path, text: bytes, without: Collection[str] = ()
) -> Path:
    """Copy the skill of a SKILL.md to a new folder, with another text,
    and return its SKILL.md.
    """
    folder = file.parent
    root = Path(os.path.realpath(folder))
    try:
        target.mkdir(parents=True)
        for name, path in installed_files(folder).items():
            real = Path(os.path.realpath(path)).relative_to(root).as_posix()
            if name == file.name or not all(
                belongs(path, without) for path in (name, real)
            ):
                continue
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(read_file(path))
            copy.chmod(mode_of(path))
        new = target / file.name
        new.write_bytes(text)
    except OSError as error:
        problem = f"can't be copied: {reason_of(error)}"
        raise SkillError(folder, problem, "Check its files.") from None
    return new


def text_files(skill: Skill, cases: Collection[str] = ()) -> list[str]:
    """The text files that SKILL.md names and an agent gets."""
    files, there = FilesOnDisk(skill.file.parent), installed_files(skill.file.parent)
    readable = list[str]()
    for path in [
        *(path for path, _ in skill.references),
        *(file.path for file in skill.unseen),
    ]:
        try:
            if path in there and belongs(path, cases) and files.text(path).strip():
                readable.append(path)
        except ValueError:
            continue
    return readable


_SHORT: Final = "short"


def beside(folder: Path) -> Path:
    """A free folder for a shorter version of a skill: skills/wick →
    skills/wick-short.
    """
    folder = resolved(folder)
    number, ending = 1, f"-{_SHORT}"
    while True:
        target = folder.with_name(
            f"{folder.name[: LONGEST_NAME - len(ending)]}{ending}"
        )
        if not os.path.lexists(target):
            return target
        number += 1
        ending = f"-{_SHORT}-{number}"


def renamed(text: str, name: str) -> str:
    """A SKILL.md with another name; unchanged if it has none, or if more would change.

    A skill without a name is known by its folder.
    """
    return with_field(text, "name", name) or text


def save_beside(file: Path, text: str, without: Collection[str] = ()) -> Path:
    """Copy the folder of a SKILL.md atomically, with another
    text and without some files.

    The copy has a name of its own, which is that of its folder.
    InputError if it can't be written.
    """
    folder, target = resolved(file.parent), beside(file.parent)
    try:
        with tempfile.TemporaryDirectory(
            prefix=f".{target.name}-", dir=target.parent
        ) as temporary:
            new = Path(temporary, "new")
            ignored = shutil.ignore_patterns(*TOOL_FOLDERS)
            shutil.copytree(folder, new, symlinks=True, ignore=ignored)
            _turn_links(folder, new)
            for name in (*without, file.name):
                (new / name).unlink(missing_ok=True)
            replace_file(
                new / file.name, without_keys(renamed(text, target.name)).encode()
            )
            new.rename(target)
    except OSError as error:
        problem = f"can't be written: {reason_of(error)}"
        raise InputError(target, problem, "Check the folder.") from None
    return target


def _turn_links(folder: Path, new: Path) -> None:
    """Point links into the old folder to the copy, or a change there
    would reach the original.
    """
    for parent, folders, files in os.walk(new):
        for link in (Path(parent, name) for name in (*folders, *files)):
            if not link.is_symlink():
                continue
            there = folder / link.relative_to(new)
            if (real := resolved(there)).is_relative_to(folder):
                link.unlink()
                link.symlink_to(os.path.relpath(real, there.parent))
