"""Whole-file writes, and whether a path can be written at all."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from ..errors import InputError, shown
from .keys import without_keys


def replace_file(file: Path, content: str | bytes) -> None:
    """Write a file whole or not at all: an interrupt leaves the old one. Makes its folder."""
    if isinstance(content, str):
        content = without_keys(content).encode("utf-8", "backslashreplace")
    data = content
    # A pipe or a device, such as /dev/stdout, even if that leads to a file.
    if (file.exists() and not file.is_file()) or file.parts[:2] == ("/", "dev"):
        file.write_bytes(data)
        return
    target = file.resolve()  # a link stays a link
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(data)
        draft.replace(target)
    except OSError as error:  # which names the draft, a file that nobody knows
        raise OSError(error.errno, error.strerror, str(file)) from None
    finally:
        with suppress(OSError):  # which would hide the first error
            draft.unlink()


def save_file(file: Path, content: str | bytes) -> None:
    """The same, with an error for people if it fails."""
    try:
        replace_file(file, content)
    except OSError as error:
        raise InputError(file, f"can't be written: {reason_of(error)}", "Check the path.") from None


def why_unwritable(path: Path, *, folder: bool = False) -> str:
    """Why a file (or a folder) can't be written, found without leaving a trace; empty if it can."""
    there = path if folder else path.resolve()
    while not os.path.lexists(there):
        there = there.parent
    try:
        if not folder and there == path.resolve():
            with path.open("ab"):
                return ""
        if not there.is_dir():
            kind = "a broken link" if there.is_symlink() else "a file, not a folder"
            return f"{shown(there)} is {kind}"
        with tempfile.TemporaryDirectory(prefix=".upskill-", dir=there):
            return ""
    except OSError as error:
        own = there in (path, path.resolve())
        where = "can't be written" if own else f"{shown(there)} is not writable"
        return f"{where}: {reason_of(error)}"


def reason_of(error: OSError) -> str:
    """What the system says, as part of a sentence, without the number of the error."""
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    return (error.strerror or str(error)).lower()
