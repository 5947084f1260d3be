"""Docker and podman: whether they work here, and a container per trial."""

import asyncio
import errno
import functools
import os
import posixpath
import secrets
import socket
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..run_folder import remove, run_folder
from . import container_program as programs
from .archives import entry_of, read_archive, write_archive
from .inside import CappedOutput, too_slow
from .sandbox import (
    PACKAGES,
    CommandLine,
    CommandResult,
    Env,
    FileToWrite,
    Mount,
    Sandbox,
    SandboxError,
    SandboxKind,
    SandboxSpec,
    TreeEntry,
    gone,
    is_in,
)

_START_SECONDS: Final = 60.0
_FILE_SECONDS: Final = 60.0  # to read or write one
_FILES_AT_ONCE: Final = 200  # by their names in a command
SOCKETS: Final = "/run/upskill"  # inside, to pass listening sockets out
_FIRST_LINE: Final = 'echo $$; exec "$@" 2>&1'
# Runtimes give a tmpfs the mode of the image's folder: /root is closed, then.
_LOOK: Final = """
command -v bash || echo; echo "$PATH"
for folder in "$@"; do [ -w "$folder" ] || echo "$folder"; done
"""
_END_SESSION: Final = """
for stat in /proc/[0-9]*/stat; do
    read -r line < "$stat" || continue
    pid=${line%% *}; set -- "$1" ${line##*) }
    [ "$5" = "$1" ] && kill -9 "$pid"
done
"""
# Their exit status is an errno.
_READ: Final = (
    f'[ -d "$1" ] && exit {errno.EISDIR}; [ -e "$1" ] || exit {errno.ENOENT}; '
    f'[ -f "$1" ] || exit {errno.EINVAL}; [ -r "$1" ] || exit {errno.EACCES}; '
    'exec head -c "$2" -- "$1"'
)
_WRITE: Final = (
    f'[ -d "$1" ] && exit {errno.EISDIR}; '
    f'mkdir -p -- "$(dirname -- "$1")" || exit {errno.ENOTDIR}; '
    f'[ ! -e "$1" ] || [ -f "$1" ] || exit {errno.EINVAL}; '
    f'( : >> "$1" ) || exit {errno.EACCES}; cat > "$1" || exit {errno.ENOSPC}; '
    '[ -z "$2" ] || exec chmod "$2" -- "$1"'
)
_LISTEN: Final = """
import socket, sys
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen(128)
host = socket.socket(socket.AF_UNIX)
host.connect(sys.argv[2])
socket.send_fds(host, [b"x"], [listener.fileno()])
"""
DEFAULT_IMAGE: Final = "python:3.13-slim"
# The first process: nothing inside can end it, it leaves no zombies,
# and it ends with the host.
_KEEPER: Final = "trap '' CHLD; echo started; exec cat > /dev/null"


