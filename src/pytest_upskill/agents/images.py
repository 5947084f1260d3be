"""Images of containers: pulled or built once, and the files that tasks find in them."""

import functools
import os
import platform
import posixpath
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile, mkdtemp
from typing import IO, Final

from .._util.files import read_file, reason_of, user_cache
from .._util.keys import without_keys
from .._util.texts import digest, harmless, one_line, plain
from ..errors import shown
from ..skills.case import BuildContext, WorkspaceFile
from .run_folder import remove, run_folder
from .sandboxes.sandbox import SandboxError
from .snapshot import MOST_START_BYTES, MOST_START_FILES, Link, Snapshot, is_safe

# Root may read and write every file of an image, so the agent may, too
OWNER: Final = 0o600
PROGRAMS: Final = ("docker", "podman")
INSTALL: Final = "Install podman (apt, dnf or brew install podman) or docker"
# The name of images that are built, without their tag
BUILT: Final = "localhost/upskill-task"
_PULL_SECONDS: Final = 900.0
_SECONDS: Final = 120.0  # of all other commands
_END_SECONDS: Final = 15.0
_POLL: Final = 0.1
_LAST_LINES: Final = 4  # of a build that failed
_LONGEST_LINE: Final = 160
# Agents are not root: they could not use tools in its home.
# And a Python opens their port.
_LAST_STEP: Final = r"""
USER 0
RUN chmod a+rx /root 2>/dev/null; command -v python3 > /dev/null || \
    { apt-get update && apt-get install -y --no-install-recommends python3 || \
    apk add --no-cache python3 || dnf install -y python3; } > /dev/null 2>&1 || true
"""
_CACHES: Final = ((".cache", "pip"), (".cache", "uv"), (".npm", "_cacache"))
_building: Final = threading.Lock()  # one at a time
_at_work: Final = Counter[str]()
_stop: Final = ContextVar[threading.Event | None]("_stop", default=None)


class BuildStoppedError(SandboxError):
    """The run ended before an image was built."""


@contextmanager
def ended_by(stop: threading.Event) -> Iterator[None]:
    """End what this thread pulls or builds once an event is set."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


def at_work() -> list[str]:
    """What agents wait for, in words."""
    return [doing for doing, number in _at_work.items() if number]


def tag_of(build: BuildContext) -> str:
    """The image that is built from a Dockerfile and the files beside it."""
    return f"{BUILT}:{digest(build.digest, _LAST_STEP)[:32]}"


@functools.cache
def why_no_program(name: str) -> str:
    """Why images can't be used with docker or podman; empty if they can."""
    if shutil.which(name) is None:
        return f"{name} was not found"
    ran = _ran(name, "version")
    return "" if ran.returncode == 0 else f"{name} does not work: {_last_line(ran)}"


def is_present(program: str, image: str) -> bool:
    return _ran(program, "image", "inspect", image).returncode == 0


def prepare(program: str, image: str, build: BuildContext | None) -> str:
    """Pull or build an image unless it is there; its name.
    SandboxError says why it can't.

    An image that can't be pulled is built if there is a Dockerfile. Processes that want
    the same image wait for each other.
    """
    built = tag_of(build) if build else ""
    with _locked(built or image):
        for name in filter(None, (image, built)):
            if is_present(program, name):
                break
        else:
            problem = _pull(program, image) if image else ""
            if (problem or not image) and not build:
                raise SandboxError(
                    f"the image {image} can't be pulled with {program}: {problem}."
                )
            if build and (problem or not image):
                _build(program, build)
                name = built
        if problem := why_other_machine(program, name):
            raise SandboxError(f"{problem}.")
        return name if name == built else _usable(program, name)


@functools.cache
def images_here(program: str) -> frozenset[str]:
    """The names of all images when this process first looked,
    with and without docker.io.
    """
    ran = _ran(program, "images", "--format", "{{.Repository}}:{{.Tag}}")
    names = ran.stdout.decode(errors="replace").split()
    short = (name.removeprefix("docker.io/").removeprefix("library/") for name in names)
    return frozenset({*names, *short})


def why_other_machine(program: str, image: str) -> str:
    """That an image is for another architecture; empty if it is not, or is not here."""
    ran = _ran(program, "image", "inspect", "--format", "{{.Architecture}}", image)
    of_image = ran.stdout.decode(errors="replace").strip()
    if ran.returncode or not of_image or of_image == architecture():
        return ""
    return f"the image {image} is for {of_image}, and this machine is {architecture()}"


