"""``pytest-upskill report``: write reports of saved results; merge several into one run."""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..._util.texts import harmless
from ...errors import shown
from ...reports.markdown import markdown_summary
from ...reports.terminal.summary_text import results_lines
from ...reports.writers import (
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
from ...settings import Gates, Settings, settings_of
from ...skills.upskill_config import UpskillConfig
from ..command_options import add_options, option_values
from ..output import stdout_look, tell, write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s FILE ... [options]"
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="results of pytest --skill-json, or kept runs",
    )
    groups = add_options(parser, "report", Settings, Gates)
    groups["gates"].description = "replace the gates of the runs"
    parser.add_argument(
        "--subset", action="store_true", help="accept that some cases are in none of the files"
    )


def run(given: argparse.Namespace) -> tuple[str, int]:
    gates = settings_of(option_values(given, UpskillConfig(), Gates)).gates
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


def _with_gates(results: RunResults, gates: Gates) -> RunResults:
    return replace(results, gates=gates) if gates.any() else results
