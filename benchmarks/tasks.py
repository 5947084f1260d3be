"""Which tasks of a benchmark run here, and whether their own solutions pass.

python benchmarks/tasks.py FOLDER… [--only NAME] [--again NAME] [--seconds S]
    [--results FILE] [--write]

Each folder holds tasks. Each task is run alone by pytest with the agent `oracle`, and
what came of it is kept in --results (default: build/tasks.json) at once, so an
interrupted run goes on where it ended. --again runs a task once more ("all": every
one), --only leaves the others for later, --seconds ends a task that takes longer, and
--write makes skillsbench.md of all that is known. What can't be seen in a result, such
as why a solution fails here, is said by hand in skillsbench.toml.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from tabulate import tabulate

HERE: Final = Path(__file__).parent
KNOWN: Final = HERE.parent / "build" / "tasks.json"
NOTES: Final = HERE / "skillsbench.toml"
PAGE: Final = HERE / "skillsbench.md"
_CONTAINERS: Final = ("docker", "podman")
_FILES: Final = ("task.toml", "task.md")


@dataclass(frozen=True)
class Outcome:
    """What came of a task."""

    suite: str
    task: str
    runs_in: str = ""  # the name of a sandbox; empty if it can't run here
    reason: str = ""  # why it needs an image, can't run, or failed
    # The reward of its own solution; None if there was none
    oracle: float | None = None
    idle: float | None = None  # the reward of doing nothing
    seconds: float | None = None  # of its test

    @property
    def passed(self) -> bool:
        return self.oracle is not None and self.oracle >= 1

    @property
    def is_sound(self) -> bool:
        """Whether doing nothing fails."""
        return self.idle is None or self.idle < 1


def tasks_in(folder: Path) -> list[Path]:
    """The folders of tasks below a folder."""
    children = sorted(child for child in folder.iterdir() if child.is_dir())
    return [
        child for child in children if any((child / name).is_file() for name in _FILES)
    ]


def with_results(
    outcome: Outcome, results: Mapping[str, Any], seconds: float
) -> Outcome:
    """An outcome with what the results of its run say."""
    records = {record["arm"]: record for record in results["records"]}
    oracle, idle = records.get("skill"), records.get("baseline")
    problem = _problem(oracle) if oracle else ""
    if not oracle:
        said = (entry["reason"] for entry in results["outcomes"])
        problem = next((reason for reason in said if reason), "nothing was run")
    return replace(
        outcome,
        reason=problem or outcome.reason,
        oracle=_reward(oracle),
        idle=_reward(idle),
        seconds=round(seconds, 1),
    )


def _reward(record: Mapping[str, Any] | None) -> float | None:
    if not record or record["outcome"] == "errored":
        return None
    return float(record["score"])


def _problem(record: Mapping[str, Any]) -> str:
    """Why a record has not passed, in one line."""
    if record["error"]:
        return " ".join(str(record["error"]).split())
    failed = [check["reason"] for check in record["checks"] if not check["passed"]]
    return " ".join(str(failed[0]).split()) if failed else ""


def page(outcomes: Sequence[Outcome], notes: Mapping[str, str], machine: str) -> str:
    """skillsbench.md."""
    suites = list(dict.fromkeys(outcome.suite for outcome in outcomes))
    groups = {
        suite: [one for one in outcomes if one.suite == suite] for suite in suites
    }
    head = (
        "",
        "tasks",
        "in bwrap",
        "pass",
        "in an image",
        "pass",
        "can't run",
        "doing nothing",
    )
    rows = [[suite, *_counts(group)] for suite, group in groups.items()]
    parts = [_INTRODUCTION.format(machine=machine), _table(head, rows)]
    for suite, group in groups.items():
        rows = [_row(outcome, notes.get(outcome.task, "")) for outcome in group]
        parts += [f"## {suite}", _table(_HEAD, rows)]
    return "\n\n".join(parts) + "\n"


_HEAD: Final = ("task", "runs in", "its solution", "doing nothing", "seconds", "")
_INTRODUCTION: Final = """# Tasks of other benchmarks

Made by `python benchmarks/tasks.py FOLDER… --write` from folders of tasks, of which
nothing is kept here but their names. A task is run by `pytest FOLDER/TASK --skill-agent
oracle`: its own solution has to get all of the reward, and doing nothing has to get
less. Seconds are those of its test, with both verifiers.

