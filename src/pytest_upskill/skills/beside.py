"""Save a changed skill beside the old one, with its cases, to be compared, tried and moved."""

import os
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from .._util.files import reason_of, replace_file, resolved
from ..errors import InputError
from .folder import TOOL_FOLDERS

_SHORT: Final = "short"


def beside(folder: Path) -> Path:
    """A free folder for a shorter version of a skill: skills/wick → skills/wick.short."""
    folder = resolved(folder)
    found, number = folder.with_name(f"{folder.name}.{_SHORT}"), 1
    while os.path.lexists(found):
        number += 1
        found = folder.with_name(f"{folder.name}.{_SHORT}-{number}")
    return found


def save_beside(file: Path, text: str | bytes, without: Collection[str] = ()) -> Path:
    """Copy the folder of a SKILL.md, whole or not at all, with another text and without some files.

    InputError if it can't be written.
    """
    folder, target = resolved(file.parent), beside(file.parent)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as made:
            new = Path(made, "new")
            others = shutil.ignore_patterns(*TOOL_FOLDERS)
            shutil.copytree(folder, new, symlinks=True, ignore=others)
            for name in without:
                (new / name).unlink(missing_ok=True)
            replace_file(new / file.name, text)
            new.rename(target)
    except OSError as error:
        problem = f"can't be written: {reason_of(error)}"
        raise InputError(target, problem, "Check the folder.") from None
    return target
