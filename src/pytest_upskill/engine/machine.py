"""How many agents this machine has room for."""

import os
from pathlib import Path
from typing import Final

from .._util.files import read_file

_SHARE: Final = 0.8  # agents may take so much of the available memory
# Of all memory, where the available part is unknown (macOS)
_UNKNOWN_SHARE: Final = 0.5
_ROOT: Final = Path("/")


def default_at_once() -> int:
    """Twice the cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return 2 * (len(affinity(0)) if affinity else os.cpu_count() or 1)


def memory_for_agents() -> float:
    """Megabytes that agents may take; infinite where the system does not say."""
    return _SHARE * available_memory() / 10**6


def available_memory(root: Path = _ROOT) -> float:
    """Available bytes of the machine, or of the container if that has less;
    infinite if unknown.
    """
    return min(_machine_memory(root), _container_memory(root))


def _machine_memory(root: Path) -> float:
    kilobytes = _read_numbers(root / "proc/meminfo").get("MemAvailable:")
    if kilobytes is not None:
        return kilobytes * 1024.0
    try:
        return _UNKNOWN_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _container_memory(root: Path) -> float:
    """What remains of the limit of the container that this process is in."""
    group = root / "sys/fs/cgroup"
    try:
        limit = int(_read_text(group / "memory.max"))
        used = int(_read_text(group / "memory.current"))
    except ValueError:
        return float("inf")

    # Inactive pages of files count as used, but can be reclaimed.
    inactive = _read_numbers(group / "memory.stat").get("inactive_file", 0)
    return max(0, limit - used + inactive)


def _read_numbers(file: Path) -> dict[str, int]:
    rows = (row.split() for row in _read_text(file).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def _read_text(file: Path) -> str:
    try:
        return read_file(file, 10**6).decode("utf-8", "replace")
    except OSError:
        return ""
