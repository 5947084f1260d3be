"""Trials of agents on a Dask cluster of 1, 2 and 4 workers, compared with this process alone.

python benchmarks/cluster.py [TRIALS]   200 by default
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from agents import served
from material import MODEL, write_skill
from measure import Measured, measure, middle, pytest_command, side_by_side
from tables import show

TRIALS: Final = 200
TURNS: Final = 6  # of a trial; all but the last run a command
LATENCY: Final = 0.5
WORKERS: Final = (1, 2, 4)
PLACES: Final = 2  # of a worker
ROUNDS: Final = 1  # each takes minutes


def command(options: list[str]) -> list[str]:
    """pytest in this environment, which has Dask."""
    return [sys.executable, *pytest_command(*options)[1:]]


def cluster(folder: Path, trials: int = TRIALS) -> None:
    """The same trials here and on workers; each has the same places, so more of them are faster."""
    skill = write_skill(folder / "lamp", trials // 2)
    commands = dict[str, Callable[[], Measured]]()
    with served(LATENCY, TURNS - 1) as url:
        options = ["--skill", str(skill), "--model", MODEL, "--skill-base-url", url]
        options += ["--skill-agent", "loop", "--skill-fresh", "--skill-no-history"]
        for workers in WORKERS:
            places = str(workers * PLACES)
            own = [*options, "--skill-agents-at-once", places]
            commands[f"here, {places} at once"] = partial(measure, command(own), folder)
            own += ["--skill-cluster", f"local:{workers}"]
            commands[f"local:{workers}"] = partial(measure, command(own), folder)
        runs = side_by_side(commands, ROUNDS)
    walls = {name: middle(measured).wall for name, measured in runs.items()}
    rows = list[list[str]]()
    for workers in WORKERS:
        here, there = walls[f"here, {workers * PLACES} at once"], walls[f"local:{workers}"]
        ideal = trials * TURNS * LATENCY / (workers * PLACES)
        rows.append(
            [
                str(workers),
                f"{ideal:.1f}",
                f"{there:.1f}",
                f"{there / ideal:.2f}",
                f"{there / here:.2f}",
                f"{walls['local:1'] / there:.2f}",
            ]
        )
    head = ["workers", "ideal s", "wall s", "wall/ideal", "wall/here", "times as fast"]
    title = f"{trials} trials of {TURNS} turns of {LATENCY} s, {PLACES} at once on each worker"
    show(f"{title}, start-up included", rows, head)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        cluster(Path(scratch), *map(int, sys.argv[1:]))