{machine}"""


def _counts(outcomes: Sequence[Outcome]) -> list[str]:
    boxed = [one for one in outcomes if one.runs_in == "bwrap"]
    imaged = [one for one in outcomes if one.runs_in in _CONTAINERS]
    stuck = [one for one in outcomes if not one.runs_in]
    unsound = [one for one in outcomes if not one.is_sound]
    groups = (outcomes, boxed, _passing(boxed), imaged, _passing(imaged), stuck)
    return [*(str(len(group)) for group in groups), f"{len(unsound)} pass"]


def _passing(outcomes: Iterable[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.passed]


def _row(outcome: Outcome, note: str) -> list[str]:
    kind = (
        "an image" if outcome.runs_in in _CONTAINERS else outcome.runs_in or "can't run"
    )
    told = outcome.seconds is not None
    solution = "passes" if outcome.passed else _reward_text(outcome.oracle)
    untold = "not run yet" if outcome.runs_in else ""
    return [
        outcome.task,
        kind,
        solution if told else untold,
        _reward_text(outcome.idle) if told else "",
        "" if outcome.seconds is None else f"{outcome.seconds:.0f}",
        _cell(note or _shown_reason(outcome)),
    ]


def _shown_reason(outcome: Outcome) -> str:
    """A reason without text of the task: nothing that its Dockerfile or verifier
    says.
    """
    if outcome.seconds is not None and not outcome.passed:
        return "see its results"
    line = _IN_DOCKERFILE.match(outcome.reason)
    if not line:
        return outcome.reason
    number, instruction = line.groups()
    if outcome.reason.endswith(_NO_FILE):
        return "a file that its Dockerfile copies is missing"
    return (
        f"{instruction} in line {number} of its Dockerfile"
        if number
        else "its base image"
    )


def _reward_text(reward: float | None) -> str:
    return "no reward" if reward is None else f"{reward:g}"


def _cell(text: str) -> str:
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return short.replace("|", "\\|")


_LONGEST: Final = 160
_IN_DOCKERFILE: Final = re.compile(r"Dockerfile(?::(\d+))?: (\w+)")
_NO_FILE: Final = "no such file"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return tabulate(rows, headers=head, disable_numparse=True, tablefmt="github")


def known(file: Path) -> dict[tuple[str, str], Outcome]:
    """Outcomes of earlier runs."""
    try:
        outcomes = [
            Outcome(**fields) for fields in json.loads(file.read_text(encoding="utf-8"))
        ]
    except FileNotFoundError:
        return {}
    return {(outcome.suite, outcome.task): outcome for outcome in outcomes}


def keep(file: Path, outcomes: Iterable[Outcome]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")  # so that an interrupt leaves a whole file
    draft.write_text(
        json.dumps([asdict(one) for one in outcomes], indent=1), encoding="utf-8"
    )
    draft.replace(file)


def place(task: Path) -> Outcome:
    """Where a task would run, as pytest itself decides it."""
    from pytest_upskill.agents.task_sandbox import choose_sandbox
    from pytest_upskill.skills.suites.harbor import harbor_suite

    outcome = Outcome(task.resolve().parent.name, task.name)
    suite = harbor_suite(task, task)
    if not suite or not suite.files[0].cases:
        return replace(outcome, reason="can't be read")
    (case,) = suite.files[0].cases
    if case.skip:
        return replace(outcome, reason=case.skip)
    found = choose_sandbox(case.sandbox)
    return replace(outcome, runs_in=found.kind, reason=found.reason)


def run(task: Path, outcome: Outcome, seconds: float) -> Outcome:
    """Run a task by its own solution, and once more by doing nothing."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "results.json")
        times = Path(folder, "times.xml")
        files = ("--skill-json", str(file), "--junitxml", str(times))
        options = ("--skill-agent", "oracle", "--skill-fresh", *files)
        command = [sys.executable, "-m", "pytest", "-q", str(task.resolve()), *options]
        try:
            ran = subprocess.run(
                command,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return replace(
                outcome, reason=f"not done after {seconds:.0f} s", seconds=seconds
            )
        if not file.exists():
            lines = (ran.stdout + ran.stderr).strip().splitlines()
            return replace(
                outcome, reason=lines[-1] if lines else "no results", seconds=0.0
            )
        results = json.loads(file.read_text(encoding="utf-8"))
        return with_results(
            outcome, results, seconds_of(times.read_text(encoding="utf-8"))
        )


def seconds_of(junit: str) -> float:
    """How long the tests of a run took, by its JUnit file."""
    return sum(
        float(test.get("time", 0))
        for test in ElementTree.fromstring(junit).iter("testcase")
    )


def machine() -> str:
    """What matters of this machine."""
    python = ".".join(platform.python_version_tuple()[:2])
    return (
        f"This machine: {platform.machine()}, {os.cpu_count()} cores, Python {python}."
    )


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--again", action="append", default=[], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=3600.0, metavar="S")
    parser.add_argument("--results", type=Path, default=KNOWN, metavar="FILE")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(words)
    outcomes = known(options.results)
    for task in (task for folder in options.folders for task in tasks_in(folder)):
        placed = place(task)
        key = (placed.suite, placed.task)
        before = outcomes.get(key)
        again = "all" in options.again or task.name in options.again
        wanted = not options.only or task.name in options.only
        is_done = before is not None and before.seconds is not None
        if not (again or (wanted and not is_done)) or not placed.runs_in:
            outcomes[key] = placed if not before or not is_done else before
            continue
        outcomes[key] = run(task, placed, options.seconds)
        keep(options.results, outcomes.values())
        print(json.dumps(asdict(outcomes[key])), flush=True)
    keep(options.results, outcomes.values())
    if options.write:
        notes = tomllib.loads(NOTES.read_text(encoding="utf-8"))
        about = f"{machine()}\n{notes['about']}"
        ordered = sorted(outcomes.values(), key=lambda one: (one.suite, one.task))
        PAGE.write_text(page(ordered, notes["notes"], about), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
