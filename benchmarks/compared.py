"""The same calls by the standard library, a bare SDK, other tools, and
pytest-upskill.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from environments import earlier, own, peers
from material import MODEL, write_skill
from measure import HERE, Measured, measure, middle, pytest_command, side_by_side
from serve import server
from tables import Row, limited, show

ROUNDS: Final = 3
LONGEST: Final = 30.0  # seconds; a tool that takes longer for a row is run once


class Work(NamedTuple):
    """What all are compared by. The limit is of ours;
    ``of`` is what the numbers are of.
    """

    name: str
    cases: int
    latency: float
    in_flight: int
    limit: float
    of: Callable[[Measured, "Work"], float]
    rounds: int = ROUNDS

    @property
    def calls(self) -> int:
        return 2 * self.cases

    @property
    def ideal(self) -> float:
        """Seconds; the last round of calls may not be full."""
        return math.ceil(self.calls / self.in_flight) * self.latency


def _by_ideal(measured: Measured, work: Work) -> float:
    return measured.wall / work.ideal


def _cpu_per_call(measured: Measured, work: Work) -> float:
    return 1000 * measured.cpu / work.calls


def _seconds(measured: Measured, _: Work) -> float:
    return measured.wall


DEFAULT: Final = 64  # calls in flight
WORKS: Final = (
    Work("40 calls of 2 s, 64 in flight: wall/ideal", 20, 2.0, DEFAULT, 1.5, _by_ideal),
    Work(
        "400 calls of 2 s, 64 in flight: wall/ideal",
        200,
        2.0,
        DEFAULT,
        1.1,
        _by_ideal,
        1,
    ),
    Work("100 calls of 200 ms, 10 in flight: wall/ideal", 50, 0.2, 10, 1.6, _by_ideal),
    Work(
        "1000 calls of 200 ms, 50 in flight: wall/ideal", 500, 0.2, 50, 1.45, _by_ideal
    ),
    Work(
        "4000 calls of 0 ms, 50 in flight: CPU ms per call",
        2000,
        0.0,
        50,
        2.0,
        _cpu_per_call,
    ),
    Work("one case, both arms: seconds", 1, 0.0, 2, math.inf, _seconds, 5),
)
_MEMORY: Final = WORKS[2]  # whose peak is compared, too
_MANY: Final = WORKS[3]  # this and the next are compared with the bare script
_SMALL: Final = WORKS[5]


def compared(folder: Path) -> None:
    """The same calls by the standard library, a bare SDK, other tools,
    and pytest-upskill.
    """
    names = ["threads", "bare SDK", *peers(), *earlier(), "ours"]
    rows, limits = list[Row](), list[Row]()
    for number, work in enumerate(WORKS):
        skill = write_skill(folder / f"work-{number}" / "lamp", work.cases)
        with server(work.latency) as url:
            rest = [url, str(skill), str(work.in_flight)]
            options = ["--skill", str(skill), "--model", MODEL, "--skill-base-url", url]
            options += ["--skill-concurrency", str(work.in_flight), "--skill-fresh"]
            commands = {
                "threads": [own(), str(HERE / "threads.py"), *rest],
                "bare SDK": [own(), str(HERE / "bare.py"), *rest, "httpx"],
                **{
                    name: [python, str(HERE / "peers.py"), name, *rest]
                    for name, python in peers().items()
                },
                "ours": pytest_command(*options),
            }
            for commit, python in earlier().items():
                commands[commit] = pytest_command(*options, python=python)
            runs = side_by_side(
                {
                    name: partial(measure, words, skill.parent)
                    for name, words in commands.items()
                },
                work.rounds,
                LONGEST,
            )
        medians = {name: middle(measured) for name, measured in runs.items()}
        shown = {name: work.of(one, work) for name, one in medians.items()}
        rows.append([work.name, *(f"{shown[name]:.2f}" for name in names)])
        if work.limit < math.inf:
            limits.append([work.name, *limited(shown["ours"], work.limit)])
        by_bare = shown["ours"] / shown["bare SDK"]
        if work is _SMALL:
            limits.append(
                ["one case, both arms, by the bare SDK", *limited(by_bare, 1.15)]
            )
        if work is _MANY:
            limits.append(["1000 calls, by the bare SDK", *limited(by_bare, 1.0)])
        if work is _MEMORY:
            peaks = [f"{medians[name].peak:.0f}" for name in names]
            rows.append(["their peak memory: MB", *peaks])
            limits.append(
                ["peak memory of 100 calls", *limited(medians["ours"].peak, 80, " MB")]
            )
    show("The same calls, by several tools", rows, ["", *names])
    show("Limits of ours", limits)
