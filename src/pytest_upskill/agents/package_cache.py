"""Packages in the user's cache: their exact versions, and folders of them."""

import json
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from .._util.files import read_file, replace_file
from .run_folder import remove
from .sandboxes.sandbox import SandboxError

DAY: Final = 86_400.0  # versions are looked up again after this time


def daily_versions(file: Path, look_up: Callable[[], list[str]]) -> list[str]:
    """The exact versions, looked up once a day; if that fails, those of the last
    time.
    """
    previous: list[str] | None = None
    with suppress(OSError, ValueError):
        previous = [str(requirement) for requirement in json.loads(read_file(file))]
        if time.time() - file.stat().st_mtime < DAY:
            return previous
    try:
        versions = look_up()
    except SandboxError:
        if previous is None:
            raise
        return previous
    with suppress(OSError):
        replace_file(file, json.dumps(versions))
    return versions


def whole_folder(folder: Path, make: Callable[[Path], None]) -> Path:
    """A folder of the cache, made whole or not at all."""
    if folder.is_dir():
        return folder
    new = folder.with_name(f"new-{secrets.token_hex(8)}")
    try:
        new.mkdir(parents=True)
        make(new)
        new.rename(folder)
    except OSError as error:
        if not folder.is_dir():  # else another run was faster
            raise SandboxError(
                f"{folder.parent} can't be written: {error.strerror}."
            ) from None
    finally:
        remove(new)
    return folder
