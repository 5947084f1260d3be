"""``pytest-upskill plan``: before a run, how many cases and runs find a lift.
Asks no model.
"""

import argparse
import json
import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

from ..._util.json_forms import json_values
from ..._util.texts import counted, one_line, percent
from ...lint import runnable_cases
from ...options import lift, whole
from ...reports.terminal.tables import text_table
from ...results.contrasts import size_of
from ...results.history import KeptRow, newest
from ...results.run_file import read_run
from ...results.summary import case_words
from ...settings import MOST_RUNS
from ...skills.search import labels_of
from ...skills.suites.reading import read_suites
from ...stats import shared_level
from ...stats.power import (
    ASSUMED_BASELINE,
    POWER,
    assumed_kinds,
    cases_to_find,
    chance_to_find,
    kinds_of,
    lift_to_find,
)
from ...trials.trial import lift_sample_of
from ..command_table import add_skill
from ..project import find_one_skill, runs_folder

_RUNS: Final = (1, 3, 5)
_WIDTH: Final = 80
_ADVICE: Final = (
    "Decide before the run, and keep to it: adding cases or runs until a lift is shown"
    " makes wrong verdicts more likely."
)


@dataclass(frozen=True)
class PlannedRuns:
    """With so many runs of each case; None means that no number is enough."""

    runs: int
    cases: int | None  # that find the lift
    chance: float | None  # that the present cases find it
    smallest_lift: float | None  # that the present cases find


@dataclass(frozen=True)
class LiftPlan:
    """What it takes to find a lift on a model, from its last run or as assumed."""

    model: str | None
    basis: str
    baseline_rate: float
    rows: tuple[PlannedRuns, ...]


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    add_skill(parser)
    parser.add_argument(
        "--lift",
        type=lift(above_zero=True).parse,
        default=0.2,
        metavar="R",
        help="the lift to find: 20 points, or 0.2 (default: 20)",
    )
    parser.add_argument(
        "--model",
        action="append",
        metavar="NAME",
        help=(
            "the model of the run (default: that of the last one); repeat it for"
            " several"
        ),
    )
    parser.add_argument(
        "--runs",
        type=whole(1, MOST_RUNS).parse,
        metavar="N",
        help="runs of each case (default: 1, 3 and 5 are compared)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_plan(args: argparse.Namespace) -> tuple[str, int]:
    file = find_one_skill(args.skill, os.environ, "plan")
    label, cases = labels_of([file])[file], _present_cases(file.parent)
    kept = _kept_rows(label)
    models = args.model or list(kept)[:1]
    # None: no run on it yet
    rows = list(dict.fromkeys(map(kept.get, models))) or [None]
    plans = [_planned(args, row, cases, max(1, len(models))) for row in rows]
    if args.json:
        data = {"schema": 1, "skill": label, "lift": args.lift, "cases": cases}
        return (
            json.dumps(
                {**data, "plans": [json_values(plan) for plan in plans]}, indent=2
            ),
            0,
        )
    title = (
        f"{one_line(label, 60)}: a lift of {size_of(args.lift)}, found in {POWER:.0%}"
        " of runs"
    )
    if len(models) > 1:
        title += f" on {len(models)} models"
    blocks = [title]
    for plan in plans:
        blocks += [textwrap.fill(f"{plan.basis}.", _WIDTH), _table(plan.rows, cases)]
    return "\n\n".join([*blocks, textwrap.fill(_ADVICE, _WIDTH)]), 0


def _kept_rows(label: str) -> dict[str, KeptRow]:
    """The newest of each model with a baseline, of all cases if there is one."""
    folder = runs_folder(None, Path.cwd())
    rows = newest(folder, lambda row: row.baseline_rate is not None).get(label, {})
    whole = newest(folder, lambda row: row.baseline_rate is not None and row.whole)
    return rows | whole.get(label, {})


def _present_cases(folder: Path) -> int:
    """Those that a lift counts; none without a file of cases."""
    suite = read_suites(folder).cases
    if not suite or not suite.has_cases:
        return 0
    cases = [case for of_file in runnable_cases(suite) for case, _ in of_file.cases]
    return len({lift_sample_of(case) for case in cases if case.skip is None})


def _planned(
    args: argparse.Namespace, kept: KeptRow | None, cases: int, models: int
) -> LiftPlan:
    pairs, pilot_runs, rate = (
        list[tuple[float, float]](),
        1,
        min(ASSUMED_BASELINE, 1 - args.lift),
    )
    basis = (
        f"Assumed, for want of a run with a baseline: {percent(rate)} pass without the"
        " skill; half of the spread is between cases; the skill solves some cases and"
        " changes no others"
    )
    if kept:
        run, pilot_runs = read_run(kept.run.path), kept.row.runs
        (summary,) = (
            summary for summary in run.summaries if summary.pair == kept.row.pair
        )
        if pairs := summary.scores(over="baseline"):
            rate = fmean(baseline for baseline, _ in pairs)
            basis = (
                f"As in the run of {run.started.astimezone():%Y-%m-%d} on"
                f" {one_line(summary.label, 60)}: {percent(rate)} pass without the"
                f" skill ({case_words([summary])}, {counted(pilot_runs, 'run')})"
            )
    level = shared_level(models)  # as in verdicts
    kinds = (
        kinds_of(pairs, pilot_runs, args.lift) if pairs else assumed_kinds(args.lift)
    )
    if kinds is None:
        basis += ", which leaves no room for this lift"
    rows = [
        PlannedRuns(
            runs,
            cases_to_find(kinds, runs, level) if kinds else None,
            chance_to_find(kinds, cases, runs, level) if kinds and cases else None,
            lift_to_find(pairs, pilot_runs, cases, runs, level) if cases else None,
        )
        for runs in ((args.runs,) if args.runs else _RUNS)
    ]
    return LiftPlan(kept.row.label if kept else None, basis, rate, tuple(rows))


def _table(rows: Sequence[PlannedRuns], cases: int) -> str:
    present = counted(cases, "case")
    headers = [
        "runs",
        "cases needed",
        f"chance with {present}",
        f"{present} find{'s' * (cases == 1)}",
    ]
    cells = [
        (
            row.runs,
            "-" if row.cases is None else f"{row.cases:,}",
            "-" if row.chance is None else percent(row.chance),
            (
                "-"
                if row.smallest_lift is None
                else f"{size_of(row.smallest_lift)} or more"
            ),
        )
        for row in rows
    ]
    columns = len(headers) if cases else 2
    return text_table(headers[:columns], [row[:columns] for row in cells])
