"""``pytest-upskill runs compare A B``: what changed from one run to another."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..reports.history.run_lines import comparison_lines
from ..reports.history.trend import Look
from ..results.from_json import read_run
from ..results.history import KeptRun
from ..results.run_comparison import RunComparison, compare_runs
from .runs_show import ID_HELP, add_dir, file_of


def add_compare(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare",
        help="A B: what changed from run A to run B, case by case",
        description="What changed from run A to run B: pass rates with the skill, paired by case.",
        epilog="example: pytest-upskill runs compare last~1 last --fail-if-worse\n"
        "exit status: 0 fine, 1 worse (with --fail-if-worse), 2 usage or bad input",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("before", metavar="A", help=ID_HELP)
    parser.add_argument("after", metavar="B", help="the same")
    parser.add_argument(
        "--fail-if-worse",
        action="store_true",
        help="exit with 1 if a skill is shown to be worse on a model",
    )
    parser.add_argument("--json", action="store_true", help="the comparison as JSON")
    add_dir(parser)


def compare(given: argparse.Namespace, kept: Sequence[KeptRun], look: Look) -> tuple[str, int]:
    names, files = zip(*(file_of(text, kept) for text in (given.before, given.after)), strict=True)
    before, after = (read_run(file) for file in files)
    found = compare_runs(before, after)
    status = 1 if given.fail_if_worse and found.worse else 0
    if given.json:
        return _json(names, found), status
    told = list(zip(names, (before, after), strict=True))
    return "\n".join(comparison_lines(told, found, look)), status


def _json(names: Sequence[str], found: RunComparison) -> str:
    pairs = [
        {
            **asdict(pair),
            "change": pair.change
            and {
                "points": pair.change.lift.lift,
                "low": pair.change.lift.low,
                "high": pair.change.lift.high,
                "p_value": pair.change.p_value,
                "verdict": pair.change.word,
            },
            "tokens": pair.tokens and pair.tokens._asdict(),
        }
        for pair in found.pairs
    ]
    data = {"schema": 1, "before": names[0], "after": names[1], "pairs": pairs}
    only = {"only_before": found.only_before, "only_after": found.only_after}
    return json.dumps({**data, **only}, indent=2)
