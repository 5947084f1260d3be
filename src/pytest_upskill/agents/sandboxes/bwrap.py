"""Bubblewrap: namespaces of the kernel, and a filter of system calls,
without root or a daemon.
"""

import errno
import functools
import marshal
import os
import platform
import re
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..._util.files import read_file, reason_of
from . import inside
from .sandbox import HOME, SandboxError, SandboxKind, SandboxSpec
from .served import ServedSandbox

_OLDEST: Final = (0, 8)  # the first that can forbid user namespaces inside
_INSTALL: Final = (
    "Install bubblewrap 0.8 or later: apt install bubblewrap (Debian, Ubuntu), "
    "dnf install bubblewrap (Fedora), pacman -S bubblewrap (Arch)."
)
_SYSTEM: Final = (
    *(
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/nix/store",
        "/gnu/store",
    ),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"),
    # Certificates, but no private keys, which root could read.
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates/extracted"),
    *("/etc/pki/ca-trust/extracted", "/etc/pki/tls/certs", "/etc/pki/tls/openssl.cnf"),
    *("/etc/crypto-policies", "/etc/fonts", "/etc/mime.types"),
)
_ETC: Final = {
    "/etc/passwd": (
        f"root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:{HOME}:/bin/sh\n"
    ),
    "/etc/group": "root:x:0:\nagent:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_NETWORK: Final = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf")
_HIDDEN: Final = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/kpageflags")
_NAMESPACES: Final = (
    *(
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--uid",
        "1000",
        "--gid",
        "1000",
    ),
    *(
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",
        "--clearenv",
        "--cap-drop",
        "ALL",
    ),
    *("--hostname", "sandbox"),
)

_CONTAINER_FILES: Final = ("/.dockerenv", "/run/.containerenv")
_SYSCTL_FOLDER: Final = Path("/proc/sys")
_SYSCTLS: Final = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "10000"),
)


