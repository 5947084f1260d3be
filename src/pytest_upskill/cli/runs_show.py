"""``pytest-upskill runs show ID``: all that came of a kept run."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ResultsError
from ..reports.history.run_lines import run_lines
from ..reports.history.trend import Look
from ..results.from_json import read_run, unpacked
from ..results.history import KeptRun, find


def add_show(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "show",
        help="ID: summary, verdicts and failed cases of a run",
        description="What came of a run: tables, verdicts, failed cases, gate, commit, versions.",
        epilog="example: pytest-upskill runs show last~1\n"
        "exit status: 0 fine, 2 usage or bad input",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", metavar="ID", help=ID_HELP)
    parser.add_argument("--json", action="store_true", help="the whole run as JSON")
    add_dir(parser)


ID_HELP = "an id or the beginning or end of one, last, last~1, or a file of --skill-json"


def add_dir(parser: argparse.ArgumentParser) -> None:
    # Without a default of its own, what stands before the command holds.
    parser.add_argument(
        *("-d", "--dir"),
        type=Path,
        metavar="DIR",
        default=argparse.SUPPRESS,
        help="the folder of kept runs",
    )


def show(given: argparse.Namespace, kept: Sequence[KeptRun], look: Look) -> tuple[str, int]:
    name, file = file_of(given.id, kept)
    results = read_run(file)
    if given.json:
        # Answers may hold what a terminal would obey: as ASCII they can't.
        return json.dumps(json.loads(unpacked(file)), indent=1), 0
    return "\n".join(run_lines(name, results, look)), 0


def file_of(text: str, kept: Sequence[KeptRun]) -> tuple[str, Path]:
    """What a run is called, and its file: of the history, or any that was written of a run."""
    path = Path(text)
    try:
        run = find(kept, text)
    except ResultsError:
        if path.is_file():
            return path.name, path
        raise
    return run.id, run.path
