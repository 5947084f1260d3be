"""Trials of agents on a Dask cluster of 1, 2 and 4 workers, and in this process alone.

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
TURNS: Final = 4  # of a trial; all but the last run a command
LATENCY: Final = 0.25
WORKERS: Final = (1, 2, 4)
PLACES: Final = 2  # of a worker
HERE: Final = 2  # workers that this process is compared with
ROUNDS: Final = 1  # of all; it takes about five minutes


def command(options: list[str]) -> list[str]:
    """pytest in this environment, which has Dask."""
    return [sys.executable, *pytest_command(*options)[1:]]


def cluster(folder: Path, trials: int = TRIALS) -> None:
    """The same trials here and on workers; each has the same places,
    so more of them are faster.
    """
    skill = write_skill(folder / "lamp", trials // 2)
    commands = dict[str, Callable[[], Measured]]()
    with served(LATENCY, TURNS - 1) as url:
        options = ["--skill", str(skill), "--model", MODEL, "--skill-base-url", url]
        options += [
            "--skill-agent",
            "loop",
            "--skill-fresh",
            "-o",
            "skill_history=false",
        ]

        def add(name: str, workers: int, *more: str) -> None:
            own = [*options, "-o", f"skill_agents_at_once={workers * PLACES}", *more]
            commands[name] = partial(measure, command(own), folder)

        add("this process", HERE)
        for workers in WORKERS:
            add(f"local:{workers}", workers, "--skill-cluster", f"local:{workers}")
        runs = side_by_side(commands, ROUNDS)
    walls = {name: middle(measured).wall for name, measured in runs.items()}
    rows = list[list[str]]()
    for name, workers in (
        ("this process", HERE),
        *((f"local:{n}", n) for n in WORKERS),
    ):
        ideal, wall = trials * TURNS * LATENCY / (workers * PLACES), walls[name]
        faster = "" if name == "this process" else f"{walls['local:1'] / wall:.2f}"
        numbers = [f"{ideal:.1f}", f"{wall:.1f}", f"{wall / ideal:.2f}", faster]
        rows.append([name, str(workers * PLACES), *numbers])
    head = ["", "at once", "ideal s", "wall s", "wall/ideal", "times as fast"]
    show(
        f"{trials} trials of {TURNS} turns of {LATENCY} s, start-up included",
        rows,
        head,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        cluster(Path(scratch), *map(int, sys.argv[1:]))
