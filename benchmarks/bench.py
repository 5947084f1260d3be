"""Run all benchmarks, or the named ones; see README.md. The tables are Markdown.

python benchmarks/bench.py [NAME …] [--write]

The names: compared calls busy agents startup scale store cluster.

--write puts each table into RESULTS.md as soon as it is there.
A benchmark that fails ends none of the others.
"""

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from agents import served
from cluster import cluster
from compared import compared
from environments import versions
from material import (
    MODEL,
    write_empty_test,
    write_empty_tests,
    write_scripted,
    write_skill,
)
from measure import (
    HERE,
    Measured,
    difference,
    measure,
    middle,
    pytest_command,
    side_by_side,
)
from serve import ANSWER, Rules, busy, busy_server, server
from storing import store
from tables import RESULTS, Row, limited, note, show, written

CASES: Final = 500
CALLS: Final = CASES * 2
LATENCY: Final = 0.2
IN_FLIGHT: Final = 50
IDEAL: Final = CALLS * LATENCY / IN_FLIGHT
WORKERS: Final = (0, 2, 8)
ROUNDS: Final = 3
TRIALS: Final = 200
TURNS: Final = 6  # of a trial; all but the last run a command
AGENTS_AT_ONCE: Final = 8
AGENT_LATENCY: Final = 0.1
STARTUP_ROUNDS: Final = 15
SCALES: Final = (2_500, 10_000)
# Cases (with two arms), latency, and the rules of the server.
SITUATIONS: Final[dict[str, tuple[int, float, Rules]]] = {
    "8 at once": (500, 0.2, {"cap": 8}),
    "16 at once": (500, 0.2, {"cap": 16}),
    "32 at once": (500, 0.2, {"cap": 32}),
    "32 at once, no Retry-After": (500, 0.2, {"cap": 32, "retry_after": ""}),
    "50 a second, burst 50": (250, 0.2, {"requests": [50, 50]}),
    "50 a second, with headers": (250, 0.2, {"requests": [50, 50], "told": "openai"}),
    "50 a second, 250 calls": (125, 0.2, {"requests": [50, 50]}),
    "4 a second, burst 8": (40, 0.2, {"requests": [4, 8]}),
    "4 a second, no Retry-After": (40, 0.2, {"requests": [4, 8], "retry_after": ""}),
    "4 a second, with headers": (40, 0.2, {"requests": [4, 8], "told": "openai"}),
    "no limit, 2 s": (20, 2.0, {}),
}


def calls(folder: Path) -> None:
    """Slow calls: the plugin compared with a bare script on the same SDK."""
    skill = write_skill(folder / "lamp", CASES)
    empty = write_empty_test(folder / "empty")
    with server(LATENCY) as url:
        bare = [sys.executable, str(HERE / "bare.py"), url, str(skill), str(IN_FLIGHT)]
        options = ["--skill", str(skill), "--model", MODEL, "--skill-base-url", url]
        options += ["--skill-concurrency", str(IN_FLIGHT), "--skill-fresh"]
        commands: dict[str, Callable[[], Measured]] = {
            "bare script": partial(measure, [*bare, "httpx"], folder),
            "bare script, aiohttp": partial(measure, [*bare, "aiohttp"], folder),
        }
        for workers in WORKERS:
            plain = pytest_command("-n", str(workers), "-p", "no:upskill")
            commands[f"empty test -n {workers}"] = partial(measure, plain, empty)
            own = pytest_command("-n", str(workers), *options)
            commands[f"plugin -n {workers}"] = partial(measure, own, folder)
        runs = side_by_side(commands, ROUNDS)

    medians = {name: middle(measured) for name, measured in runs.items()}
    yardstick = medians["bare script"]
    rows = [
        [
            name,
            f"{one.wall:.2f}",
            *(
                ["", "", ""]
                if name.startswith("empty")
                else [
                    f"{one.wall / IDEAL:.2f}",
                    f"{one.wall / yardstick.wall:.2f}",
                    f"{1000 * one.cpu / CALLS:.2f}",
                ]
            ),
            f"{one.peak:.0f}",
            f"{one.worker_peak:.0f}" if one.worker_peak else "",
        ]
        for name, one in medians.items()
    ]
    head = [
        "",
        "wall s",
        "wall/ideal",
        "wall/bare",
        "CPU ms/call",
        "peak MB",
        "worker MB",
    ]
    show(
        f"{CALLS} calls of {LATENCY} s, {IN_FLIGHT} in flight: ideal {IDEAL:.1f} s",
        rows,
        head,
    )

    alone = medians["plugin -n 0"].wall
    limits = [
        ["wall/bare, -n 0", *limited(alone / yardstick.wall, 1.10)],
        ["wall/ideal, -n 0", *limited(alone / IDEAL, 1.5)],
    ]
    for workers in WORKERS[1:]:
        limits += worker_limits(workers, runs, alone)
    show("Limits", limits)


def worker_limits(
    workers: int, runs: Mapping[str, list[Measured]], alone: float
) -> Iterator[Row]:
    start = difference(runs[f"empty test -n {workers}"], runs["empty test -n 0"])
    one = middle(runs[f"plugin -n {workers}"])
    name = f"-n {workers} less workers' start-up ({start:.2f} s), by -n 0"
    yield [name, *limited((one.wall - start) / alone, 1.25)]
    yield [f"worker of -n {workers}", *limited(one.worker_peak or 0.0, 60, " MB")]


def busy_servers(folder: Path) -> None:
    """Servers that refuse calls: the time beyond start-up compared with the ideal."""

    def run(skill: Path, url: str) -> Measured:
        options = ["--skill", str(skill), "--model", MODEL, "--skill-base-url", url]
        more = ["--skill-concurrency", str(IN_FLIGHT), "--skill-fresh"]
        # Fails if an answer is lost
        return measure(pytest_command(*options, *more), folder)

    def run_bare(skill: Path, url: str, cap: int) -> Measured:
        """The script that knows how many calls the server takes."""
        words = [str(HERE / "bare.py"), url, str(skill), str(cap), "aiohttp"]
        return measure([sys.executable, *words], folder)

    rows, limits = [], []
    for name, (cases, latency, rules) in SITUATIONS.items():
        skill = write_skill(folder / name.replace(" ", "-") / "lamp", cases)
        one = write_skill(folder / name.replace(" ", "-") / "one", 1)
        with server(0.0) as url, busy_server(latency, rules) as served:
            took = run(skill, served.url).wall - run(one, url).wall
        script = ["", ""]
        if cap := rules.get("cap"):
            with server(0.0) as url, busy_server(latency, rules) as other:
                bare = (
                    run_bare(skill, other.url, cap).wall - run_bare(one, url, cap).wall
                )
            script = [f"{bare:.2f}", f"{took / bare:.2f}"]
        print(f"  {name}: {took:.2f} s", file=sys.stderr)
        ideal = busy(latency, rules).ideal(2 * cases, IN_FLIGHT)
        times = [f"{ideal:.2f}", f"{took:.2f}", *script]
        rows.append([name, str(2 * cases), *times, str(served.refused)])
        limits.append([name, *limited(took / ideal, 1.15)])
    head = ["", "calls", "ideal s", "s", "bare s", "s/bare", "refused"]
    show(
        f"Busy servers, {IN_FLIGHT} in flight, less the start-up of one case",
        rows,
        head,
    )
    show("Limits of seconds by ideal", limits)


