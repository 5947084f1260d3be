"""``pytest-upskill runs``: the kept runs of a project, listed, drawn, shown and compared."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Final

from .._util.texts import counted, one_line
from ..errors import ResultsError, SettingsError, shown
from ..reports.history.entries import METRICS, Entry, csv_text, entry_data
from ..reports.history.trend import Look, plot_lines, table_lines
from ..reports.history.trend_page import trend_page
from ..reports.terminal.summary_text import marks_for
from ..results.history import KeptRun, runs, short_ids
from . import runs_compare, runs_show
from .output import painter
from .places import runs_folder

_ROWS: Final = 20
_NONE: Final = (
    "No runs are kept here yet. Make one: pytest --skill PATH --model NAME\n"
    "(they are looked for in .upskill/runs, here and above; --dir names another folder)"
)
_NO_MATCH: Final = "No kept run has such a skill or model; pytest-upskill runs lists all."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "pytest-upskill runs [options] [show ID | compare A B]"
    parser.description = (
        "Recent runs, newest first: a line for each skill and model.\n"
        "runs show ID tells more of one, runs compare A B what changed from A to B."
    )
    for flags in (("-s", "--skill"), ("-m", "--model")):
        text = f"only this {flags[1][2:]}, or a pattern (repeatable)"
        parser.add_argument(*flags, action="append", metavar="NAME", help=text)
    parser.add_argument("--metric", choices=METRICS, default="lift", help="what is drawn (lift)")
    parser.add_argument("--plot", action="store_true", help="bars and a trend in the terminal")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the trend as a page")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write all lines as CSV")
    parser.add_argument("--json", action="store_true", help="print all lines as JSON")
    parser.add_argument(
        "-n", "--limit", type=_count, metavar="N", help=f"lines at most ({_ROWS}; in files all)"
    )
    parser.add_argument(
        "-d", "--dir", type=Path, metavar="DIR", help="the folder of kept runs (.upskill/runs)"
    )
    single = parser.add_subparsers(dest="what", help=argparse.SUPPRESS, prog="pytest-upskill runs")
    runs_show.add_show(single)
    runs_compare.add_compare(single)


def run(given: argparse.Namespace) -> tuple[str, int]:
    kept = runs(runs_folder(given.dir, Path.cwd()))
    look = _look()
    if given.what == "show":
        return runs_show.show(given, kept, look)
    if given.what == "compare":
        return runs_compare.compare(given, kept, look)
    if not kept and not given.json:
        return _NONE, 1 if given.html or given.csv else 0
    damaged: list[str] = []
    wanted = _entries(given, kept, damaged)
    limit = given.limit or (None if given.json or given.html or given.csv else _ROWS)
    entries = list(islice(wanted, limit))
    written = _written(given, entries)
    # Nothing to write is no success for who awaits a file.
    status = 1 if (given.html or given.csv) and not entries else 0
    if given.json:
        data = {"schema": 1, "rows": [entry_data(entry) for entry in entries], "damaged": damaged}
        return json.dumps(data, indent=2), status
    lines = written if written and not given.plot else [*written, *_shown(given, entries, look)]
    if next(wanted, None):
        lines += ["", f"There are older ones; -n {2 * len(entries)} shows more."]
    return "\n".join([*lines, *(f"left out, damaged: {line}" for line in damaged)]), status


def _entries(
    given: argparse.Namespace, kept: Sequence[KeptRun], damaged: list[str]
) -> Iterator[Entry]:
    """Newest first; a run is read when it is come to."""
    short = short_ids(kept)
    for kept_run in kept:
        try:
            head = kept_run.head
        except ResultsError as error:
            damaged.append(one_line(f"{error.where}: {error.problem}", 200))
            continue
        for row in head.rows:
            if _is_wanted(row.skill, given.skill) and _is_wanted(row.model, given.model):
                yield Entry(kept_run.id, short[kept_run.id], head.started, head.commit, row)


def _is_wanted(name: str, patterns: Sequence[str] | None) -> bool:
    return not patterns or any(name == one or fnmatchcase(name, one) for one in patterns)


def _written(given: argparse.Namespace, entries: Sequence[Entry]) -> list[str]:
    """The files that were asked for are there; a line for each of them."""
    metric, size = METRICS[given.metric], counted(len(entries), "line")
    lines = []
    if given.html and entries:
        _write(given.html, trend_page(entries, metric))
        lines.append(f"{shown(given.html)}: {metric.title}, {size}")
    if given.csv and entries:
        _write(given.csv, csv_text(entries, metric))
        lines.append(f"{shown(given.csv)}: {size}")
    return lines


def _shown(given: argparse.Namespace, entries: Sequence[Entry], look: Look) -> list[str]:
    if not entries:
        filtered = given.skill or given.model
        return [_NO_MATCH if filtered else "None of the kept runs can be read."]
    if given.plot:
        return plot_lines(entries, METRICS[given.metric], look)
    return table_lines(entries, look)


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        problem = f"this can't be written: {error.strerror or error}"
        raise SettingsError(shown(file), problem, "Name a file in a folder of yours.") from None


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _look() -> Look:
    return Look(
        width=shutil.get_terminal_size((80, 24)).columns,
        marks=marks_for(sys.stdout.encoding or "ascii"),
        paint=painter(sys.stdout, os.environ),
        now=datetime.now().astimezone(),
    )
