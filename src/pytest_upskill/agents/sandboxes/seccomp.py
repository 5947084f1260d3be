"""A filter of system calls for a sandbox: what neither skills nor their tools need.

The namespaces keep the host out of reach; this closes what they leave open: keys of the kernel
that a session shares, memory that no limit counts, limits and priorities of the helper, and
parts of the kernel that are known for their holes.
"""

import errno
import platform
import struct
from typing import Final

# Numbers on x86_64, and those that all newer architectures share.
_FORBIDDEN: Final = {
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "swapon": (167, 224),
    "quotactl": (179, 60),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
_ABSENT: Final = ("memfd_create", "memfd_secret", "io_uring_setup")  # programs do without
# Calls that are allowed for some values of an argument: name → numbers, argument, values, error.
_LIMITED: Final = {
    # Process 0 is the caller itself; another could be the helper.
    "prlimit64": ((302, 261), 0, (0,), errno.EPERM),
    "sched_setaffinity": ((203, 122), 0, (0,), errno.EPERM),
    "sched_setscheduler": ((144, 119), 0, (0,), errno.EPERM),
    "sched_setparam": ((142, 118), 0, (0,), errno.EPERM),
    "sched_setattr": ((314, 274), 0, (0,), errno.EPERM),
    # Unix, IPv4, IPv6, netlink: others, as that to the host of a virtual machine, know no
    # namespaces.
    "socket": ((41, 198), 0, (1, 2, 10, 16), errno.EAFNOSUPPORT),
}
_PRIORITY: Final = (141, 140)  # setpriority: of the caller or its group, which the helper isn't in
_TYPING: Final = ((16, 29), (0x5412, 0x541C))  # ioctl TIOCSTI and TIOCLINUX: into a terminal
_ARCHITECTURES: Final = {  # how the kernel calls them, and which column of numbers is theirs
    "x86_64": (0xC000003E, 0),
    "aarch64": (0xC00000B7, 1),
    "riscv64": (0xC00000F3, 1),
}
_X32: Final = 0x40000000  # the bit of a second set of numbers on x86_64

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in what a filter sees


def rules(machine: str | None = None) -> bytes:
    """The filter as the kernel wants it; empty for a machine whose numbers are not known."""
    architecture = _ARCHITECTURES.get(machine or platform.machine())
    if architecture is None:
        return b""
    name, column = architecture
    steps = [_step(_LOAD, _ARCHITECTURE), *_unless_equal(name), _step(_LOAD, _NUMBER)]
    if column == 0:
        steps += [_step(_AT_LEAST, _X32, 0, 1), _refuse(errno.ENOSYS)]
    for call, numbers in _FORBIDDEN.items():
        number = errno.ENOSYS if call in _ABSENT else errno.EPERM
        steps += [_step(_EQUAL, numbers[column], 0, 1), _refuse(number)]
    for numbers, argument, values, number in _LIMITED.values():
        # One argument is looked at, so the number is lost: each branch ends here.
        steps += [
            _step(_EQUAL, numbers[column], 0, len(values) + 3),
            _step(_LOAD, _ARGUMENTS + 8 * argument),
            *(_step(_EQUAL, value, len(values) - index, 0) for index, value in enumerate(values)),
            _refuse(number),
            _step(_RETURN, _ALLOW),
        ]
    steps += [
        _step(_EQUAL, _PRIORITY[column], 0, 6),
        _step(_LOAD, _ARGUMENTS),
        _step(_AT_LEAST, 2, 2, 0),
        _step(_LOAD, _ARGUMENTS + 8),
        _step(_EQUAL, 0, 1, 0),
        _refuse(errno.EPERM),
        _step(_RETURN, _ALLOW),
        _step(_EQUAL, _TYPING[0][column], 0, 4),
        _step(_LOAD, _ARGUMENTS + 8),
        _step(_EQUAL, _TYPING[1][0], 1, 0),
        _step(_EQUAL, _TYPING[1][1], 0, 1),
        _refuse(errno.EPERM),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(steps)


def _unless_equal(name: int) -> list[bytes]:
    """Calls of another architecture, which have other numbers, don't exist."""
    return [_step(_EQUAL, name, 1, 0), _refuse(errno.ENOSYS)]


def _refuse(number: int) -> bytes:
    return _step(_RETURN, _ERROR | number)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
