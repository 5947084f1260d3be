"""How much memory this process could take without harm to others."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from .files import read_file

_UNKNOWN_SHARE: Final = 0.5  # of all memory, where nobody tells what is available (macOS)
_ROOT: Final = Path("/")


def available(root: Path = _ROOT) -> float:
    """Bytes: of the machine, or of the container if that has less; infinite if nobody tells."""
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
    """What is left of each limit on the groups that this process is in, and those above them.

    Inside of a container the path of a group may be that of the host: its own files are at the top.
    """
    yield float("inf")
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, fields = line.partition(":")
        kinds, _, path = fields.partition(":")
        if number == "0" and not kinds:
            tops, files = ["", "unified"], ("memory.max", "memory.current")
        elif "memory" in kinds.split(","):
            tops, files = ["memory"], ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        for top in tops:
            group = root / "sys/fs/cgroup" / top
            for part in ("", *Path(path).parts[1:]):
                group /= part
                with suppress(ValueError):
                    limit, used = (int(_text(group / name)) for name in files)
                    yield max(0, limit - used + _reclaimable(group))


def _reclaimable(group: Path) -> int:
    """Pages of files that nobody has used for long: they count as used, but need not be."""
    table = _table(group / "memory.stat")
    return table.get("total_inactive_file", table.get("inactive_file", 0))


def _table(file: Path) -> dict[str, int]:
    rows = (row.split() for row in _text(file).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def _text(file: Path) -> str:
    try:
        return read_file(file, 10**6).decode("utf-8", "replace")
    except OSError:
        return ""