def architecture() -> str:
    """Of this machine, as images name it."""
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def files_of_image(program: str, image: str, folders: Sequence[str]) -> Snapshot:
    """The files in folders of an image; those of the first one have relative paths.

    Nothing of the image is run. SandboxError if they are too many.
    """
    created = _ran(program, "create", "--network", "none", image, "true")
    if created.returncode:
        raise SandboxError(
            f"{program} can't use the image {image}: {_last_line(created)}"
        )
    container = created.stdout.decode().split()[-1]
    files, links, folders_inside = list[WorkspaceFile](), list[Link](), list[str]()
    left = MOST_START_BYTES
    try:
        for folder in folders:
            for member, read in _members(program, container, folder):
                path = f"{folder}/{member.name}"
                is_odd = not is_safe(member.name) or member.name.startswith("/")
                if is_odd or _is_cache(member.name):
                    continue
                shown = member.name if folder == folders[0] else path
                left -= member.size if member.isreg() else 0
                if (
                    left < 0
                    or len(files) + len(links) + len(folders_inside) >= MOST_START_FILES
                ):
                    raise SandboxError(
                        f"the image has too many files in {folder}: the limits are "
                        f"{MOST_START_BYTES:,} bytes and {MOST_START_FILES:,} files in "
                        f"{', '.join(folders)} together."
                    )
                if member.isdir():
                    folders_inside.append(shown)
                elif member.issym():
                    links.append(Link(shown, member.linkname))
                elif member.isreg() or member.islnk():
                    files.append(
                        WorkspaceFile(shown, read(), member.mode & 0o777 | OWNER)
                    )
    finally:
        _ran(program, "rm", "--force", container)
    paths = [
        *(file.path for file in files),
        *(link.path for link in links),
        *folders_inside,
    ]
    above = {posixpath.dirname(path) for path in paths}
    empty = [path for path in folders_inside if path not in above]
    return Snapshot(tuple(files), tuple(links), tuple(empty))


