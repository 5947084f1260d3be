"""No sandbox: commands run as the user who runs pytest, with all their rights."""

import asyncio
import errno
import os
import secrets
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..._util.files import open_file
from ..run_folder import remove, run_folder
from .inside import CappedOutput, too_slow, tree_rows
from .sandbox import (
    HOME,
    PACKAGES,
    CommandLine,
    CommandResult,
    Env,
    Sandbox,
    SandboxKind,
    SandboxSpec,
    TreeEntry,
    gone,
    is_in,
)
from .served import tree_entry

_PIPE_SECONDS: Final = 0.2  # for the rest of the output after the end of a command


class Unconfined(SandboxKind):
    name = "none"

    def why_not(self) -> str | None:
        if sys.platform == "win32":
            return "Agents need a POSIX system. Run pytest in WSL."
        return None

    async def open(self, spec: SandboxSpec) -> "UnconfinedSandbox":
        return UnconfinedSandbox(run_folder() / f"none-{secrets.token_hex(8)}", spec)


class UnconfinedSandbox(Sandbox):
    """Folders for a trial, but nothing that keeps commands there."""

    def __init__(self, folder: Path, spec: SandboxSpec) -> None:
        self.python = sys.executable
        self._folder = folder
        self.spec = spec
        self._places = {
            inside: folder / inside[1:] for inside in spec.disk.keys() - {"/dev/shm"}
        }
        for place in self._places.values():
            place.mkdir(parents=True, exist_ok=True)
        for mount in spec.mounts:
            is_below = mount.inside.startswith(
                tuple(f"{inside}/" for inside in spec.disk)
            )
            # A virtual environment in /tmp is where it should be:
            # no copy of a gigabyte.
            if is_below and mount.inside != mount.host:
                _copy(Path(mount.host), Path(self.path(mount.inside)))
            else:
                self._places[mount.inside] = Path(mount.host)
        # Only what a command needs: the environment of the host has keys.
        self._env = dict[str, str]()
        for name, value in spec.environment(os.environ.get("PATH", os.defpath)).items():
            # Folders of the host stay as they are, even below /tmp or the workdir.
            ours = {HOME, "/tmp", *spec.env.get(name, "").split(":")}
            self._env[name] = ":".join(
                (
                    self.path(word)
                    if word.startswith(PACKAGES)
                    or (word.startswith("/") and word in ours)
                    else word
                )
                for word in value.split(":")
            )
        self._running = list[asyncio.subprocess.Process]()
        self._pipes = list[asyncio.ReadTransport]()
        self._closed = False

    def path(self, path: str) -> str:
        path = os.path.normpath(os.path.join(self.spec.workdir, path))  # noqa: PTH118
        if any(Path(path).is_relative_to(place) for place in self._places.values()):
            return path  # a real path: these folders may be below the host's /tmp
        for inside in sorted(self._places, key=len, reverse=True):
            if path == inside or path.startswith(f"{inside}/"):
                return str(self._places[inside]) + path[len(inside) :]
        return path

    async def run(
        self,
        command: CommandLine,
        *,
        timeout: float,
        env: Env | None = None,
        stdin: bytes = b"",
    ) -> CommandResult:
        self._check()
        words = ["bash", "-c", command] if isinstance(command, str) else [*command]
        started = time.monotonic()
        try:
            process, output = await self._started(words, env or {})
        except FileNotFoundError:
            if not isinstance(command, str):
                return CommandResult(127, f"{words[0]}: command not found\n".encode())
            process, output = await self._started(["sh", "-c", command], env or {})
        except (OSError, ValueError) as error:
            return CommandResult(126, f"{words[0]}: {error}\n".encode())
        timed_out = False
        try:
            if process.stdin:
                with suppress(OSError):
                    process.stdin.write(stdin)
                    process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), timeout)
            except TimeoutError:
                timed_out = True
                _end(process.pid)
                await process.wait()
            # A process in the background may hold the pipe
            with suppress(TimeoutError):
                await asyncio.wait_for(output.ended.wait(), _PIPE_SECONDS)
        except BaseException:
            _end(process.pid)
            raise
        text, cut = output.kept.result(too_slow(timeout) if timed_out else "")
        code = process.returncode or 0
        return CommandResult(code, text, cut, timed_out, time.monotonic() - started)

    async def _started(
        self, words: list[str], env: Mapping[str, str]
    ) -> "tuple[asyncio.subprocess.Process, _Output]":
        ours, theirs = os.pipe()
        output = _Output(self.spec.limits.output)
        pipe = os.fdopen(ours, "rb", buffering=0)
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=theirs,
                stderr=theirs,
                env={**self._env, **env},
                cwd=self.path("."),
                start_new_session=True,
            )
        except BaseException:
            pipe.close()
            raise
        finally:
            os.close(theirs)
        self._running.append(process)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: output, pipe
        )
        self._pipes.append(transport)
        return process, output

    async def read(self, path: str, most: int) -> bytes:
        self._check()
        with open_file(Path(_valid(self.path(path)))) as file:
            return file.read(most) or b""

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        self._check()
        file = Path(_valid(self.path(path)))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        if mode is not None:
            file.chmod(mode)

    async def tree(self, path: str = ".") -> list[TreeEntry]:
        self._check()
        return await asyncio.to_thread(self._list, self.path(path))

    def _list(self, top: str) -> list[TreeEntry]:
        others = [*(mount.inside for mount in self.spec.mounts), *self.spec.disk]
        inside = {path for path in map(self.path, others) if is_in(path, {top})}
        hidden = inside - {top}
        device = os.stat(top).st_dev  # noqa: PTH116
        entries = []
        limits = self.spec.limits
        for row in tree_rows(top, device, limits.files, limits.disk):
            if row and not is_in(os.path.join(top, os.fsdecode(row[0])), hidden):  # noqa: PTH118
                entries.append(tree_entry(*row))
        return sorted(entries, key=lambda entry: entry.path)

    async def listen(self, port: int) -> socket.socket:
        self._check()
        listener = socket.socket()
        listener.settimeout(0)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(128)
        except OSError:
            listener.close()
            raise
        return listener

    async def close(self) -> None:
        self._closed = True
        for process in self._running:
            _end(process.pid)
            await process.wait()  # asyncio closes its pipes only then
        for pipe in self._pipes:
            pipe.close()
        await asyncio.to_thread(remove, self._folder)

    def _check(self) -> None:
        if self._closed:
            raise gone("it is closed")


class _Output(asyncio.Protocol):
    """Reads output to its end, which may come after that of the command."""

    def __init__(self, most: int) -> None:
        self.kept = CappedOutput(most)
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.kept.add(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.ended.set()


def _copy(host: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if host.is_dir():
        shutil.copytree(host, target, symlinks=True)
    else:
        shutil.copy2(host, target)


def _end(pid: int) -> None:
    """End a command and its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _valid(path: str) -> str:
    if "\0" in path:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    return path
