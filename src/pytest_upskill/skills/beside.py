"""Save a changed skill beside the old one, with its cases, to be compared, tried and moved."""

import os
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from .._util.files import reason_of, replace_file, resolved
from .._util.keys import without_keys
from ..errors import InputError
from .description import with_field
from .folder import TOOL_FOLDERS
from .skill import LONGEST_NAME

_SHORT: Final = "short"


def beside(folder: Path) -> Path:
    """A free folder for a shorter version of a skill: skills/wick → skills/wick-short."""
    folder = resolved(folder)
    number, ending = 1, f"-{_SHORT}"
    while True:
        found = folder.with_name(f"{folder.name[: LONGEST_NAME - len(ending)]}{ending}")
        if not os.path.lexists(found):
            return found
        number += 1
        ending = f"-{_SHORT}-{number}"


def renamed(text: str, name: str) -> str:
    """A SKILL.md with another name; unchanged if it has none, or nothing else would stay as it is.

    A skill without a name is known by its folder.
    """
    return with_field(text, "name", name) or text


def save_beside(file: Path, text: str, without: Collection[str] = ()) -> Path:
    """Copy the folder of a SKILL.md, whole or not at all, with another text and without some files.

    The copy has a name of its own, which is that of its folder. InputError if it can't be written.
    """
    folder, target = resolved(file.parent), beside(file.parent)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as made:
            new = Path(made, "new")
            others = shutil.ignore_patterns(*TOOL_FOLDERS)
            shutil.copytree(folder, new, symlinks=True, ignore=others)
            _turn_links(folder, new)
            for name in (*without, file.name):
                (new / name).unlink(missing_ok=True)
            replace_file(new / file.name, without_keys(renamed(text, target.name)).encode())
            new.rename(target)
    except OSError as error:
        problem = f"can't be written: {reason_of(error)}"
        raise InputError(target, problem, "Check the folder.") from None
    return target


def _turn_links(folder: Path, new: Path) -> None:
    """Let links into the old folder lead into the copy: what is changed there must not be it."""
    for parent, folders, files in os.walk(new):
        for link in (Path(parent, name) for name in (*folders, *files)):
            if not link.is_symlink():
                continue
            there = folder / link.relative_to(new)
            if (real := resolved(there)).is_relative_to(folder):
                link.unlink()
                link.symlink_to(os.path.relpath(real, there.parent))
