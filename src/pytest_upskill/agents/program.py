"""Programs of the host that run inside of a sandbox: where they are, and what comes with them."""

import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from .._util.files import open_file
from .._util.texts import one_line
from .sandboxes.sandbox import PROGRAMS, Mount

_SYSTEM: Final = ("/usr", "/bin", "/nix/store", "/gnu/store")  # is inside anyway
_VERSION: Final = re.compile(r"\d+\.\d+(?:\.\d+)?(?:[-+.][0-9A-Za-z.-]+)?")
_NODE: Final = re.compile(r"Node\.js v([\d.]+)")
_SECONDS: Final = 60.0
_REST: Final = 1.0  # seconds for the rest of what a program said, after its end
_MOST_SAID: Final = 100_000  # bytes
_ENV: Final = re.compile(rb"#!\s*\S*/env\s+(?:-\S+\s+)*(?:\w+=\S*\s+)*(\S+)")
_SHEBANG: Final = re.compile(rb"#!\s*(\S+)")
_START: Final = 4000  # bytes of a script that are looked at
# Small scripts that start another one beside them: those of pnpm, and of npm where links are not to
# be had.
_WRAPPED: Final = re.compile(rb'exec (?:node|"\$basedir/node")\s+"\$basedir/([^"]+)"')
# Programs that look up which version to start: they would find nothing inside.
_SHIMS: Final = ("volta-shim", "mise", "rtx", "asdf", "proto-shim")
_SHIM_SCRIPT: Final = re.compile(rb"\b(asdf|mise|nodenv|pyenv|rbenv|fnm)\b[^\n]*\bexec\b")


@dataclass(frozen=True)
class Program:
    """A program as it is called inside."""

    host: str
    path: str
    mounts: tuple[Mount, ...] = ()
    folders: tuple[str, ...] = ()  # to be found by name there

    def beside(self, host: str) -> "Program":
        """The same with another program of the host, which it starts by its name."""
        if _is_system(os.path.realpath(host)):
            return self
        folder = f"{PROGRAMS}/bin"
        mount = Mount(os.path.realpath(host), f"{folder}/{Path(host).name}")
        folders = tuple(dict.fromkeys((*self.folders, folder)))
        return replace(self, mounts=(*self.mounts, mount), folders=folders)


def find_program(name: str) -> Program | None:
    """The program of this name that a shell would start; None if there is none.

    ValueError if what a shell would start is of no use inside of a sandbox.
    """
    found = shutil.which(name)
    return _program(name, _unwrapped(found)) if found else None


def _unwrapped(found: str) -> str:
    """The program itself, behind links and scripts that only start it."""
    real = os.path.realpath(found)
    start = _start_of(real)
    if wrapped := _WRAPPED.search(start):
        beside = Path(real).parent / os.fsdecode(wrapped[1])
        return os.path.realpath(beside) if beside.exists() else real
    script = _SHIM_SCRIPT.search(start) if start.startswith(b"#!") else None
    if script or Path(real).name in _SHIMS:
        shim = script[1].decode() if script else Path(real).name.removesuffix("-shim")
        raise ValueError(f"{found} is a shim of {shim}, which can't be followed into a sandbox")
    return real


def _program(name: str, real: str) -> Program:
    own = PurePosixPath(PROGRAMS, name)
    if _is_system(real):
        path, mounts = real, list[Mount]()
    else:
        root = _root_of(Path(real))
        inside = own / root.name
        mounts = [Mount(str(root), str(inside))]
        path = str(inside / Path(real).relative_to(root))
    folders = list[str]()
    if interpreter := _interpreter(real):
        binary = os.path.realpath(interpreter)
        if not _is_system(binary):
            folders = [str(own / "bin")]
            mounts.append(Mount(binary, str(own / "bin" / Path(interpreter).name)))
            if _SHEBANG.match(_start_of(real)) and not _ENV.match(_start_of(real)):
                mounts.append(Mount(binary, interpreter))  # the kernel looks for it there
    return Program(real, path, tuple(mounts), tuple(folders))


def _is_system(path: str) -> bool:
    return any(Path(path).is_relative_to(one) for one in _SYSTEM)


def _root_of(program: Path) -> Path:
    """What belongs to a program: all packages beside it, or just itself."""
    above = [folder for folder in program.parents if folder.name in ("node_modules", ".pnpm")]
    return above[-1] if above else program


def _interpreter(program: str) -> str | None:
    """What a script is run by, as a shell would find it."""
    line = _start_of(program)
    if by_name := _ENV.match(line):
        return shutil.which(by_name[1].decode())
    by_path = _SHEBANG.match(line)
    return by_path[1].decode() if by_path else None


def _start_of(program: str) -> bytes:
    with open_file(Path(program)) as file:
        return file.read(_START)


@functools.cache
def version_of(program: str, cache: str = "") -> str:
    """The version that a program tells of itself; ValueError with what it says instead.

    It is asked outside of a sandbox, but finds nothing of the user's. ``cache`` is a folder for
    what it unpacks or downloads at its start, if that is to be kept.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        env = {"PATH": os.environ.get("PATH", ""), "HOME": home, "LANG": "C.UTF-8"}
        if cache:
            env["XDG_CACHE_HOME"] = cache
        code, said = _asked(program, env, home)
    found = _VERSION.search(said)
    if code or not found:
        raise ValueError(_complaint(said) if said else f"exit {code}")
    return found[0]


def _asked(program: str, env: dict[str, str], home: str) -> tuple[int, str]:
    """How a program ended that was asked for its version, and what it said at first.

    Whatever it left in the background, such as a search for updates, ends with it.
    """
    try:
        process = subprocess.Popen(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=home,
            start_new_session=True,
        )
    except OSError as error:
        raise ValueError(one_line(str(error), 200)) from None
    said = bytearray()
    reader = threading.Thread(target=_read, args=(process, said), daemon=True)
    reader.start()
    try:
        code = process.wait(_SECONDS)
        reader.join(_REST)  # what is in the background may hold the pipe
    except subprocess.TimeoutExpired:
        raise ValueError(f"it did not end in {_SECONDS:.0f} seconds") from None
    finally:
        _end(process)
    return code, bytes(said).decode("utf-8", "replace").strip()


def _read(process: "subprocess.Popen[bytes]", said: bytearray) -> None:
    """Read to the end, or a program that says more than is kept would wait for us."""
    assert process.stdout
    with process.stdout as pipe:
        while part := os.read(pipe.fileno(), 2**16):
            said += part[: _MOST_SAID - len(said)]


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a program and what it started."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _complaint(said: str) -> str:
    """The line that tells most: node ends with its own version, after an error and a stack."""
    lines = said.splitlines()
    node = _NODE.fullmatch(lines[-1].strip())
    if node is None:
        return one_line(lines[-1], 200)
    error = next((line for line in lines if re.match(r"\s*\w*Error\b", line)), "it broke")
    return f"{one_line(error, 200)} (node {node[1]} may be too old for it)"
