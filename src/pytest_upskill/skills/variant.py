"""A skill without some of its parts, as a folder of its own."""

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .._util.files import read_file, reason_of
from ..errors import SkillError
from .context import FilesOnDisk
from .folder import MAX_FILE_BYTES, belongs, installed_files
from .parts import By, Part, PartedText, told_apart
from .skill import Skill
from .workspace import is_executable


@dataclass(frozen=True)
class PartedSkill:
    """A skill, and the parts of its SKILL.md and of the files that it names."""

    skill: Skill
    text: PartedText
    files: tuple[str, ...] = ()

    @classmethod
    def of(cls, skill: Skill, by: By = "section", files: Iterable[str] = ()) -> "PartedSkill":
        """``files`` are paths in the skill's folder."""
        try:
            data = read_file(skill.file, MAX_FILE_BYTES)
        except OSError as error:
            raise SkillError(skill.file, reason_of(error), "Check the path.") from None
        return cls(skill, PartedText(data.decode("utf-8", "replace"), by), tuple(files))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """All that can be left out, each under a name of its own."""
        files = [Part(path, "file") for path in self.files]
        return tuple(told_apart([*self.text.parts, *files]))

    def without(self, parts: Iterable[Part]) -> tuple[str, frozenset[str]]:
        """The text of SKILL.md without these parts, and the files that go."""
        left_out = list(parts)
        lines = {part.line for part in left_out if part.kind != "file"}
        names = {part.name for part in self.text.parts if part.line in lines}
        gone = frozenset(part.name for part in left_out if part.kind == "file")
        return self.text.without(names), gone

    def write(self, target: Path, parts: Iterable[Part] = (), cases: Collection[str] = ()) -> Path:
        """Write the skill without these parts to a new folder, and return its SKILL.md.

        Only what agents get is copied. ``cases`` are paths that belong to the skill's cases. What
        a file that is left out was named for stays: a text is not changed but by whole parts.
        """
        text, gone = self.without(parts)
        own = self.skill.file
        return write_copy(own, target, text.encode("utf-8"), {*gone, *cases})


def write_copy(file: Path, target: Path, text: bytes, without: Collection[str] = ()) -> Path:
    """Copy the skill of a SKILL.md to a new folder, with another text, and return its SKILL.md."""
    folder = file.parent
    root = Path(os.path.realpath(folder))
    try:
        target.mkdir(parents=True)
        for name, path in installed_files(folder).items():
            real = Path(os.path.realpath(path)).relative_to(root).as_posix()
            if name == file.name or not all(belongs(one, without) for one in (name, real)):
                continue
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(read_file(path))
            copy.chmod(0o755 if is_executable(path) else 0o644)
        new = target / file.name
        new.write_bytes(text)
    except OSError as error:
        problem = f"can't be copied: {reason_of(error)}"
        raise SkillError(folder, problem, "Check its files.") from None
    return new


def text_files(skill: Skill, cases: Collection[str] = ()) -> list[str]:
    """The files that SKILL.md names, and an agent may read or run: texts that it gets."""
    files, there = FilesOnDisk(skill.file.parent), installed_files(skill.file.parent)
    found = list[str]()
    for path in [*(path for path, _ in skill.references), *(one.path for one in skill.unseen)]:
        try:
            if path in there and belongs(path, cases) and files.text(path).strip():
                found.append(path)
        except ValueError:
            continue
    return found
