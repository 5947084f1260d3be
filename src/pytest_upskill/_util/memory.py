"""How much memory this process could use."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from .files import read_file

_UNKNOWN_SHARE: Final = 0.5  # of all memory, where the available part is unknown (macOS)
_ROOT: Final = Path("/")
_FILES: Final = ("max", "current")


def available(root: Path = _ROOT) -> float:
    """Available bytes of the machine, or of the container if that has less; infinite if unknown."""
    return min(_of_machine(root), *_of_groups(root))


def _of_machine(root: Path) -> float:
    kilobytes = _table(root / "proc/meminfo").get("MemAvailable:")
    if kilobytes is not None:
        return kilobytes * 1024.0
    try:
        return _UNKNOWN_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _of_groups(root: Path) -> Iterator[float]:
    """What remains of the limit of each control group (version 2) that this process is in.

    In a container, the path of a group may be the host's: its own files are at the top.
    """
    yield float("inf")
    for line in _text(root / "proc/self/cgroup").splitlines():
        if line.startswith("0::"):
            group = root / "sys/fs/cgroup"
            for part in ("", *Path(line[3:]).parts[1:]):
                group /= part
                with suppress(ValueError):
                    limit, used = (int(_text(group / f"memory.{name}")) for name in _FILES)
                    # Inactive pages of files count as used, but can be reclaimed.
                    reclaimable = _table(group / "memory.stat").get("inactive_file", 0)
                    yield max(0, limit - used + reclaimable)


def _table(file: Path) -> dict[str, int]:
    rows = (row.split() for row in _text(file).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def _text(file: Path) -> str:
    try:
        return read_file(file, 10**6).decode("utf-8", "replace")
    except OSError:
        return ""
