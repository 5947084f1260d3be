"""A control group (cgroup v2) around a sandbox, where one can be had.

The helper inside adds up what processes use. A group also counts what belongs to
no process, or that none admits: page tables, buffers of sockets, messages of
System V; and it acts at once.
"""

import functools
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Final

from ..._util.files import read_file
from .sandbox import SandboxLimits

_MOUNT: Final = Path("/sys/fs/cgroup")
_MEMBERSHIP: Final = Path("/proc/self/cgroup")
_NAME: Final = "pytest-upskill"
_TRY_SECONDS: Final = 10.0
_DYING: Final = 50, 0.02  # looks, and seconds between them, until processes are gone
_MEMORY: Final = 64 * 2**20  # bytes of bubblewrap and the helper
_PROCESSES: Final = 16
_PERIOD: Final = 100_000  # microseconds, in which processes get their time
_BUS: Final = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
_JOIN: Final = 'echo $$ > "$1" && shift && exec "$@"'
# Prints an inherited file, and the limits of a folder, or of the group that it is in.
_SHOW: Final = (
    'cat "/proc/self/fd/$1"; [ -n "$2" ] || while read -r line; do '
    'case "$line" in 0::*) set -- "$1" "$3${line#0::}";; esac; done < "$4"; '
    'cd "$2" && cat memory.max pids.max'
)


@dataclass(frozen=True)
class LimitGroup:
    """A group for the processes of one sandbox, or none."""

    start: tuple[str, ...] = ()  # in front of a command that is to be in it
    env: Mapping[str, str] = field(default_factory=dict)  # of that
    folder: Path | None = None  # to be removed

    def remove(self) -> None:
        """Call it when all processes have ended, in a thread."""
        if self.folder:
            for _ in range(_DYING[0]):
                with suppress(OSError):
                    self.folder.rmdir()
                if not self.folder.exists():
                    return
                time.sleep(_DYING[1])


NO_GROUP: Final = LimitGroup()
_Make = Callable[[SandboxLimits], LimitGroup]


def group_of(limits: SandboxLimits) -> LimitGroup:
    """A new group with limits. OSError if it can't be made, although others could."""
    make = _working()
    return make(limits) if make else NO_GROUP


def limited_by() -> str:
    """Who limits memory and processes of sandboxes here, in words."""
    make = _working()
    return (
        f"{_WAYS[make]} and its helper"
        if make
        else "its helper alone, without cgroup v2"
    )


def _by_systemd(limits: SandboxLimits) -> LimitGroup:
    program = shutil.which("systemd-run")
    if program is None:
        raise FileNotFoundError("systemd-run")
    numbers = _numbers(limits)
    # With Delegate, systemd leaves the others alone if one
    # process is killed at the limit.
    properties: tuple[str, ...] = (
        "Delegate=yes",
        f"MemoryMax={numbers['memory.max']}",
        "MemorySwapMax=0",
    )
    options = ["--scope", "--quiet", "--collect", "--no-ask-password"]
    options += ["--user"] if os.geteuid() else []
    properties = (*properties, f"TasksMax={numbers['pids.max']}")
    properties += (f"CPUQuota={limits.cpus * 100:.0f}%",) if limits.cpus else ()
    options += [f"--property={text}" for text in properties]
    env = {name: os.environ[name] for name in _BUS if name in os.environ}
    return LimitGroup((program, *options, "--"), env)


def _delegated(limits: SandboxLimits) -> LimitGroup:
    """A group in ours, or beside it, if its owner lets us."""
    parent = next(_parents(), None)
    if parent is None:
        raise FileNotFoundError(_MOUNT)
    folder = parent / f"{_NAME}-{os.getpid()}-{token_hex(4)}"
    folder.mkdir()
    group = LimitGroup(
        ("/bin/sh", "-c", _JOIN, "sh", f"{folder}/cgroup.procs"), folder=folder
    )
    try:
        for name, number in _numbers(limits).items():
            (folder / name).write_text(f"{number}\n")
    except OSError:
        group.remove()
        raise
    with suppress(OSError):  # there may be no swap
        (folder / "memory.swap.max").write_text("0\n")
    with suppress(OSError):  # nor a controller of processors
        if limits.cpus:
            quota = max(int(limits.cpus * _PERIOD), 1000)  # the kernel takes no less
            (folder / "cpu.max").write_text(f"{quota} {_PERIOD}\n")
    return group


_WAYS: Final[Mapping[_Make, str]] = {
    _by_systemd: "systemd (cgroup v2)",
    _delegated: "cgroup v2",
}


def _numbers(limits: SandboxLimits) -> dict[str, int]:
    """The files of a sandbox are in memory, too."""
    memory = limits.memory + limits.disk + _MEMORY
    return {"memory.max": memory, "pids.max": limits.processes + _PROCESSES}


def _parents() -> Iterator[Path]:
    """Folders whose groups may be limited. A group that has
    processes has none below it.
    """
    with suppress(OSError):
        lines = read_file(_MEMBERSHIP).decode().splitlines()
        for path in (
            line.removeprefix("0::/") for line in lines if line.startswith("0::/")
        ):
            for folder in dict.fromkeys((_MOUNT / path, (_MOUNT / path).parent)):
                control = folder / "cgroup.subtree_control"
                if folder.is_relative_to(_MOUNT) and control.exists():
                    controllers = read_file(control).decode().split()
                    if {"memory", "pids"} <= {*controllers} and os.access(
                        folder, os.W_OK
                    ):
                        _sweep(folder)
                        yield folder


def _sweep(parent: Path) -> None:
    """Remove groups of runs that were killed."""
    for folder in parent.glob(f"{_NAME}-*-*"):
        if not Path("/proc", folder.name.split("-")[2]).exists():
            with suppress(OSError):
                folder.rmdir()


@functools.cache
def _working() -> _Make | None:
    """The first way to make groups that works here."""
    return next(filter(_works, _WAYS), None)


def _works(make: _Make) -> bool:
    """Whether a command in a new group is limited, and inherits files."""
    limits = SandboxLimits()
    try:
        group = make(limits)
    except OSError:
        return False
    inherited = os.memfd_create("inherited")
    os.write(inherited, b"0\n")
    places = (str(group.folder or ""), str(_MOUNT), str(_MEMBERSHIP))
    try:
        shown = subprocess.run(
            [*group.start, "/bin/sh", "-c", _SHOW, "sh", str(inherited), *places],
            pass_fds=(inherited,),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRY_SECONDS,
            env={**group.env, "PATH": os.defpath},
            check=False,
        ).stdout
        return shown.split() == [
            str(n).encode() for n in (0, *_numbers(limits).values())
        ]
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        os.close(inherited)
        group.remove()
