"""The filter of system calls, as the kernel would carry it out."""

import errno
import struct

import pytest

from pytest_upskill.agents.sandboxes.bwrap import seccomp_rules

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED = 0x7FFF0000


def refused(
    machine: str, number: int, *arguments: int, architecture: int | None = None
) -> int:
    """The error of a call; 0 if it is allowed."""
    name = ARCHITECTURES[machine] if architecture is None else architecture
    seen = struct.pack(
        "=IIQ6Q", number, name, 0, *arguments, *[0] * (6 - len(arguments))
    )
    steps = list(struct.iter_unpack("=HBBI", seccomp_rules(machine)))
    at = loaded = 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("=I", seen, value)
        elif code == 0x15:
            at += if_true if loaded == value else if_false
        elif code == 0x35:
            at += if_true if loaded >= value else if_false
        elif code == 0x06:
            return 0 if value == ALLOWED else value & 0xFFFF
        else:
            raise AssertionError(code)


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_what_the_filter_refuses(machine: str) -> None:
    x86 = machine == "x86_64"
    keyctl, memfd, socket = (250, 319, 41) if x86 else (219, 279, 198)
    prlimit, setpriority, ioctl, read = (302, 141, 16, 0) if x86 else (261, 140, 29, 63)
    assert refused(machine, keyctl) == errno.EPERM
    assert refused(machine, memfd) == errno.ENOSYS
    assert refused(machine, read) == 0
    assert [refused(machine, socket, family) for family in (1, 2, 10, 16)] == [0] * 4
    # To the host of this machine
    assert refused(machine, socket, 40) == errno.EAFNOSUPPORT
    assert refused(machine, socket, 38) == errno.EAFNOSUPPORT
    assert refused(machine, prlimit, 0) == 0
    assert refused(machine, prlimit, 1) == errno.EPERM
    assert [refused(machine, setpriority, which, 0) for which in (0, 1)] == [0, 0]
    assert refused(machine, setpriority, 0, 1) == errno.EPERM
    assert refused(machine, setpriority, 2, 0) == errno.EPERM
    assert refused(machine, ioctl, 1, 0x5412) == errno.EPERM
    assert refused(machine, ioctl, 1, 0x541C) == errno.EPERM
    assert refused(machine, ioctl, 1, 0x5413) == 0


def test_other_sets_of_numbers_are_refused() -> None:
    assert refused("x86_64", 0, architecture=0x40000003) == errno.ENOSYS
    assert refused("x86_64", 0x40000000) == errno.ENOSYS


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    assert seccomp_rules("z80") == b""
