"""``pytest-upskill report``: write reports of saved results; merge several into one run."""

import argparse
import math
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from ..._util.texts import harmless
from ...errors import shown
from ...reports.markdown import markdown_summary
from ...reports.terminal.summary_text import results_lines
from ...reports.writers import (
    REPORTS,
    Finished,
    report_paths,
    report_writers,
    require_apart,
    write_all,
    written_line,
)
from ...results.from_json import read_run
from ...results.merging import Source, merged
from ...results.run import RunResults
from ...settings import Gates
from ..output import stdout_look, tell, write

_GATES: Final = {
    "--min-lift": (-1.0, 1.0, "fail if the lift of a skill is lower; 0.2 is 20 points"),
    "--min-pass-rate": (0.0, 1.0, "fail if a pass rate is lower; 0.9 is 90 %%"),
    "--max-token-growth": (
        -math.inf,
        math.inf,
        "fail if answers take more tokens; 0.5 is half as many again",
    ),
    "--min-recall": (0.0, 1.0, "fail if a skill is opened less often where it is needed"),
    "--max-false-alarms": (0.0, 1.0, "fail if a skill is opened more often where it is not"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s FILE ... [options]"
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="results of pytest --skill-json, or kept runs",
    )
    for setting, report in REPORTS.items():
        if report.of_run:
            continue
        parser.add_argument(
            f"--{setting.partition('_')[0]}",
            dest=setting,
            type=Path,
            metavar="DIR" if report.is_folder else "FILE",
            help=f"write {report.what}",
        )
    parser.add_argument(
        "--subset", action="store_true", help="accept that some cases are in none of the files"
    )
    gates = parser.add_argument_group("gates", "replace the gates of the runs")
    for flag, (low, high, text) in _GATES.items():
        number = partial(_number, low=low, high=high)
        gates.add_argument(flag, type=number, metavar="R", help=text)
    gates.add_argument(
        "--confident",
        action="store_true",
        help="apply the gates to the bound of the 95 %% interval instead of the estimate",
    )


def _number(text: str, *, low: float, high: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not low <= number <= high or math.isinf(number):
        limits = f"between {low:g} and {high:g}" if high < math.inf else "a number"
        raise argparse.ArgumentTypeError(f"{text!r} is not {limits}")
    return number


def run(given: argparse.Namespace) -> tuple[str, int]:
    gates = _gates(given)
    wanted = report_paths(given)
    require_apart(wanted, [("an input", file) for file in given.files])
    sources = [Source(shown(file), _with_gates(read_run(file), gates)) for file in given.files]
    results, notes = merged(sources, subset=given.subset)
    notes = [*results.notes(), *notes]
    problems = [f"upskill: {harmless(line)}" for line in results.problems]
    text = partial(markdown_summary, results, notes, len(results.failed))
    done = write_all(report_writers(Finished(results, text, notes), wanted))
    written = [written_line(done.paths)] if done.paths else []
    lines = results_lines(results, stdout_look(), notes)
    write("\n".join([*lines, *written, *problems]))
    for error in done.problems:
        tell(sys.stderr, f"pytest-upskill: {error.message(given.spell)}\n")
    return "", 2 if done.problems else 1 if problems else 0


def _gates(given: argparse.Namespace) -> Gates:
    """The gates of the command line; they replace those of the files."""
    return Gates(
        given.min_lift,
        given.min_pass_rate,
        given.max_token_growth,
        given.confident,
        min_recall=given.min_recall,
        max_false_alarms=given.max_false_alarms,
    )


def _with_gates(results: RunResults, gates: Gates) -> RunResults:
    return replace(results, gates=gates) if gates.any() else results
