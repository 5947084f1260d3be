"""Docker and podman as programs: what they are called for, and what they pull."""

import functools
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from tempfile import TemporaryFile
from typing import Final

from ..._util.keys import without_keys
from ..._util.texts import harmless, plain
from .sandbox import SandboxError

PROGRAMS: Final = ("docker", "podman")
INSTALL: Final = "Install podman (apt, dnf or brew install podman) or docker"
_PULL_SECONDS: Final = 900.0
_SECONDS: Final = 120.0  # of all other commands
_END_SECONDS: Final = 15.0
_POLL: Final = 0.1
_LONGEST_LOG: Final = 2**20  # bytes
_at_a_time: Final = threading.Lock()
_at_work: Final = Counter[str]()
Ran = subprocess.CompletedProcess[bytes]
_stop: Final = ContextVar[threading.Event | None]("_stop", default=None)


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


@functools.cache
def why_no_program(name: str) -> str:
    """Why images can't be used with docker or podman; empty if they can."""
    if shutil.which(name) is None:
        return f"{name} was not found"
    ran = call(name, "version")
    return "" if ran.returncode == 0 else f"{name} does not work: {last_line(ran)}"


def is_present(program: str, image: str) -> bool:
    return call(program, "image", "inspect", image).returncode == 0


def pull(program: str, image: str) -> str:
    """Why an image can't be pulled; empty if it was."""
    how, output = run_long(program, "pull", "--quiet", image, seconds=_PULL_SECONDS)
    return (output.splitlines() or [how])[-1].rstrip(".") if how else ""


def run_long(program: str, *arguments: str, seconds: float) -> tuple[str, str]:
    """Pull or build, one at a time: how it failed, and the end of its output."""
    doing = f"{arguments[0]}ing an image"
    with _at_a_time, TemporaryFile() as log:
        _require_going_on()
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
            status = _wait(client, seconds)
        finally:
            _at_work[doing] -= 1
            _end(client)
        log.seek(max(0, log.tell() - _LONGEST_LOG))
        output = without_keys(harmless(log.read().decode(errors="replace"))).strip()
    if status is None:
        return f"no end within {plain(seconds)} s", output
    return f"exit {status}" if status else "", output


def _wait(client: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    """The exit status; None if it takes too long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        _require_going_on()
        with suppress(subprocess.TimeoutExpired):
            return client.wait(_POLL)
    return None


def _require_going_on() -> None:
    stop = _stop.get()
    if stop and stop.is_set():
        raise SandboxError("the run ended before the image was there")


def _end(client: "subprocess.Popen[bytes]") -> None:
    if client.poll() is None:
        client.terminate()
        with suppress(subprocess.TimeoutExpired):
            client.wait(_END_SECONDS)
        # The steps of podman's builds are its children.
        with suppress(ProcessLookupError):
            os.killpg(client.pid, signal.SIGKILL)
        client.wait()


def call(program: str, *arguments: str) -> Ran:
    """Run a command of docker or podman that takes no long time."""
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


def last_line(ran: Ran) -> str:
    lines = ran.stderr.decode(errors="replace").strip().splitlines() or [
        "no reason given"
    ]
    return without_keys(harmless(lines[-1].strip())).rstrip(".")
