"""The folder on the host that a run uses for its agents.
Those of dead runs are removed.
"""

import atexit
import functools
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_NEW: Final = "pytest-upskill-new-"
_RUN: Final = "pytest-upskill-run-"
_HOUR: Final = 3600.0
_ending: dict[int, Callable[[], None]] = {}  # by process


def end_run_folder() -> None:
    """Remove the folder of this process now, as it may be killed, or run for days."""
    if end := _ending.pop(os.getpid(), None):
        run_folder.cache_clear()
        atexit.unregister(end)
        end()


@functools.cache
def run_folder() -> Path:
    """A private folder of this process, removed at its end,
    or by the next run if it is killed.
    """
    top = Path(tempfile.gettempdir())
    _clear(top)
    new = Path(tempfile.mkdtemp(prefix=_NEW, dir=top))
    locked = _locked(new)  # until the end of this process
    # Now other runs may look at it
    folder = new.rename(top / new.name.replace(_NEW, _RUN))
    owner = os.getpid()

    def end() -> None:
        if os.getpid() == owner:  # not in a child that was forked from this process
            remove(folder)
            if locked is not None:
                os.close(locked)

    atexit.register(end)
    _ending[owner] = end
    return folder


def remove(folder: Path) -> None:
    """Remove a folder, even if parts of it are read-only."""
    if folder.is_symlink():
        return
    for path, _, _ in os.walk(folder):
        with suppress(OSError):
            Path(path).chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def _clear(top: Path) -> None:
    """Remove the folders of this user's runs that are over."""
    for folder in (*top.glob(f"{_RUN}*"), *top.glob(f"{_NEW}*")):
        with suppress(OSError):
            status = folder.lstat()
            mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
            if not mine or not stat.S_ISDIR(status.st_mode):
                continue
            if folder.name.startswith(_NEW) and time.time() - status.st_mtime < _HOUR:
                continue
            locked = _locked(folder)
            if locked is not None:
                remove(folder)
                os.close(locked)


def _locked(folder: Path) -> int | None:
    """Lock a folder until the end of this process; None if another process has it."""
    # Folders can't be locked: only their owner removes them
    if sys.platform == "win32":
        return None
    import fcntl

    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened
