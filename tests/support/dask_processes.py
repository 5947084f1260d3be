"""A Dask cluster of real processes, each with an environment of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

_SCHEDULER = """
import asyncio, sys
from distributed import Scheduler
async def main():
    async with Scheduler(
        host="127.0.0.1", port=0, dashboard=False, dashboard_address="127.0.0.1:0"
    ) as scheduler:
        print(scheduler.address, flush=True)
        await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""
_WORKER = """
import asyncio, sys
from distributed import Worker
async def main(address, name):
    async with Worker(address, name=name, nthreads=2, dashboard=False) as worker:
        print(worker.address, flush=True)
        reading = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        ended = asyncio.create_task(worker.finished())
        await asyncio.wait({reading, ended}, return_when="FIRST_COMPLETED")
asyncio.run(main(*sys.argv[1:]))
"""


class DaskProcesses:
    """A scheduler, and workers by name. All end when their standard input does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._all = list[subprocess.Popen[str]]()
        self.scheduler, self.address = self._started("scheduler", _SCHEDULER, {})
        self.workers = dict[str, subprocess.Popen[str]]()

    def add(self, name: str, env: Mapping[str, str] = {}) -> None:
        """Start a worker, in a folder of its own, with more in its environment."""
        self.workers[name], _ = self._started(name, _WORKER, env, self.address, name)

    def _started(
        self, name: str, script: str, env: Mapping[str, str], *args: str
    ) -> tuple[subprocess.Popen[str], str]:
        folder = self._folder / name
        (folder / "tmp").mkdir(parents=True)
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", script, *args],
                cwd=folder,
                env={**os.environ, "TMPDIR": str(folder / "tmp"), **env},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._all.append(process)
        assert process.stdout
        told = process.stdout.readline().strip()
        assert told, (folder / "log").read_text()
        return process, told

    def logs(self) -> str:
        """What all of them have written."""
        return "".join(file.read_text() for file in self._folder.glob("*/log"))

    def left(self) -> list[str]:
        """What workers have left in their folders for temporary files."""
        return [str(one) for one in self._folder.glob("*/tmp/pytest-upskill-*")]

    def close(self) -> None:
        for process in reversed(self._all):
            assert process.stdin
            process.stdin.close()
        for process in self._all:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout
            process.stdout.close()


@contextmanager
def dask_processes(folder: Path) -> Iterator[DaskProcesses]:
    pytest.importorskip("distributed") if not os.environ.get("CI") else None
    processes = DaskProcesses(folder)
    try:
        yield processes
    finally:
        processes.close()


def path_without(program: str, folder: Path) -> str:
    """A PATH with all programs but one, as links."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for file in Path(place).glob("*"):
            link = folder / file.name
            link.unlink(missing_ok=True)
            if file.name != program:
                link.symlink_to(file)
    return str(folder)
