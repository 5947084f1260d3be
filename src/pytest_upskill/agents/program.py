"""Programs of the host that run inside of a sandbox, and their versions."""

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

# Mounted in every sandbox
_SYSTEM: Final = ("/usr", "/bin", "/nix/store", "/gnu/store")
_VERSION: Final = re.compile(r"\d+\.\d+(?:\.\d+)?(?:[-+.][0-9A-Za-z.-]+)?")
_NODE: Final = re.compile(r"Node\.js v([\d.]+)")
_SECONDS: Final = 60.0
_PIPE_SECONDS: Final = 1.0  # seconds to read the rest of the output after the end
_MOST_OUTPUT: Final = 100_000  # bytes
_ENV: Final = re.compile(rb"#!\s*\S*/env\s+(?:-\S+\s+)*(?:\w+=\S*\s+)*(\S+)")
_SHEBANG: Final = re.compile(rb"#!\s*(\S+)")
_START_BYTES: Final = 4000  # of a script, to find its interpreter
# Small scripts of pnpm and npm that start another one beside them.
_WRAPPED: Final = re.compile(rb'exec (?:node|"\$basedir/node")\s+"\$basedir/([^"]+)"')
# Version managers' programs: they would find nothing inside.
_SHIMS: Final = ("volta-shim", "mise", "rtx", "asdf", "proto-shim")
_SHIM_SCRIPT: Final = re.compile(
    rb"\b(asdf|mise|nodenv|pyenv|rbenv|fnm)\b[^\n]*\bexec\b"
)


@dataclass(frozen=True)
class Program:
    """A program as it is called inside."""

    host: str
    path: str
    mounts: tuple[Mount, ...] = ()
    folders: tuple[str, ...] = ()  # to put on PATH

    def beside(self, host: str) -> "Program":
        """With another program of the host, which it starts by name."""
        if _is_system(os.path.realpath(host)):
            return self
        folder = f"{PROGRAMS}/bin"
        mount = Mount(os.path.realpath(host), f"{folder}/{Path(host).name}")
        folders = tuple(dict.fromkeys((*self.folders, folder)))
        return replace(self, mounts=(*self.mounts, mount), folders=folders)


def find_program(name: str) -> Program | None:
    """The program that a shell would start; None if there is none.

    ValueError if it can't work inside of a sandbox.
    """
    path = shutil.which(name)
    return _program(name, _unwrapped(path)) if path else None


def _unwrapped(path: str) -> str:
    """The program behind links and scripts that only start it."""
    real = os.path.realpath(path)
    start = _first_bytes(real)
    if wrapped := _WRAPPED.search(start):
        beside = Path(real).parent / os.fsdecode(wrapped[1])
        return os.path.realpath(beside) if beside.exists() else real
    script = _SHIM_SCRIPT.search(start) if start.startswith(b"#!") else None
    if script or Path(real).name in _SHIMS:
        shim = script[1].decode() if script else Path(real).name.removesuffix("-shim")
        raise ValueError(
            f"{path} is a shim of {shim}, which can't be followed into a sandbox"
        )
    return real


def _program(name: str, real: str) -> Program:
    folder = PurePosixPath(PROGRAMS, name)
    if _is_system(real):
        path, mounts = real, list[Mount]()
    else:
        root = _root_of(Path(real))
        inside = folder / root.name
        mounts = [Mount(str(root), str(inside))]
        path = str(inside / Path(real).relative_to(root))
    folders = list[str]()
    if interpreter := _interpreter(real):
        binary = os.path.realpath(interpreter)
        if not _is_system(binary):
            folders = [str(folder / "bin")]
            mounts.append(Mount(binary, str(folder / "bin" / Path(interpreter).name)))
            if _SHEBANG.match(_first_bytes(real)) and not _ENV.match(
                _first_bytes(real)
            ):
                # The kernel looks for it there
                mounts.append(Mount(binary, interpreter))
    return Program(real, path, tuple(mounts), tuple(folders))


def _is_system(path: str) -> bool:
    return any(Path(path).is_relative_to(prefix) for prefix in _SYSTEM)


def _root_of(program: Path) -> Path:
    """What to mount for a program: all node packages beside it, or just itself."""
    above = [
        folder for folder in program.parents if folder.name in ("node_modules", ".pnpm")
    ]
    return above[-1] if above else program


def _interpreter(program: str) -> str | None:
    """The interpreter of a script, as a shell would find it."""
    line = _first_bytes(program)
    if by_name := _ENV.match(line):
        return shutil.which(by_name[1].decode())
    by_path = _SHEBANG.match(line)
    return by_path[1].decode() if by_path else None


def _first_bytes(program: str) -> bytes:
    with open_file(Path(program)) as file:
        return file.read(_START_BYTES)


@functools.cache
def version_of(program: str, cache: str = "") -> str:
    """The version that a program prints; ValueError with its error.

    It runs outside of a sandbox, with an empty home. ``cache`` is a folder for what it
    unpacks or downloads at its start.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        env = {"PATH": os.environ.get("PATH", ""), "HOME": home, "LANG": "C.UTF-8"}
        if cache:
            env["XDG_CACHE_HOME"] = cache
        code, output = _run_version(program, env, home)
    version = _VERSION.search(output)
    if code or not version:
        raise ValueError(_error_line(output) if output else f"exit {code}")
    return version[0]


def _run_version(program: str, env: dict[str, str], home: str) -> tuple[int, str]:
    """The exit status and the first output of ``program --version``.

    Processes that it left in the background, such as a search for updates, are ended.
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
    output = bytearray()
    reader = threading.Thread(target=_read, args=(process, output), daemon=True)
    reader.start()
    try:
        code = process.wait(_SECONDS)
        reader.join(_PIPE_SECONDS)  # a background process may hold the pipe
    except subprocess.TimeoutExpired:
        raise ValueError(f"it did not end in {_SECONDS:.0f} seconds") from None
    finally:
        _end(process)
    return code, bytes(output).decode("utf-8", "replace").strip()


def _read(process: "subprocess.Popen[bytes]", output: bytearray) -> None:
    """Read to the end, so that a program with more output than
    the limit does not block.
    """
    assert process.stdout
    with process.stdout as pipe:
        while part := os.read(pipe.fileno(), 2**16):
            output += part[: _MOST_OUTPUT - len(output)]


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a program and its children."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _error_line(output: str) -> str:
    """The most telling line: node prints its own version last, after error and
    stack.
    """
    lines = output.splitlines()
    node = _NODE.fullmatch(lines[-1].strip())
    if node is None:
        return one_line(lines[-1], 200)
    error = next(
        (line for line in lines if re.match(r"\s*\w*Error\b", line)), "it broke"
    )
    return f"{one_line(error, 200)} (node {node[1]} may be too old for it)"