def agents(folder: Path) -> None:
    """Agents in sandboxes compared with a bare loop on the same SDK, without one."""
    skill = write_skill(folder / "lamp", TRIALS // 2)
    commands = TRIALS * (TURNS - 1)
    with served(AGENT_LATENCY, TURNS - 1) as url:
        words = ["bare", url, str(TRIALS), str(AGENTS_AT_ONCE)]
        options = ["--skill", str(skill), "--model", MODEL, "--skill-base-url", url]
        options += [
            "--skill-agent",
            "loop",
            "-o",
            f"skill_agents_at_once={AGENTS_AT_ONCE}",
        ]
        runs = side_by_side(
            {
                "bare loop, no sandbox": partial(
                    measure, [sys.executable, str(HERE / "agents.py"), *words], folder
                ),
                "plugin": partial(
                    measure, pytest_command(*options, "--skill-fresh"), folder
                ),
            },
            ROUNDS,
        )
    one, other = (middle(measured) for measured in runs.values())
    more = difference(runs["plugin"], runs["bare loop, no sandbox"])
    rows = [
        [
            name,
            f"{m.wall:.2f}",
            f"{m.wall / one.wall:.2f}",
            f"{m.cpu:.1f}",
            f"{m.peak:.0f}",
        ]
        for name, m in zip(runs, (one, other), strict=True)
    ]
    ideal = TRIALS * TURNS * AGENT_LATENCY / AGENTS_AT_ONCE
    title = (
        f"{TRIALS} trials of {TURNS} turns, {AGENTS_AT_ONCE} at once: ideal"
        f" {ideal:.1f} s"
    )
    show(title, rows, ["", "wall s", "wall/bare", "CPU s", "peak MB"])
    allowed = 1.25 * one.wall + 0.008 * commands
    limits = [
        ["wall, 1.25 × bare + 8 ms per command", *limited(other.wall, allowed, " s")],
        ["above bare, per command", *limited(1000 * more / commands, 8, " ms")],
        ["controller", *limited(other.peak, 150, " MB")],
    ]
    show("Limits", limits)


def startup(folder: Path) -> None:
    """The cost of a run before its first call."""
    empty = write_empty_test(folder / "empty")
    skill = write_skill(folder / "lamp", 1)
    scripted = write_scripted(folder / "answers.json", ANSWER)
    with server(0.0) as url:
        of_server = [
            "--skill",
            str(skill),
            "--model",
            MODEL,
            "--skill-base-url",
            url,
            "--skill-fresh",
        ]
        commands: dict[str, Callable[[], Measured]] = {
            "python": partial(measure, [sys.executable, "-c", "pass"], folder),
            "python, import openai": partial(
                measure, [sys.executable, "-c", "import openai"], folder
            ),
            "pytest without the plugin": partial(
                measure, pytest_command("-p", "no:upskill"), empty
            ),
            "pytest, plugin inert": partial(measure, pytest_command(), empty),
            "one case, scripted model": partial(
                measure, pytest_command("--skill", skill, "--model", scripted), folder
            ),
            "one case, openai SDK": partial(
                measure, pytest_command(*of_server), folder
            ),
            "one case, stored answers": partial(
                measure, pytest_command(*of_server[:-1]), folder
            ),
        }
        for run in commands.values():
            run()  # compile modules and warm the disk cache
        runs = side_by_side(commands, STARTUP_ROUNDS)

    rows = []
    for name, measured in runs.items():
        one = middle(measured)
        rows.append(
            [name, f"{one.wall * 1000:.0f}", f"{one.cpu * 1000:.0f}", f"{one.peak:.0f}"]
        )
    show("Start-up", rows, ["", "wall ms", "CPU ms", "peak MB"])

    plain = runs["pytest without the plugin"]
    sdk = difference(runs["python, import openai"], runs["python"])
    scripted_cost = difference(runs["one case, scripted model"], plain)
    sdk_cost = difference(runs["one case, openai SDK"], plain) - sdk
    by_plain = middle(runs["one case, stored answers"]).wall / middle(plain).wall
    inert = 1000 * difference(runs["pytest, plugin inert"], plain)
    limits = [
        ["inert, above plain pytest", *limited(inert, 20, " ms")],
        [
            "one case, scripted model, above plain pytest",
            *limited(scripted_cost, 0.4, " s"),
        ],
        [
            "one case, openai SDK, above plain pytest + its import",
            *limited(sdk_cost, 0.4, " s"),
        ],
        ["one case, stored answers, by plain pytest", *limited(by_plain, 0.55 / 0.35)],
    ]
    show("Limits", limits)


def scale(folder: Path) -> None:
    """Many cases with stored answers: the cost of the plugin and pytest alone."""
    commands: dict[str, Callable[[], Measured]] = {}
    empty = write_empty_tests(folder / "empty", SCALES[-1])
    with server(0.0) as url:
        for cases in SCALES:
            skill = write_skill(folder / f"lamp-{cases}", cases)
            options = ["--skill", str(skill), "--model", MODEL, "--skill-base-url", url]
            commands[f"{cases:,} cases"] = partial(
                measure, pytest_command(*options), folder
            )
        # The small set is the start of the large one, so this fills the store for both.
        # The server stops afterwards: a question that is not stored would fail the run.
        filled = commands[f"{SCALES[-1]:,} cases"]()
        print(f"  filled the store in {filled.wall:.0f} s", file=sys.stderr)
    plain = pytest_command("-p", "no:upskill")
    commands[f"{SCALES[-1]:,} empty tests, no plugin"] = partial(measure, plain, empty)
    medians = [middle(measured) for measured in side_by_side(commands, ROUNDS).values()]
    rows = [
        [name, f"{one.wall:.1f}", f"{1000 * one.wall / tests:.2f}", f"{one.peak:.0f}"]
        for name, one, tests in zip(
            commands, medians, (*SCALES, SCALES[-1]), strict=True
        )
    ]
    show("Scale, all answers stored", rows, ["", "wall s", "ms/test", "peak MB"])

    few, many, _ = medians
    page = folder / "page.html"
    measure([*pytest_command(*options), "--skill-html", str(page)], folder)
    limits = [
        [f"{SCALES[1]:,} cases", *limited(many.wall, 8, " s")],
        [f"{SCALES[1]:,} by {SCALES[0]:,} cases", *limited(many.wall / few.wall, 4.4)],
        [f"{SCALES[1]:,} cases", *limited(many.peak, 150, " MB")],
        [
            f"page of {SCALES[1]:,} cases",
            *limited(page.stat().st_size / 1e6, 15, " MB"),
        ],
    ]
    show("Limits", limits)


WRITE: Final = "--write"
BENCHMARKS: Final[dict[str, Callable[[Path], None]]] = {
    "compared": compared,
    "calls": calls,
    "busy": busy_servers,
    "agents": agents,
    "startup": startup,
    "scale": scale,
    "store": store,
    "cluster": cluster,
}


def _machine() -> str:
    """The processor, as far as the system tells, and the number of cores."""
    known = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [
        line.partition(":")[2].strip()
        for line in known
        if line.startswith("model name")
    ]
    return (
        f"{os.cpu_count()} cores ({next(iter(names), platform.machine())}),"
        f" {platform.system()}"
    )


def main(words: list[str]) -> None:
    names = [word for word in words if word != WRITE] or list(BENCHMARKS)
    page = RESULTS if WRITE in words else None
    for name in names:
        if name not in BENCHMARKS:
            sys.exit(f"{name}: no such benchmark (known: {', '.join(BENCHMARKS)})")
    started = (
        f"{_machine()}, load {os.getloadavg()[0]:.1f} before the first run;"
        f" {versions()}"
    )
    print(started)
    note(started)
    written("machine", page)
    failed = []
    for name in names:
        try:
            with tempfile.TemporaryDirectory() as folder:
                BENCHMARKS[name](Path(folder))
        except SystemExit as problem:  # of a command that was measured
            print(f"\n{name}: {problem}", file=sys.stderr)
            failed.append(name)
        written(name, None if name in failed else page)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
