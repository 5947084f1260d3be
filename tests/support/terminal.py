"""Run a command in a pty, and read what a person would see."""

import os
import pty
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping, Sequence
from fcntl import ioctl
from pathlib import Path

import pyte


def run_on_terminal(
    command: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    rows: int,
    columns: int = 80,
    *,
    typed: bytes = b"",
) -> str:
    """Everything a command wrote to its terminal, escape sequences included."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        command, cwd=cwd, env=environ, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, typed)
    written = b"".join(_chunks(ours))
    os.close(ours)
    process.wait()
    return written.decode()


def _chunks(handle: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(handle, 65536)
        except OSError:  # on Linux, the other end of the pty is closed
            return
        if not chunk:
            return
        yield chunk


def seen(written: str, rows: int, columns: int = 80) -> list[str]:
    """The lines on the screen, and above them those that scrolled off."""
    screen = pyte.HistoryScreen(columns, rows, history=10_000)
    pyte.Stream(screen).feed(written)
    scrolled = [
        "".join(line[column].data for column in range(columns))
        for line in screen.history.top
    ]
    return [line.rstrip() for line in (*scrolled, *screen.display)]
