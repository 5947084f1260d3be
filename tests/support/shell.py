"""Run commands as a user types them: in this process, or in one of their own."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest

from pytest_upskill.cli import main

COMMAND: Final = str(Path(sys.executable).with_name("pytest-upskill"))
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@contextmanager
def started(command: Sequence[str], **more: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a process that SIGINT reaches; leaving the block kills it.

    A shell makes what it runs in the background ignore SIGINT,
    and a child inherits that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, text=True, **more)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        try:
            yield process
        finally:
            process.kill()


@dataclass(frozen=True)
class Finished:
    """The result of a command."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Shell:
    """Runs ``pytest`` and ``pytest-upskill`` in this process,
    and any other command in its own.
    """

    pytester: pytest.Pytester
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def run(
        self, words: Sequence[str], cwd: Path, env: Mapping[str, str] = NOTHING
    ) -> Finished:
        with self.monkeypatch.context() as patch:
            patch.chdir(cwd)
            for name, value in env.items():
                patch.setenv(name, value)
            match words:
                case ["pytest", *args]:
                    status = self._pytest(args)
                case ["pytest-upskill", *args]:
                    patch.setattr(pytest, "main", self._pytest)
                    status = main(args)
                case _:
                    done = subprocess.run(
                        words, capture_output=True, text=True, check=False
                    )
                    return Finished(done.returncode, done.stdout, done.stderr)
        shown = self.capsys.readouterr()
        return Finished(status, shown.out, shown.err)

    def output(
        self,
        words: Sequence[str],
        cwd: Path,
        env: Mapping[str, str] = NOTHING,
        statuses: Sequence[int] = (0,),
    ) -> str:
        """Run a command that should succeed, and return its output."""
        done = self.run(words, cwd, env)
        assert done.status in statuses, done.out + done.err
        return done.out

    def _pytest(self, args: Sequence[str], plugins: Sequence[object] = ()) -> int:
        return int(self.pytester.runpytest_inprocess(*args, plugins=plugins).ret)
