"""``pytest-upskill runs``: the kept runs of a project, listed, drawn, shown and compared."""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ..._util.files import save_file
from ..._util.texts import counted, one_line
from ...errors import ResultsError, shown
from ...reports.history.entries import Entry, entry_data, history_csv
from ...reports.history.run_lines import comparison_lines, run_lines
from ...reports.history.trend import history_lines, plot_lines
from ...reports.history.trend_page import trend_page
from ...reports.numbers import metrics
from ...reports.terminal.layout import Look
from ...results.from_json import read_run, unpacked
from ...results.history import KeptRun, find, runs, short_ids
from ...results.run_comparison import RunComparison, compare_runs
from ..output import stdout_look
from ..project import runs_folder

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
    parser.add_argument("--metric", choices=metrics(), default="lift", help="what is drawn (lift)")
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
    add_show(single)
    add_compare(single)


def run(given: argparse.Namespace) -> tuple[str, int]:
    kept = runs(runs_folder(given.dir, Path.cwd()))
    look = stdout_look()
    if given.what == "show":
        return show(given, kept, look)
    if given.what == "compare":
        return compare(given, kept, look)
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
    metric, size = metrics()[given.metric], counted(len(entries), "line")
    lines = []
    if given.html and entries:
        save_file(given.html, trend_page(entries, metric))
        lines.append(f"{shown(given.html)}: {metric.title}, {size}")
    if given.csv and entries:
        save_file(given.csv, history_csv(entries, metric))
        lines.append(f"{shown(given.csv)}: {size}")
    return lines


def _shown(given: argparse.Namespace, entries: Sequence[Entry], look: Look) -> list[str]:
    if not entries:
        filtered = given.skill or given.model
        return [_NO_MATCH if filtered else "None of the kept runs can be read."]
    now = datetime.now().astimezone()
    if given.plot:
        return plot_lines(entries, metrics()[given.metric], look, now)
    return history_lines(entries, look, now)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


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
        return _comparison_json(names, found), status
    told = list(zip(names, (before, after), strict=True))
    return "\n".join(comparison_lines(told, found, look)), status


def _comparison_json(names: Sequence[str], found: RunComparison) -> str:
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
            "tokens": pair.change and pair.change.tokens and pair.change.tokens._asdict(),
        }
        for pair in found.pairs
    ]
    data = {"schema": 1, "before": names[0], "after": names[1], "pairs": pairs}
    only = {"only_before": found.only_before, "only_after": found.only_after}
    return json.dumps({**data, **only}, indent=2)
