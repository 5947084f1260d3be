"""``pytest-upskill plan``: before a run, how many cases show a lift. Asks no model."""

import argparse
import json
import os
import textwrap
from pathlib import Path
from typing import Final

from ..._util.texts import counted, one_line
from ...lint import runnable_cases
from ...options import lift
from ...reports.terminal.tables import text_table
from ...results.contrasts import size_of
from ...results.history import KeptRow, newest
from ...skills.search import labels_of
from ...skills.suites.reading import read_suites
from ...stats import POWER, cases_to_find
from ...trials.trial import lift_sample_of
from ..command_table import add_skill
from ..project import find_one_skill, runs_folder

_RUNS: Final = (1, 3, 5)
_WIDTH: Final = 80
_ASSUMPTIONS: Final = (
    "If half of the answers pass without the skill, and it solves some cases and"
    " changes no others."
)
_ADVICE: Final = (
    "Decide before the run, and keep to it: adding cases or runs until a lift is shown"
    " makes wrong verdicts more likely."
)


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    add_skill(parser)
    parser.add_argument(
        "--lift",
        type=lift(above_zero=True).parse,
        default=0.2,
        metavar="R",
        help="the lift to find: 20 points, or 0.2 (default: 20)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_plan(args: argparse.Namespace) -> tuple[str, int]:
    file = find_one_skill(args.skill, os.environ, "plan")
    label = labels_of([file])[file]
    cases = _count_cases(file.parent)
    needed = {runs: cases_to_find(args.lift, runs) for runs in _RUNS}
    last_runs = _find_last_runs(label)
    if args.json:
        data = {
            "schema": 1,
            "skill": label,
            "lift": args.lift,
            "cases": cases,
            "needed": [{"runs": runs, "cases": n} for runs, n in needed.items()],
            "last_runs": [_last_run_values(kept) for kept in last_runs],
        }
        return json.dumps(data, indent=2), 0

    title = (
        f"{one_line(label, 60)}: a lift of {size_of(args.lift)}, shown in {POWER:.0%}"
        f" of runs (it has {counted(cases, 'case')})"
    )
    rows = [(runs, f"{n:,}" if n else "over 10,000") for runs, n in needed.items()]
    table = text_table(["runs", "cases needed"], rows)
    blocks = [textwrap.fill(title, _WIDTH), table, textwrap.fill(_ASSUMPTIONS, _WIDTH)]
    for kept in last_runs:
        blocks.append(textwrap.fill(_describe_last_run(kept), _WIDTH))
    return "\n\n".join([*blocks, textwrap.fill(_ADVICE, _WIDTH)]), 0


def _count_cases(folder: Path) -> int:
    """Those that a lift counts; none without a file of cases."""
    suite = read_suites(folder).cases
    if not suite or not suite.has_cases:
        return 0

    samples = set()
    for of_file in runnable_cases(suite):
        for case, _ in of_file.cases:
            if case.skip is None:
                samples.add(lift_sample_of(case))
    return len(samples)


def _find_last_runs(label: str) -> list[KeptRow]:
    """The last run on each model that says how many cases a new one needs."""
    rows = newest(
        runs_folder(None, Path.cwd()), lambda row: row.cases_needed is not None
    )
    return list(rows.get(label, {}).values())


def _last_run_values(kept: KeptRow) -> dict[str, object]:
    row = kept.row
    return {
        "run": kept.run.id,
        "model": row.label,
        "cases": row.cases,
        "runs": row.runs,
        "cases_needed": row.cases_needed,
        "detectable_lift": row.detectable_lift,
    }


def _describe_last_run(kept: KeptRow) -> str:
    row = kept.row
    return (
        f"{one_line(row.label, 60)}, by the run of"
        f" {kept.run.head.started.astimezone():%Y-%m-%d} ({counted(row.cases, 'case')},"
        f" {counted(row.runs, 'run')} each): a new run with about"
        f" {counted(row.cases_needed or 0, 'case')} would settle it."
    )
