"""Run a command and measure its wall time, CPU time with children, and peak memory."""

import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from environments import own
from peak import FOLDER

HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class Measured:
    """One run, or the medians of several; seconds and MB."""

    wall: float
    cpu: float
    peak: float
    worker_peak: float | None = None  # the largest worker's, under xdist


def pytest_command(*args: str | Path, python: str = "") -> list[str]:
    """pytest as users have it, or in another environment."""
    words = ["-m", "pytest", "-q", "-p", "peak", *map(str, args)]
    return [python or own(), *words]


def measure(command: Sequence[str], folder: Path) -> Measured:
    """Run a command in a folder; it must succeed, or its time means nothing."""
    with tempfile.TemporaryDirectory() as peaks:
        environment = {**os.environ, "PYTHONPATH": str(HERE), FOLDER: peaks}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        before, started = _cpu_of_children(), time.monotonic()
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        wall, cpu = time.monotonic() - started, _cpu_of_children() - before
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        noted = {
            file.name: int(file.read_text()) / 1024 for file in Path(peaks).iterdir()
        }
    main = noted.pop("main", 0.0)
    return Measured(wall, cpu, main, max(noted.values(), default=None))


def _cpu_of_children() -> float:
    """CPU seconds of children that have exited; a running server does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def side_by_side(
    commands: Mapping[str, Callable[[], Measured]],
    rounds: int,
    longest: float = math.inf,
) -> dict[str, list[Measured]]:
    """Run each command once per round, so that load affects all of them.

    One that took more than ``longest`` seconds is not run again.
    """
    runs: dict[str, list[Measured]] = {name: [] for name in commands}
    for number in range(rounds):
        for name, run in commands.items():
            if any(one.wall > longest for one in runs[name]):
                continue
            runs[name].append(run())
            print(
                f"  round {number + 1}: {name}: {runs[name][-1].wall:.2f} s",
                file=sys.stderr,
            )
    return runs


def middle(runs: Sequence[Measured]) -> Measured:
    workers = [run.worker_peak for run in runs if run.worker_peak is not None]
    return Measured(
        median(run.wall for run in runs),
        median(run.cpu for run in runs),
        median(run.peak for run in runs),
        median(workers) if workers else None,
    )


def difference(runs: Sequence[Measured], others: Sequence[Measured]) -> float:
    """How much longer: the median over rounds, since runs of a round share the load."""
    return median(
        run.wall - other.wall for run, other in zip(runs, others, strict=True)
    )
