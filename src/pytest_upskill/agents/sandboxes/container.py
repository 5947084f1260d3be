"""Docker and podman: whether they work here, and a container per trial."""

import asyncio
import errno
import functools
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..run_folder import remove, run_folder
from .container_files import archive_of, archived, entry_of, is_below
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
)

_START: Final = 60.0
_FILES: Final = 60.0  # seconds to read or write one
_FEW_FILES: Final = 4  # for a command each
SOCKETS: Final = "/run/upskill"  # inside, to pass listening sockets out
_FIRST_LINE: Final = 'echo $$; exec "$@" 2>&1'
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
_PULL: Final = 900.0  # seconds to fetch an image
# The first process: nothing inside can end it, it leaves no zombies,
# and it ends with the host.
_KEEPER: Final = "trap '' CHLD; echo; exec cat > /dev/null"


def _env_options(env: Env) -> list[str]:
    return [f"--env={name}={value}" for name, value in env.items()]


class ContainerSandbox(Sandbox):
    """A running container. ``exec`` runs each command as the leader of a session."""

    def __init__(
        self,
        program: str,
        name: str,
        keeper: asyncio.subprocess.Process,
        sockets: Path,
        spec: SandboxSpec,
    ) -> None:
        self._program = program
        self._name = name
        self._keeper = keeper
        self._sockets = sockets
        self.spec = spec
        self._shell = "sh"
        self._env = dict[str, str]()
        self._own_env = dict[str, str]()  # of commands that are not the agent's
        self._closed = False

    async def start(self) -> None:
        """Wait for the start, and look for bash and Python."""
        assert self._keeper.stdout
        try:
            async with asyncio.timeout(_START):
                first_line = await self._keeper.stdout.readline()
        except TimeoutError:
            first_line = b""
        if not first_line:
            raise SandboxError(await self._why_ended())
        await self._open_folders()
        probe = await self._exec(
            ["sh", "-c", "echo $(command -v bash); echo $PATH"], _START
        )
        bash, path = (
            probe.output.decode(errors="replace").removesuffix("\n").split("\n")[-2:]
        )
        self._shell = "bash" if bash else "sh"
        self._env = self.spec.environment(path)
        # An agent may put programs into a folder of the image's PATH.
        self._own_env = {"PATH": f"/usr/bin:/bin:{path}"}
        if PACKAGES in self._env.get("PYTHONPATH", ""):
            await self._check_version()

    async def _open_folders(self) -> None:
        """Runtimes give a tmpfs the mode of the image's folder: /root is closed,
        then.
        """
        closed = 'for folder in "$@"; do [ -w "$folder" ] || echo "$folder"; done'
        check = ["sh", "-c", closed, "sh", *self.spec.disk]
        for folder in (
            (await self._exec(check, _START, workdir="/")).output.decode().splitlines()
        ):
            words = ("exec", "--user", "0:0", "--workdir", "/", self._name)
            client = await self._client(*words, "chmod", "1777", folder)
            await client.communicate()
            if client.returncode:
                raise SandboxError(
                    f"the image has a {folder} that not everyone can write"
                )

    async def _why_ended(self) -> str:
        assert self._keeper.stderr
        with suppress(ProcessLookupError):
            self._keeper.kill()
        message = (
            (await self._keeper.stderr.read(4000)).decode(errors="replace").strip()
        )
        return message.splitlines()[-1] if message else "the container did not start"

    async def _check_version(self) -> None:
        """Packages are for the Python that runs pytest."""
        command = ["python3", "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
        version = (
            (await self._exec(command, _START)).output.decode(errors="replace").strip()
        )
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
        return await self._exec(words, timeout, {**self._env, **(env or {})}, stdin)

    async def _exec(
        self,
        words: Sequence[str],
        timeout: float,
        env: Env | None = None,
        stdin: bytes = b"",
        workdir: str = "",
    ) -> CommandResult:
        started, capped, timed_out = (
            time.monotonic(),
            CappedOutput(self.spec.limits.output),
            False,
        )
        call = ["/bin/sh", "-c", _FIRST_LINE, "sh", *words]
        try:
            options = (
                "-i",
                "--workdir",
                workdir or self.spec.workdir,
                *_env_options(env or {}),
            )
            client = await self._client("exec", *options, self._name, *call)
        except (OSError, ValueError) as error:  # a NUL, or too long
            return CommandResult(126, f"{words[0]}: {error}\n".encode())
        assert client.stdout
        pid, code = b"", 0
        try:
            try:
                async with asyncio.timeout(timeout):
                    sending = asyncio.create_task(_send(client, stdin))
                    pid = await client.stdout.readline()
                    while data := await client.stdout.read(2**16):
                        capped.add(data)
                    await sending
                    code = await client.wait()
            except TimeoutError:
                timed_out, code = True, -9
        finally:
            if client.returncode is None:
                await asyncio.shield(self._end(client, pid))
        if not pid.strip().isdigit():
            raise gone(pid.decode(errors="replace").strip()[:300] or "it ended")
        note = too_slow(timeout) if timed_out else ""
        if code == 137:
            note = "[Killed: perhaps the limit on memory was reached.]"
        output, cut = capped.result(note)
        code = 128 - code if 128 < code < 160 else code
        return CommandResult(code, output, cut, timed_out, time.monotonic() - started)

    def _own_exec(self) -> tuple[str, ...]:
        """Before a command that is not the agent's."""
        return "exec", "-i", *_env_options(self._own_env), self._name

    async def _client(self, *arguments: str) -> asyncio.subprocess.Process:
        if self._closed:
            raise gone("it is closed")
        return await asyncio.create_subprocess_exec(
            *(self._program, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )

    async def _end(self, client: asyncio.subprocess.Process, pid: bytes) -> None:
        """End a command inside: it would outlive the client."""
        if pid.strip().isdigit() and not self._closed:
            words = ("sh", "-c", _END_SESSION, "sh", pid.decode().strip())
            ender = await self._client(*self._own_exec(), *words)
            await ender.communicate()
        with suppress(ProcessLookupError):
            client.kill()
        await client.wait()

    async def read(self, path: str, most: int) -> bytes:
        return await self._files(_READ, path, str(most), most=most)

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        await self._files(_WRITE, path, "" if mode is None else f"{mode:o}", data=data)

    async def _files(
        self, script: str, path: str, argument: str, *, data: bytes = b"", most: int = 0
    ) -> bytes:
        full = os.path.join(self.spec.workdir, path)  # noqa: PTH118
        if "\0" in full:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        words = ("sh", "-c", script, "sh", full, argument)
        client = await self._client(*self._own_exec(), *words)
        assert client.stdout
        try:
            async with asyncio.timeout(_FILES + len(data) / 2**20):
                sending = asyncio.create_task(_send(client, data))
                content = bytearray()
                while part := await client.stdout.read(2**16):
                    content += part[: max(most - len(content), 0)]
                await sending
                code = await client.wait()
        except TimeoutError:
            raise SandboxError(f"The sandbox does not reply ({path}).") from None
        finally:
            if client.returncode is None:
                client.kill()
                await client.wait()
        if code and code < 120:
            raise OSError(code, os.strerror(code), path)
        if code:
            raise gone("it ended")
        return bytes(content)

    async def tree(self, path: str = ".") -> list[TreeEntry]:
        if self._closed:
            raise gone("it is closed")
        full = os.path.normpath(os.path.join(self.spec.workdir, path))  # noqa: PTH118
        return await asyncio.to_thread(self._listed, full)

    def _listed(self, folder: str) -> list[TreeEntry]:
        others = [
            *(mount.inside for mount in self.spec.mounts),
            *self.spec.disk.keys() - {folder},
        ]
        hidden = [os.path.relpath(other, folder) for other in others]
        all_entries = (
            entry_of(archive, member) for archive, member in self._archived(folder)
        )
        entries = [
            entry
            for entry in all_entries
            if entry and not any(is_below(entry.path, name) for name in hidden)
        ]
        paths = (*(entry.path for entry in entries), *hidden)
        above = {os.path.dirname(path) for path in paths}  # noqa: PTH120
        listed = [
            entry for entry in entries if not (entry.folder and entry.path in above)
        ]
        return sorted(listed, key=lambda entry: entry.path)

    def _archived(
        self, folder: str
    ) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
        return archived((self._program, *self._own_exec()), folder, self.spec.limits)

    async def read_all(self, sizes: Mapping[str, int], most: int) -> dict[str, bytes]:
        if len(sizes) <= _FEW_FILES:
            return await super().read_all(sizes, most)
        contents = await asyncio.to_thread(self._read_all, sizes, most)
        missing = {path: size for path, size in sizes.items() if path not in contents}
        left = most - sum(map(len, contents.values()))
        return (
            contents if left < 0 else contents | await super().read_all(missing, left)
        )

    def _read_all(self, sizes: Mapping[str, int], most: int) -> dict[str, bytes]:
        """One command for all files; hard links are left out."""
        contents = dict[str, bytes]()
        folders = {self._folder_of(path) for path in sizes}
        for folder in folders:
            for archive, member in self._archived(folder):
                path = os.path.normpath(member.name)
                path = path if folder == self.spec.workdir else f"{folder}/{path}"
                if (
                    path in sizes
                    and member.isreg()
                    and (file := archive.extractfile(member))
                ):
                    contents[path] = file.read(min(sizes[path], most + 1))
                    most -= len(contents[path])
                    if most < 0:
                        return contents
        return contents

    def _folder_of(self, path: str) -> str:
        """The workdir or place that a file of the task is in."""
        if not path.startswith("/"):
            return self.spec.workdir
        return next(place for place in self.spec.kept[1:] if is_below(path, place))

    async def write_all(self, files: Sequence[FileToWrite]) -> None:
        if len(files) <= _FEW_FILES:
            return await super().write_all(files)
        archive = await asyncio.to_thread(archive_of, files, self.spec.workdir)
        seconds = _FILES + len(archive) / 2**20
        words = ["tar", "-x", "-C", "/"]
        ran = await self._exec(words, seconds, self._own_env, archive)
        if ran.exit:
            last = (
                ran.output.decode(errors="replace").strip().splitlines() or [ran.status]
            )[-1]
            raise SandboxError(f"The files of the task can't be written: {last[:200]}.")
        return None

    async def listen(self, port: int) -> socket.socket:
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_UNIX) as waiting:
            name = secrets.token_hex(8)
            waiting.bind(str(self._sockets / name))
            (self._sockets / name).chmod(0o666)
            waiting.listen(1)
            waiting.settimeout(0)
            accepting = asyncio.create_task(loop.sock_accept(waiting))
            words = ["python3", "-c", _LISTEN, str(port), f"{SOCKETS}/{name}"]
            try:
                ran = await self._exec(words, _START)
                async with asyncio.timeout(1.0 if ran.exit else _START):
                    channel, _ = await accepting
            except TimeoutError:
                last = (
                    ran.output.decode(errors="replace").strip().splitlines() or [""]
                )[-1]
                raise SandboxError(
                    "The image has no Python that could open a port for the agent:"
                    f" {last[:200]}."
                ) from None
            finally:
                accepting.cancel()
                (self._sockets / name).unlink()
        with channel:
            channel.settimeout(_START)
            _, numbers, _, _ = socket.recv_fds(channel, 1, 1)
        if not numbers:
            raise SandboxError("The sandbox passed no socket out.")
        listener = socket.socket(fileno=numbers[0])
        listener.settimeout(0)
        address = (
            listener.getsockname() if listener.family == socket.AF_INET else ("", 0)
        )
        if address[0] != "127.0.0.1" or port not in (0, address[1]):
            listener.close()
            raise SandboxError("The sandbox passed a wrong socket out.")
        return listener

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        ender = await asyncio.create_subprocess_exec(
            *(self._program, "kill", self._name),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        await ender.wait()
        with suppress(ProcessLookupError):
            self._keeper.kill()
        await self._keeper.communicate()
        await asyncio.to_thread(remove, self._sockets)


class Container(SandboxKind):
    def __init__(self, program: str, *, may_fetch: bool = True) -> None:
        self.name = program
        self._may_fetch = may_fetch  # a missing image

    def why_not(self, image: str = "") -> str | None:
        return _why_not(self.name, image or DEFAULT_IMAGE, self._may_fetch)

    async def open(self, spec: SandboxSpec) -> ContainerSandbox:
        program = shutil.which(self.name)
        if program is None:
            raise SandboxError(f"{self.name} was not found. Install {self.name}.")
        name = f"upskill-{secrets.token_hex(8)}"
        sockets = run_folder() / name
        sockets.mkdir()
        sockets.chmod(0o755)
        keeper = await asyncio.create_subprocess_exec(
            *(program, "run", "--name", name, *self._options(spec, sockets)),
            *("--entrypoint", "sh", spec.image or DEFAULT_IMAGE, "-c", _KEEPER),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        sandbox = ContainerSandbox(program, name, keeper, sockets, spec)
        try:
            await sandbox.start()
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    def _options(self, spec: SandboxSpec, sockets: Path) -> list[str]:
        if self.name != "podman":
            return _options(spec, sockets)
        options = _options(spec, sockets, ",notmpcopyup")
        import resource

        # Podman raises the limit on processes, which not every user may do.
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        most = 32_768 if hard == resource.RLIM_INFINITY else min(hard, 32_768)
        options += ["--ulimit", f"nproc={most}:{most}", "--read-only-tmpfs=false"]
        return [*options, "--userns", "keep-id"] if os.getuid() else options


def _options(spec: SandboxSpec, sockets: Path, tmpfs: str = "") -> list[str]:
    limits = spec.limits
    options = ["-i", "--rm", "--read-only", "--cap-drop", "ALL", "--user", _user()]
    options += ["--security-opt", "no-new-privileges", "--hostname", "sandbox"]
    memory = str(limits.memory + limits.disk)  # the files are in memory, too
    options += ["--pids-limit", str(limits.processes), "--memory", memory]
    options += ["--memory-swap", memory, "--shm-size", str(spec.disk["/dev/shm"])]
    options += ["--cpus", f"{limits.cpus:g}"] if limits.cpus else []
    options += ["--ulimit", "core=0", "--ulimit", "nofile=4096:4096"]
    options += ["--ulimit", f"fsize={limits.file_size}:{limits.file_size}"]
    options += [] if spec.network else ["--network", "none"]
    for folder, size in spec.disk.items():
        if folder != "/dev/shm":
            options += [
                "--tmpfs",
                f"{folder}:rw,exec,nosuid,nodev,mode=1777,size={size}{tmpfs}",
            ]
    for mount in (*spec.mounts, Mount(str(sockets), SOCKETS)):
        if set(mount.host + mount.inside) & set(',"\n'):
            raise SandboxError(
                f"{mount.host} can't be mounted: there is a comma or quote in it."
            )
        options += [
            "--mount",
            f"type=bind,source={mount.host},target={mount.inside},readonly",
        ]
    return [*options, "--workdir", "/"]


def _user() -> str:
    """The user who runs pytest, who can read the mounts; never root."""
    return f"{os.getuid()}:{os.getgid()}" if os.getuid() else "1000:1000"


@functools.cache
def _why_not(name: str, image: str, may_fetch: bool) -> str | None:
    program = shutil.which(name)
    if program is None:
        return f"{name} was not found."
    for arguments, problem in (
        (("version",), f"{name} does not work: "),
        (("image", "inspect", image), ""),
        (("pull", image), f"the image {image} can't be pulled: "),
    ):
        try:
            ran = subprocess.run(
                [program, *arguments], capture_output=True, timeout=_PULL, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{name} does not work: {error}."
        if ran.returncode == 0 and arguments[0] != "version":
            break
        if arguments[0] == "image" and not may_fetch:
            return f"the image {image} is not here. Fetch it: {name} pull {image}"
        if ran.returncode and problem:
            lines = ran.stderr.decode(errors="replace").strip().splitlines() or [
                "no reason given"
            ]
            end = "" if lines[-1].endswith((".", "?")) else "."
            return f"{problem}{lines[-1]}{end}"
    problem = Container(name).failure(image)
    return f"{name} does not work here: {problem}." if problem else None


async def _send(client: asyncio.subprocess.Process, data: bytes) -> None:
    assert client.stdin
    with suppress(OSError):
        client.stdin.write(data)
        await client.stdin.drain()
        client.stdin.close()
