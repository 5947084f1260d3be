"""Docker and podman: whether they work here, and a container per trial."""

import asyncio
import functools
import os
import secrets
import shutil
import subprocess
from pathlib import Path
from typing import Final

from ..port import HOME, WORKSPACE, Mount, Room, SandboxError, SandboxKind
from ..run_folder import run_folder
from .container_sandbox import DOORS, ContainerSandbox
from .trying import why_it_fails

DEFAULT_IMAGE: Final = "python:3.13-slim"
_PULL: Final = 900.0  # seconds for an image to come
# The first process: nobody inside can end it, it leaves no dead children, and it goes when the
# host hangs up.
_KEEPER: Final = "trap '' CHLD; echo; exec cat > /dev/null"


class Container(SandboxKind):
    def __init__(self, program: str, *, may_fetch: bool = True) -> None:
        self.name = program
        self._may_fetch = may_fetch  # an image that is not here

    def why_not(self, image: str = "") -> str | None:
        return _why_not(self.name, image or DEFAULT_IMAGE, self._may_fetch)

    async def open(self, room: Room) -> ContainerSandbox:
        program = shutil.which(self.name)
        if program is None:
            raise SandboxError(f"{self.name} was not found. Install {self.name}.")
        name = f"upskill-{secrets.token_hex(8)}"
        doors = run_folder() / name
        doors.mkdir()
        doors.chmod(0o755)
        keeper = await asyncio.create_subprocess_exec(
            *(program, "run", "--name", name, *self._options(room, doors)),
            *("--entrypoint", "sh", room.image or DEFAULT_IMAGE, "-c", _KEEPER),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        sandbox = ContainerSandbox(program, name, keeper, doors, room)
        try:
            await sandbox.start()
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    def _options(self, room: Room, doors: Path) -> list[str]:
        if self.name != "podman":
            return _options(room, doors)
        import resource

        # Without a daemon it raises the limit on processes, which not everyone may do.
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        most = 32_768 if hard == resource.RLIM_INFINITY else min(hard, 32_768)
        options = [*_options(room, doors), "--ulimit", f"nproc={most}:{most}"]
        return [*options, "--userns", "keep-id"] if os.getuid() else options


def _options(room: Room, doors: Path) -> list[str]:
    limits = room.limits
    options = ["-i", "--rm", "--read-only", "--cap-drop", "ALL", "--user", _user()]
    options += ["--security-opt", "no-new-privileges", "--hostname", "sandbox"]
    options += ["--pids-limit", str(limits.processes), "--memory", str(limits.memory)]
    options += ["--memory-swap", str(limits.memory), "--shm-size", str(limits.disk // 16)]
    options += ["--ulimit", "core=0", "--ulimit", "nofile=4096:4096"]
    options += ["--ulimit", f"fsize={limits.file_size}:{limits.file_size}"]
    options += [] if room.network else ["--network", "none"]
    for folder, share in ((WORKSPACE, 8), ("/tmp", 4), (HOME, 3)):
        size = limits.disk * share // 16
        options += ["--tmpfs", f"{folder}:rw,exec,nosuid,nodev,mode=1777,size={size}"]
    for mount in (*room.mounts, Mount(str(doors), DOORS)):
        if set(mount.host + mount.inside) & set(',"\n'):
            raise SandboxError(f"{mount.host} can't be mounted: there is a comma or quote in it.")
        options += ["--mount", f"type=bind,source={mount.host},target={mount.inside},readonly"]
    env = {"HOME": HOME, "LANG": "C.UTF-8", "TMPDIR": "/tmp", "TERM": "dumb", "TZ": "UTC"}
    for item in (env | dict(room.env)).items():
        options += ["--env", "=".join(item)]
    return [*options, "--workdir", WORKSPACE]


def _user() -> str:
    """Who runs pytest, so that mounts can be read; not root."""
    return f"{os.getuid()}:{os.getgid()}" if os.getuid() else "1000:1000"


@functools.cache
def _why_not(name: str, image: str, may_fetch: bool) -> str | None:
    program = shutil.which(name)
    if program is None:
        return f"{name} was not found."
    for arguments, problem in (
        (("version",), f"{name} does not work: "),
        (("image", "inspect", image), ""),
        (("pull", image), f"the image {image} can't be had: "),
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
            said = ran.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
            end = "" if said[-1].endswith((".", "?")) else "."
            return f"{problem}{said[-1]}{end}"
    problem = why_it_fails(Container(name), image)
    return f"{name} does not work here: {problem}." if problem else None