def _members(
    program: str, container: str, folder: str
) -> Iterator[tuple[tarfile.TarInfo, Callable[[], bytes]]]:
    """What is in a folder of a container that does not run, by relative paths."""
    call = (program, "cp", f"{container}:{folder}", "-")
    with subprocess.Popen(
        call,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as client:
        timer = threading.Timer(_PULL_SECONDS, client.kill)
        timer.start()
        try:
            with tarfile.open(fileobj=client.stdout, mode="r|") as archive:
                contents = dict[str, bytes]()  # of files with several names
                for member in archive:
                    member.name = member.name.removeprefix("./").partition("/")[2]
                    if not member.name:
                        continue

                    def read(member: tarfile.TarInfo = member) -> bytes:
                        if member.islnk():
                            return contents.get(member.linkname.partition("/")[2], b"")
                        file = archive.extractfile(member)
                        contents[member.name] = data = file.read() if file else b""
                        return data

                    yield member, read
        except tarfile.ReadError:  # no such folder
            return
        finally:
            timer.cancel()
            client.kill()


def _is_cache(path: str) -> bool:
    """Whether it was left by an installation."""
    return PurePosixPath(path).parts[:2] in _CACHES


def _pull(program: str, image: str) -> str:
    """Why an image can't be pulled; empty if it was."""
    with TemporaryFile() as log:
        ended = _run(("pull", "--quiet", image), program, log, _PULL_SECONDS)
        log.seek(0)
        lines = log.read().decode(errors="replace").strip().splitlines() or [
            "no reason given"
        ]
    if ended is None:
        return f"no end within {plain(_PULL_SECONDS)} s"
    return without_keys(harmless(lines[-1].strip())).rstrip(".") if ended else ""


def _usable(program: str, image: str) -> str:
    """An image that was pulled, made usable for agents."""
    ran = _ran(program, "image", "inspect", "--format", "{{.Id}}", image)
    number = ran.stdout.decode(errors="replace").strip().removeprefix("sha256:")
    folder = Path(mkdtemp(dir=run_folder()))
    try:
        (folder / "Dockerfile").write_text(f"FROM {image}\n")
        build = BuildContext(number or image, "Dockerfile", str(folder))
        if not is_present(program, tag_of(build)):
            _build(program, build)
    finally:
        remove(folder)
    return tag_of(build)


def _build(program: str, build: BuildContext) -> None:
    file = shown(Path(build.folder, build.dockerfile))
    output = _cache() / f"{build.digest[:32]}.log"
    context = Path(mkdtemp(dir=run_folder()))
    try:
        _copy_context(build, context)
        file_option = ("--file", str(context / build.dockerfile))
        arguments = ("build", "--tag", tag_of(build), *file_option, str(context))
        with _turn(), output.open("wb") as log:
            ended = _run(arguments, program, log, build.seconds)
        lines = read_file(output)[-20_000:].decode(errors="replace").splitlines()
    except OSError as error:
        raise SandboxError(f"{file} can't be built: {reason_of(error)}.") from None
    finally:
        remove(context)
    if ended == 0:
        output.unlink(missing_ok=True)
        return
    last = [one_line(line, _LONGEST_LINE) for line in lines if line.strip()]
    tail = without_keys(" | ".join(last[-_LAST_LINES:]))
    how = (
        f"no end within {plain(build.seconds)} s" if ended is None else f"exit {ended}"
    )
    raise SandboxError(f"{file}: {program} build failed ({how}; see {output}): {tail}")


def _copy_context(build: BuildContext, target: Path) -> None:
    """Without the skills of the task, which are for one arm alone."""
    skills = Path(build.folder, build.without) if build.without else None

    def ignored(folder: str, names: list[str]) -> list[str]:
        return names if skills and Path(folder) == skills else []

    shutil.copytree(
        build.folder, target, symlinks=True, ignore=ignored, dirs_exist_ok=True
    )
    dockerfile = target / build.dockerfile
    text = read_file(Path(build.folder, build.dockerfile))
    dockerfile.unlink()  # it may be a link, and what that leads to must not change
    dockerfile.write_bytes(text + _LAST_STEP.encode())


@contextmanager
def _turn() -> Iterator[None]:
    """Wait until no other build of this process runs."""
    while not _building.acquire(timeout=_POLL):
        _require_going_on()
    try:
        yield
    finally:
        _building.release()


def _require_going_on() -> None:
    stop = _stop.get()
    if stop and stop.is_set():
        raise BuildStoppedError("the run ended before the image was there")


def _run(
    arguments: Sequence[str], program: str, log: IO[bytes], seconds: float
) -> int | None:
    """The exit status of a build or a pull; None if it took too long and was ended."""
    deadline = time.monotonic() + seconds
    doing = f"{arguments[0]}ing an image"
    client = subprocess.Popen(
        (program, *arguments),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, "BUILDKIT_PROGRESS": "plain"},
    )
    _at_work[doing] += 1
    try:
        while time.monotonic() < deadline:
            _require_going_on()
            with suppress(subprocess.TimeoutExpired):
                return client.wait(_POLL)
        return None
    finally:
        _at_work[doing] -= 1
        _end(client)


def _end(client: "subprocess.Popen[bytes]") -> None:
    """End a build: podman cleans up if its steps end, but they don't end with
    podman.
    """
    deadline = time.monotonic() + _END_SECONDS
    while client.poll() is None:
        if steps := [] if time.monotonic() > deadline else _below(client.pid):
            for pid in steps:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        elif time.monotonic() > deadline:
            client.kill()
        else:
            client.terminate()
        with suppress(subprocess.TimeoutExpired):
            client.wait(_POLL)


def _below(pid: int) -> list[int]:
    """The processes that a process started, and those that they did."""
    children = dict[int, list[int]]()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            parent = int(read_file(file).rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(file.parent.name))
    below, found = [pid], list[int]()
    while below:
        new = children.get(below.pop(), [])
        below += new
        found += new
    return found


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """One process at a time, also of other runs."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    folder = _cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(
            folder / f"{name.replace('/', '_')}.lock", os.O_CREAT | os.O_RDWR, 0o600
        )
    except OSError as error:
        raise SandboxError(f"{folder} can't be written: {reason_of(error)}.") from None
    try:
        while True:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                _require_going_on()
                time.sleep(_POLL)
        yield
    finally:
        os.close(opened)


def _cache() -> Path:
    return user_cache() / "images"


def _ran(program: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    command = (program, *arguments)
    try:
        return subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 127, b"", str(error).encode())


def _last_line(ran: "subprocess.CompletedProcess[bytes]") -> str:
    lines = ran.stderr.decode(errors="replace").strip().splitlines() or [
        "no reason given"
    ]
    return without_keys(harmless(lines[-1].strip())).rstrip(".")