class ContainerSandbox(Sandbox):
    """A running container. ``exec`` runs each command as the leader of a session."""

    def __init__(
        self,
        program: str,
        name: str,
        keeper: asyncio.subprocess.Process,
        *,
        sockets: Path,
        spec: SandboxSpec,
    ) -> None:
        self._program = program
        self._name = name
        self._keeper = keeper
        self._sockets = sockets
        self.spec = spec
        self._shell = "sh"
        self._env: dict[str, str] = {}
        self._own_env: dict[str, str] = {}  # of commands that are not the agent's
        self._closed = False

    async def start(self) -> None:
        """Wait for the start, look for bash, and open the folders."""
        assert self._keeper.stdout
        line = b""
        output = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(_START_SECONDS):
                while line := await self._keeper.stdout.readline():
                    if line == b"started\n":
                        break
                    output += line  # a warning, or an error
        if not line:
            raise SandboxError(_last_line(output) or "the container did not start")

        look = ["sh", "-c", _LOOK, "sh", *self.spec.disk]
        looked = await self._exec(look, _START_SECONDS, workdir="/")
        bash, path, *closed = looked.output.decode(errors="replace").splitlines()
        self._shell = "bash" if bash else "sh"
        self._env = self.spec.environment(path)
        # An agent may put programs into a folder of the image's PATH.
        self._own_env = {"PATH": f"/usr/bin:/bin:{path}"}
        for folder in closed:
            options = ("--user", "0:0", "--workdir", "/")
            ran = await self._call(
                "exec", *options, self._name, "chmod", "1777", folder
            )
            if ran.returncode:
                raise SandboxError(
                    f"the image has a {folder} that not everyone can write"
                )
        if PACKAGES in self._env.get("PYTHONPATH", ""):
            await self._check_version()

    async def _check_version(self) -> None:
        """Packages are for the Python that runs pytest."""
        command = ["python3", "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
        version = _last_line((await self._exec(command, _START_SECONDS)).output)
        expected = f"{sys.version_info.major}.{sys.version_info.minor}"
        if version != expected:
            raise SandboxError(
                f"the image has Python {version[:20] or 'no'}, but the packages that"
                f" the skill needs are installed for Python {expected}. Use an image"
                f" with Python {expected}."
            )

    async def run(
        self,
        command: CommandLine,
        *,
        timeout: float,
        env: Env | None = None,
        stdin: bytes = b"",
    ) -> CommandResult:
        words = [self._shell, "-c", command] if isinstance(command, str) else [*command]
        return await self._exec(
            words, timeout, env={**self._env, **(env or {})}, stdin=stdin
        )

    async def _exec(
        self,
        words: Sequence[str],
        timeout: float,
        *,
        env: Env | None = None,
        stdin: bytes = b"",
        workdir: str = "",
        most: int = 0,
    ) -> CommandResult:
        if self._closed:
            raise gone("it is closed")
        started = time.monotonic()
        capped = CappedOutput(most or self.spec.limits.output)
        try:
            client = await asyncio.create_subprocess_exec(
                *(self._program, "exec", "-i"),
                *("--workdir", workdir or self.spec.workdir),
                *_env_options(env or {}),
                *(self._name, "/bin/sh", "-c", _FIRST_LINE, "sh", *words),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # a NUL, or too long
            return CommandResult(126, f"{words[0]}: {error}\n".encode())

        assert client.stdout
        pid = b""
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                sending = asyncio.create_task(_send(client, stdin))
                pid = await client.stdout.readline()
                while data := await client.stdout.read(2**16):
                    capped.add(data)
                await sending
                code = await client.wait()
        except TimeoutError:
            timed_out = True
            code = -9
        finally:
            if client.returncode is None:
                await asyncio.shield(self._end(client, pid))
        if not pid.strip().isdigit():
            raise gone(pid.decode(errors="replace").strip()[:300] or "it ended")

        note = too_slow(timeout) if timed_out else ""
        if code == 137:
            note = "[Killed: perhaps the limit on memory was reached.]"
        if 128 < code < 160:
            code = 128 - code
        output, cut = capped.result(note)
        return CommandResult(code, output, cut, timed_out, time.monotonic() - started)

    async def _end(self, client: asyncio.subprocess.Process, pid: bytes) -> None:
        """End a command inside: it would outlive the client."""
        if pid.strip().isdigit() and not self._closed:
            session = pid.decode().strip()
            words = (*self._own_exec(), "sh", "-c", _END_SESSION, "sh", session)
            await self._call(*words)
        with suppress(ProcessLookupError):
            client.kill()
        await client.wait()

    def _own_exec(self) -> tuple[str, ...]:
        """Before a command that is not the agent's."""
        return "exec", *_env_options(self._own_env), self._name

    async def _call(self, *arguments: str) -> programs.Ran:
        return await asyncio.to_thread(programs.call, self._program, *arguments)

    async def read(self, path: str, most: int) -> bytes:
        return await self._run_script(_READ, path, str(most), most=most)

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        new_mode = "" if mode is None else f"{mode:o}"
        await self._run_script(_WRITE, path, new_mode, data=data)

    async def _run_script(
        self, script: str, path: str, argument: str, *, data: bytes = b"", most: int = 0
    ) -> bytes:
        full = posixpath.join(self.spec.workdir, path)
        if "\0" in full:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)

        words = ("sh", "-c", script, "sh", full, argument)
        seconds = _FILE_SECONDS + len(data) / 2**20
        ran = await self._exec(
            words, seconds, env=self._own_env, stdin=data, workdir="/", most=most
        )
        if ran.timed_out:
            raise SandboxError(f"The sandbox does not reply ({path}).")
        if 0 < ran.exit < 120:
            raise OSError(ran.exit, os.strerror(ran.exit), path)
        if ran.exit:
            raise gone("it ended")
        return ran.output[:most]

    async def tree(self, path: str = ".") -> list[TreeEntry]:
        if self._closed:
            raise gone("it is closed")
        folder = posixpath.normpath(posixpath.join(self.spec.workdir, path))
        return await asyncio.to_thread(self._list, folder)

    def _list(self, folder: str) -> list[TreeEntry]:
        others = [mount.inside for mount in self.spec.mounts]
        others += self.spec.disk.keys() - {folder}
        hidden = [path for path in others if is_in(path, {folder})]
        entries = []
        for archive, member in self._archive(folder, "."):
            entry = entry_of(archive, member)
            if entry and not is_in(posixpath.join(folder, entry.path), hidden):
                entries.append(entry)
        paths = [entry.path for entry in entries]
        paths += [posixpath.relpath(path, folder) for path in hidden]
        above = {posixpath.dirname(path) for path in paths}
        listed = [
            entry for entry in entries if not (entry.folder and entry.path in above)
        ]
        return sorted(listed, key=lambda entry: entry.path)

    def _archive(
        self, folder: str, *names: str
    ) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
        """Files of a folder, as many as the limits allow: every image has tar."""
        limits = self.spec.limits
        number = 0
        size = 0
        call = (self._program, *self._own_exec(), "tar", "-c", "-C", folder, *names)
        try:
            for archive, member in read_archive(call):
                number += 1
                size += member.size
                if number > limits.files or size > 4 * limits.disk:
                    return
                yield archive, member
        except (tarfile.TarError, OSError, ValueError):
            raise SandboxError(f"The sandbox did not list {folder}.") from None

    async def read_all(self, sizes: Mapping[str, int], most: int) -> dict[str, bytes]:
        return await asyncio.to_thread(self._read_all, sizes, most)

    def _read_all(self, sizes: Mapping[str, int], most: int) -> dict[str, bytes]:
        paths = {posixpath.join(self.spec.workdir, path): path for path in sizes}
        names = [f".{path}" for path in paths]
        contents: dict[str, bytes] = {}
        for at in range(0, len(names), _FILES_AT_ONCE):
            batch = names[at : at + _FILES_AT_ONCE]
            for archive, member in self._archive("/", *batch):
                path = paths.get(posixpath.normpath(f"/{member.name}"), "")
                # A file that has several names
                same = paths.get(posixpath.normpath(f"/{member.linkname}"), "")
                if not path:
                    continue
                size = min(sizes.get(path, 0), most + 1)
                if file := archive.extractfile(member) if member.isreg() else None:
                    contents[path] = file.read(size)
                elif member.islnk() and same in contents:
                    contents[path] = contents[same][:size]
                most -= len(contents.get(path, b""))
                if most < 0:
                    return contents
        return contents

    async def write_all(self, files: Sequence[FileToWrite]) -> None:
        archive = await asyncio.to_thread(write_archive, files, self.spec.workdir)
        seconds = _FILE_SECONDS + len(archive) / 2**20
        words = ["tar", "-x", "-C", "/"]
        ran = await self._exec(
            words, seconds, env=self._own_env, stdin=archive, workdir="/"
        )
        if ran.exit:
            reason = _last_line(ran.output) or ran.status
            raise SandboxError(
                f"The files of the task can't be written: {reason[:200]}."
            )

    async def listen(self, port: int) -> socket.socket:
        path = self._sockets / secrets.token_hex(8)
        with socket.socket(socket.AF_UNIX) as waiting:
            waiting.bind(str(path))
            path.chmod(0o666)
            waiting.listen(1)
            waiting.settimeout(_START_SECONDS)
            words = ["python3", "-c", _LISTEN, str(port), f"{SOCKETS}/{path.name}"]
            ran = await self._exec(words, _START_SECONDS)
            if ran.exit:
                raise SandboxError(
                    "The image has no Python that could open a port for the agent:"
                    f" {_last_line(ran.output)[:200]}."
                )
            listener = await asyncio.to_thread(_take_socket, waiting)
        listener.settimeout(0)
        address = ("", 0)
        if listener.family == socket.AF_INET:
            address = listener.getsockname()
        if address[0] != "127.0.0.1" or port not in (0, address[1]):
            listener.close()
            raise SandboxError("The sandbox passed a wrong socket out.")
        return listener

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._call("kill", self._name)
        with suppress(ProcessLookupError):
            self._keeper.kill()
        await self._keeper.communicate()
        await asyncio.to_thread(remove, self._sockets)


class Container(SandboxKind):
    """Docker or podman."""

    def __init__(self, program: str, image: str, *, may_fetch: bool = True) -> None:
        self.name = program
        self.image = image or DEFAULT_IMAGE
        self._may_fetch = may_fetch  # a missing image

    def why_not(self) -> str | None:
        return _why_not(self.name, self.image, self._may_fetch)

    async def open(self, spec: SandboxSpec) -> ContainerSandbox:
        name = f"upskill-{secrets.token_hex(8)}"
        sockets = run_folder() / name
        sockets.mkdir()
        sockets.chmod(0o755)
        try:
            keeper = await asyncio.create_subprocess_exec(
                *(self.name, "run", "--name", name, *self._options(spec, sockets)),
                *("--entrypoint", "sh", self.image, "-c", _KEEPER),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(f"{self.name} could not be started: {error}.") from None
        sandbox = ContainerSandbox(self.name, name, keeper, sockets=sockets, spec=spec)
        try:
            await sandbox.start()
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    def _options(self, spec: SandboxSpec, sockets: Path) -> list[str]:
        limits = spec.limits
        is_podman = self.name == "podman"
        # Never root; else the user who runs pytest, who can read the mounts.
        user = f"{os.getuid()}:{os.getgid()}" if os.getuid() else "1000:1000"
        options = ["-i", "--rm", "--read-only", "--cap-drop", "ALL", "--user", user]
        options += ["--security-opt", "no-new-privileges", "--hostname", "sandbox"]
        memory = str(limits.memory + limits.disk)  # the files are in memory, too
        options += ["--pids-limit", str(limits.processes), "--memory", memory]
        options += ["--memory-swap", memory, "--shm-size", str(spec.disk["/dev/shm"])]
        options += ["--ulimit", "core=0", "--ulimit", "nofile=4096:4096"]
        options += ["--ulimit", f"fsize={limits.file_size}:{limits.file_size}"]
        if limits.cpus:
            options += ["--cpus", f"{limits.cpus:g}"]
        if not spec.network:
            options += ["--network", "none"]
        if is_podman:
            options += _podman_options()
        for folder, size in spec.disk.items():
            if folder != "/dev/shm":
                mode = "rw,exec,nosuid,nodev,mode=1777"
                # Podman would copy the image's files.
                mode += ",notmpcopyup" if is_podman else ""
                options += ["--tmpfs", f"{folder}:{mode},size={size}"]
        for mount in (*spec.mounts, Mount(str(sockets), SOCKETS)):
            if set(mount.host + mount.inside) & set(',"\n'):
                raise SandboxError(
                    f"{mount.host} can't be mounted: there is a comma or quote in it."
                )
            bind = f"type=bind,source={mount.host},target={mount.inside},readonly"
            options += ["--mount", bind]
        return [*options, "--workdir", "/"]


def _podman_options() -> list[str]:
    import resource

    # Podman raises the limit on processes, which not every user may do.
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    most = 32_768 if hard == resource.RLIM_INFINITY else min(hard, 32_768)
    options = ["--ulimit", f"nproc={most}:{most}", "--read-only-tmpfs=false"]
    if os.getuid():
        options += ["--userns", "keep-id"]
    return options


@functools.cache
def _why_not(name: str, image: str, may_fetch: bool) -> str | None:
    if problem := programs.why_no_program(name):
        return problem if problem.endswith("?") else f"{problem}."
    if not programs.is_present(name, image):
        if not may_fetch:
            return f"the image {image} is not here. Fetch it: {name} pull {image}"
        if problem := programs.pull(name, image):
            return f"the image {image} can't be pulled: {problem}."
    problem = Container(name, image).failure()
    return f"{name} does not work here: {problem}." if problem else None


def _env_options(env: Env) -> list[str]:
    return [f"--env={name}={value}" for name, value in env.items()]


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _take_socket(waiting: socket.socket) -> socket.socket:
    """The socket that the first client passes; SandboxError if it passes none."""
    try:
        channel, _ = waiting.accept()
        with channel:
            channel.settimeout(_START_SECONDS)
            _, numbers, _, _ = socket.recv_fds(channel, 1, 1)
    except OSError:
        numbers = []
    if not numbers:
        raise SandboxError("The sandbox passed no socket out.")
    return socket.socket(fileno=numbers[0])


async def _send(client: asyncio.subprocess.Process, data: bytes) -> None:
    assert client.stdin
    with suppress(OSError):
        client.stdin.write(data)
        await client.stdin.drain()
        client.stdin.close()