class Bwrap(SandboxKind):
    name = "bwrap"

    def why_not(self) -> str | None:
        return _why_not()

    async def open(self, spec: SandboxSpec) -> ServedSandbox:
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxError(f"bwrap was not found. {_INSTALL}")
        ours, theirs = socket.socketpair()
        errors = os.memfd_create("errors")
        passed = [theirs.fileno()]
        try:
            arguments = [
                program,
                *_NAMESPACES,
                *(["--share-net"] if spec.network else []),
            ]
            if rules := seccomp_rules():
                passed.append(_memory_file(rules))
                arguments += ["--seccomp", str(passed[-1])]
            for option in _files(spec, passed):
                arguments += option
            code = _code()
            helper = (
                python(),
                "-I",
                "-S",
                "-c",
                _BOOT,
                str(theirs.fileno()),
                str(len(code)),
            )
            # In the thread of the loop: --die-with-parent is about the thread.
            process = subprocess.Popen(
                [*_KILLED_FIRST, *arguments, "--", *helper],
                pass_fds=passed,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            ours.close()
            raise SandboxError(f"bwrap could not be started: {error}.") from None
        finally:
            theirs.close()
            for number in passed[1:]:
                os.close(number)
        sandbox = ServedSandbox(process, ours, spec)
        sandbox.python = python()
        try:
            await sandbox.start(code, spec.environment(_path()))
            _prioritize(process.pid)
        except SandboxError as error:
            await sandbox.close()
            message = os.pread(errors, 2000, 0).decode(errors="replace").strip()
            raise SandboxError(
                message.splitlines()[-1] if message else str(error)
            ) from None
        except BaseException:
            await sandbox.close()
            raise
        finally:
            os.close(errors)
        return sandbox


# If the machine runs out of memory, processes of a sandbox are killed first.
_SCORE: Final = '{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null; exec "$@"'
_KILLED_FIRST: Final = ("/bin/sh", "-c", _SCORE, "sh")


def _prioritize(bwrap: int) -> None:
    """Give the helper priority over all commands.

    The kernel does not limit the processes of root,
    so the helper has to end them in time.
    """
    if os.geteuid() == 0:
        with suppress(OSError, ValueError):
            (helper,) = read_file(Path(f"/proc/{bwrap}/task/{bwrap}/children")).split()
            first = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK  # its commands wait as usual
            os.sched_setscheduler(int(helper), first, os.sched_param(1))


# The helper's code comes through the socket, compiled once,
# which makes the start much faster.
_BOOT: Final = (
    "import marshal, os, sys\n"
    "fd, size, code = int(sys.argv[1]), int(sys.argv[2]), b''\n"
    "while len(code) < size:\n"
    "    part = os.read(fd, size - len(code))\n"
    "    if not part: os._exit(0)\n"
    "    code += part\n"
    "exec(marshal.loads(code), {'__name__': '__main__'})\n"
)


@functools.cache
def _code() -> bytes:
    source = read_file(Path(inside.__file__))
    return marshal.dumps(compile(source, "inside.py", "exec"))


@functools.cache
def python() -> str:
    """This Python outside of its virtual environment, to be called inside."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    candidates = (
        Path(sys.base_prefix, "bin", name),
        Path(os.path.realpath(sys.executable)),
    )
    return str(next(path for path in candidates if path.exists()))


def _python_folders() -> list[Path]:
    """The folders of this Python, unless it is part of the system."""
    prefix = Path(sys.base_prefix)
    if prefix.is_relative_to("/usr") or prefix.is_relative_to("/nix/store"):
        return []
    folders = (
        prefix / name for name in ("bin", "lib", "lib64", "include", "share", "ssl")
    )
    return [folder for folder in folders if folder.is_dir()]


def _path() -> str:
    path = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
    # Before that of the system: packages are installed for this Python.
    return f"{Path(sys.base_prefix, 'bin')}:{path}" if _python_folders() else path


def _files(spec: SandboxSpec, passed: list[int]) -> Iterator[list[str]]:
    """Options for the files inside. Open files are added to ``passed``."""
    for name in _SYSTEM:
        yield from _around(spec.disk, Path(name))
    for name, text in _ETC.items():
        if spec.network and name in _NETWORK:
            continue
        passed.append(_memory_file(text.encode()))
        yield ["--file", str(passed[-1]), name]
    if spec.network:
        for name in _NETWORK:
            yield ["--ro-bind-try", os.path.realpath(name), name]
    yield ["--proc", "/proc"]
    yield ["--dev", "/dev"]
    for folder, size in spec.disk.items():
        yield ["--perms", "0755", "--size", str(size), "--tmpfs", folder]
    # It may be in a home that is a workdir here
    for python_folder in map(str, _python_folders()):
        yield ["--ro-bind", python_folder, python_folder]
    for mount in spec.mounts:
        yield ["--ro-bind", mount.host, mount.inside]
    # Root could read secrets and change settings in files of the kernel.
    for name in _HIDDEN:
        if Path(name).exists():
            yield ["--ro-bind", "/dev/null", name]
    yield ["--remount-ro", "/proc"]
    yield ["--remount-ro", "/dev"]
    yield ["--remount-ro", "/"]
    yield ["--chdir", spec.workdir]


def _around(folders: Collection[str], path: Path) -> Iterator[list[str]]:
    """Options for a path of the host, without those folders in it
    that the sandbox has itself.
    """
    if path.is_symlink():
        yield ["--symlink", str(path.readlink()), str(path)]
    elif any(Path(folder).is_relative_to(path) for folder in folders):
        if str(path) not in folders:
            for child in sorted(path.iterdir()):
                yield from _around(folders, child)
    elif path.exists():
        yield ["--ro-bind", str(path), str(path)]


def _memory_file(data: bytes) -> int:
    """An open file in memory with this data."""
    file = os.memfd_create("data")
    os.write(file, data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


@functools.cache
def _why_not() -> str | None:
    if sys.platform != "linux":
        return "bubblewrap is for Linux only."
    program = shutil.which("bwrap")
    if program is None:
        return f"bwrap was not found. {_INSTALL}"
    try:
        ran = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"{program} can't be run: {reason_of(error)}."
    version = re.search(r"(\d+)\.(\d+)", ran.stdout)
    if not version or tuple(map(int, version.groups())) < _OLDEST:
        return f"{ran.stdout.strip() or program} is too old. {_INSTALL}"
    problem = Bwrap().failure()
    return f"bwrap does not work here: {problem}. {_how_to_fix()}" if problem else None


def _how_to_fix() -> str:
    """A hint for kernels that forbid namespaces."""
    for name, wrong, right in _SYSCTLS:
        file = _SYSCTL_FOLDER.joinpath(*name.split("."))
        if file.exists() and read_file(file).decode().strip() == wrong:
            return f"Allow user namespaces: sudo sysctl -w {name}={right}"
    if any(map(os.path.exists, _CONTAINER_FILES)):
        return (
            "This is a container: start it with --security-opt seccomp=unconfined "
            "--security-opt apparmor=unconfined --security-opt systempaths=unconfined."
        )
    return "Check that this system allows user namespaces: unshare --user true"


# A filter of system calls. The namespaces keep the host out of reach; this closes
# what they leave open: keys of the kernel that a session shares, memory that no
# limit counts, limits and priorities of the helper, and parts of the kernel that
# are known for their holes.

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
# Programs do without
_ABSENT: Final = ("memfd_create", "memfd_secret", "io_uring_setup")
# Calls that are allowed for some values of an argument: name → numbers, argument,
# values, error.
_LIMITED: Final = {
    # Process 0 is the caller itself; another could be the helper.
    "prlimit64": ((302, 261), 0, (0,), errno.EPERM),
    "sched_setaffinity": ((203, 122), 0, (0,), errno.EPERM),
    "sched_setscheduler": ((144, 119), 0, (0,), errno.EPERM),
    "sched_setparam": ((142, 118), 0, (0,), errno.EPERM),
    "sched_setattr": ((314, 274), 0, (0,), errno.EPERM),
    # Unix, IPv4, IPv6, netlink: others, as that to the host of a virtual machine,
    # know no namespaces.
    "socket": ((41, 198), 0, (1, 2, 10, 16), errno.EAFNOSUPPORT),
}
# setpriority: of the caller or its group, which the helper isn't in
_PRIORITY: Final = (141, 140)
# Ioctl TIOCSTI and TIOCLINUX: into a terminal
_TYPING: Final = ((16, 29), (0x5412, 0x541C))
# How the kernel calls them, and which column of numbers is theirs
_ARCHITECTURES: Final = {
    "x86_64": (0xC000003E, 0),
    "aarch64": (0xC00000B7, 1),
    "riscv64": (0xC00000F3, 1),
}
_X32: Final = 0x40000000  # the bit of a second set of numbers on x86_64

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in what a filter sees


def seccomp_rules(machine: str | None = None) -> bytes:
    """The filter as the kernel wants it; empty for a machine
    whose numbers are not known.
    """
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
            *(
                _step(_EQUAL, value, len(values) - index, 0)
                for index, value in enumerate(values)
            ),
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
