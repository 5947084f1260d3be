"""``pytest-upskill report``: write reports of saved results; merge several into one run."""

import argparse
from dataclasses import replace
from pathlib import Path

from ..._util.texts import harmless
from ...errors import shown
from ...reports.terminal.summary_text import results_lines
from ...reports.writers import report_paths, require_apart
from ...results.merging import Source, merged
from ...results.run import RunResults
from ...results.run_file import read_run
from ...results.run_notes import run_notes
from ...settings import Gates, Settings, settings_of
from ...skills.upskill_config import UpskillConfig
from ..command_options import add_options, option_values
from ..output import stdout_look
from ..shared_steps import write_reports


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s FILE ... [options]"
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="results of pytest --skill-json, or kept runs",
    )
    groups = add_options(parser, "report", Settings, Gates)
    groups["output"].add_argument(
        "-v", "--verbose", action="store_true", help="show all tables, rows and arms"
    )
    groups["gates"].description = "replace the gates of the runs"
    parser.add_argument(
        "--subset", action="store_true", help="accept that some cases are in none of the files"
    )


def run_report(args: argparse.Namespace) -> tuple[str, int]:
    gates = settings_of(option_values(args, UpskillConfig(), Gates)).gates
    require_apart(report_paths(args), [("an input", file) for file in args.files])
    sources = [Source(shown(file), _with_gates(read_run(file), gates)) for file in args.files]
    results, notes = merged(sources, subset=args.subset)
    notes = [*run_notes(results), *notes]
    problems = [f"upskill: {harmless(line)}" for line in results.problems]
    written, status = write_reports(args, results, notes, len(results.failed))
    look = stdout_look(int(args.verbose))
    lines = [*results_lines(results, look, notes), *written, *problems]
    return "\n".join(lines), status or int(bool(problems))


def _with_gates(results: RunResults, gates: Gates) -> RunResults:
    return replace(results, gates=gates, idle_gates=()) if gates.any() else results
