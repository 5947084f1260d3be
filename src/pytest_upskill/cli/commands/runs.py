"""The commands that read runs: ``runs`` and ``report``.

``runs`` lists, plots, shows and compares the kept runs of a project; ``report`` writes
reports of saved results, and merges several into one run.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ..._util.files import save_file
from ..._util.json_forms import json_values
from ..._util.texts import counted, first_few, harmless, one_line
from ...errors import ResultsError, shown
from ...options import whole
from ...registry import Command
from ...reports.history_rows import row_data
from ...reports.numbers import metrics
from ...reports.page import run_page, trend_page
from ...reports.terminal.layout import TerminalLook, wrapped
from ...reports.terminal.run_lines import comparison_lines, run_lines
from ...reports.terminal.summary_text import results_lines
from ...reports.terminal.trend import history_lines, plot_lines
from ...reports.writers import report_paths, require_apart
from ...results.case_changes import Earlier
from ...results.history import KeptRow, KeptRun, find, runs
from ...results.merging import Source, merged
from ...results.run import RunResults
from ...results.run_comparison import RunComparison, compare_runs
from ...results.run_file import read_run, unpacked
from ...results.run_notes import run_notes
from ...settings import Gates, Settings, settings_of
from ...skills.upskill_config import UpskillConfig
from ..command_table import USAGE, add_command, add_options, option_values
from ..output import stdout_look
from ..project import runs_folder
from ..shared_steps import write_reports

_RUNS: Final = 20
_MOST_ROWS: Final = 12  # of a run in the list
_MOST_NAMES: Final = 5
_NONE: Final = (
    "No runs yet. Make one: pytest --skill PATH --model NAME\n(looked for in"
    " .upskill/runs, here and in parent folders; --dir names another folder)"
)
_ID_HELP: Final = (
    "the start or end of a run's id, or last, last~1, or a file of results"
)
_METRICS_OF_UPSKILL: Final = {"success": "pass-rate"}
_NO_MATCH: Final = "No run matches. pytest-upskill runs lists them all."


def add_runs_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "pytest-upskill runs [options] [show ID | compare A B]"
    parser.description = (
        "List recent runs, newest first, with a line for each skill and model.\n"
        "runs show ID shows one run; runs compare A B shows what changed from A to B."
    )
    for flags in (("-s", "--skill"), ("-m", "--model")):
        text = f"only this {flags[1][2:]}: a name or a pattern (repeatable)"
        parser.add_argument(*flags, action="append", metavar="NAME", help=text)
    parser.add_argument(
        "--metric",
        type=lambda name: _METRICS_OF_UPSKILL.get(name, name),
        choices=metrics(),
        metavar="NAME",
        default="lift",
        help=f"the number to plot or write: {', '.join(metrics())} (default: lift)",
    )
    parser.add_argument(
        "--plot", action="store_true", help="plot the trend in the terminal"
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write the trend as an HTML page"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "-n",
        "--limit",
        type=whole(1).parse,
        metavar="N",
        help=f"maximum number of runs (default: {_RUNS}, or all with --json, --html)",
    )
    add_options(parser, "runs", Settings)
    single = parser.add_subparsers(
        dest="what",
        metavar="COMMAND",
        help=argparse.SUPPRESS,
        prog="pytest-upskill runs",
    )
    _add_show(single)
    _add_compare(single)


def run_runs(args: argparse.Namespace) -> tuple[str, int]:
    history = runs(runs_folder(args.runs_folder, Path.cwd()))
    look = stdout_look()
    if args.what == "show":
        return _show(args, history, look)
    if args.what == "compare":
        return _compare(args, history, look)
    if not history and not args.json:
        return _NONE, 1 if args.html else 0
    damaged: list[str] = []
    matches = _matching_runs(args, history, damaged)
    limit = args.limit or (None if args.json or args.html else _RUNS)
    listed = list(islice(matches, limit))
    kept_rows = [kept for rows in listed for kept in rows]
    written = _written(args, kept_rows)
    # If a file was asked for, writing none is a failure.
    status = 1 if args.html and not listed else 0
    if args.json:
        data = {
            "schema": 1,
            "rows": [row_data(kept) for kept in kept_rows],
            "damaged": damaged,
        }
        return json.dumps(data, indent=2), status
    lines = (
        written
        if written and not args.plot
        else [*written, *_run_lines(args, listed, look)]
    )
    if next(matches, None):
        lines += ["", f"There are older runs: show them with -n {2 * len(listed)}."]
    return (
        "\n".join([*lines, *(f"skipped, damaged: {line}" for line in damaged)]),
        status,
    )


def _matching_runs(
    args: argparse.Namespace, history: Sequence[KeptRun], damaged: list[str]
) -> Iterator[list[KeptRow]]:
    """The wanted rows of each run that has any, newest first;
    a run is read when it is reached.
    """
    for run in history:
        try:
            summary = run.head.summary
        except ResultsError as error:
            damaged.append(one_line(f"{error.where}: {error.problem}", 200))
            continue
        rows = [
            KeptRow(run, row)
            for row in summary
            if _is_wanted([row.skill], args.skill)
            and _is_wanted((row.label, row.model), args.model)
        ]
        if rows:
            yield rows


def _is_wanted(names: Sequence[str], patterns: Sequence[str] | None) -> bool:
    """By any of its names: an agent on a model is found by its label, or by its
    model.
    """
    pairs = [(name, pattern) for name in names for pattern in patterns or ()]
    return not patterns or any(
        name == pattern or fnmatchcase(name, pattern) for name, pattern in pairs
    )


def _written(args: argparse.Namespace, kept_rows: Sequence[KeptRow]) -> list[str]:
    """Write the requested files; return a line for each."""
    metric, size = metrics()[args.metric], counted(len(kept_rows), "line")
    lines = []
    if args.html and kept_rows:
        save_file(args.html, trend_page(kept_rows, metric))
        lines.append(f"{shown(args.html)}: {metric.title}, {size}")
    return lines


def _run_lines(
    args: argparse.Namespace, listed: Sequence[Sequence[KeptRow]], look: TerminalLook
) -> list[str]:
    if not listed:
        filtered = args.skill or args.model
        return [_NO_MATCH if filtered else "No kept run can be read."]
    now = datetime.now().astimezone()
    if args.plot:
        kept_rows = [kept for rows in listed for kept in rows]
        return plot_lines(kept_rows, metrics()[args.metric], look, now)
    folded = [rows[0].run.short for rows in listed if len(rows) > _MOST_ROWS]
    names = first_few(folded, _MOST_NAMES)
    note = f"Only the {_MOST_ROWS} lowest lifts of {names}: runs show ID has all rows."
    notes = wrapped(note, look.width, rest="  ") if folded else []
    shown_rows = [kept for rows in listed for kept in _lowest(rows)]
    return [*history_lines(shown_rows, look, now), *([""] if notes else []), *notes]


def _lowest(rows: Sequence[KeptRow]) -> list[KeptRow]:
    """The rows with the lowest lifts, in the given order; all of a run that has few."""

    def rank(number: int) -> tuple[bool, float]:
        lift = rows[number].row.lift
        return lift is None, lift or 0.0

    return [
        rows[number]
        for number in sorted(sorted(range(len(rows)), key=rank)[:_MOST_ROWS])
    ]


def _add_show(commands: Any) -> None:
    parser = add_command(
        commands,
        Command(
            "show",
            "look",
            "show a run: tables, verdicts, failed cases, gates, commit, versions",
            "pytest-upskill runs show last~1",
            f"0 success, {USAGE}",
        ),
    )
    parser.add_argument("id", metavar="ID", help=_ID_HELP)
    parser.add_argument(
        "--json", action="store_true", help="print the whole run as JSON"
    )
    # A --dir before the subcommand counts if there is none behind it.
    add_options(parser, "runs", Settings, missing=argparse.SUPPRESS)


def _show(
    args: argparse.Namespace, history: Sequence[KeptRun], look: TerminalLook
) -> tuple[str, int]:
    run = _run_of(args.id, history)
    results = read_run(run.path)
    if args.json:
        # Answers may contain terminal controls; ASCII escapes them.
        return json.dumps(json.loads(unpacked(run.path)), indent=1), 0
    return "\n".join(run_lines(run.id, results, look)), 0


def _run_of(text: str, history: Sequence[KeptRun]) -> KeptRun:
    """A run of the history, or a file anywhere, named as it was given."""
    try:
        return find(history, text)
    except ResultsError:
        if (path := Path(text)).is_file():
            return KeptRun(text, path, text)
        raise


def _add_compare(commands: Any) -> None:
    parser = add_command(
        commands,
        Command(
            "compare",
            "look",
            "show what changed from run A to run B, case by case",
            "pytest-upskill runs compare last~1 last --fail-if-worse",
            f"0 success, 1 by --fail-if-worse, {USAGE}",
        ),
    )
    parser.add_argument("before", metavar="A", help=_ID_HELP)
    parser.add_argument("after", metavar="B", help="the run to compare it with")
    parser.add_argument(
        "--fail-if-worse",
        action="store_true",
        help=(
            "exit with 1 if a skill is significantly worse on a model, or that can't be"
            " decided"
        ),
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="write run B as an HTML page with what changed, answers side by side",
    )
    # A --dir before the subcommand counts if there is none behind it.
    add_options(parser, "runs", Settings, missing=argparse.SUPPRESS)


def _compare(
    args: argparse.Namespace, history: Sequence[KeptRun], look: TerminalLook
) -> tuple[str, int]:
    both = [_run_of(text, history) for text in (args.before, args.after)]
    names = [run.id for run in both]
    before, after = (read_run(run.path) for run in both)
    comparison = compare_runs(before, after)
    reasons = comparison.reasons if args.fail_if_worse else []
    written = []
    if args.html:
        require_apart({"html": args.html}, [("an input", run.path) for run in both])
        earlier = Earlier(names[0], before, names[1])
        save_file(args.html, run_page(after, run_notes(after), earlier, view="changes"))
        written = ["", f"{shown(args.html)}: {names[1]} compared with {names[0]}"]
    if args.json:
        return _comparison_json(names, comparison), 1 if reasons else 0
    compared = list(zip([run.short for run in both], (before, after), strict=True))
    lines = [*comparison_lines(compared, comparison, look), *written]
    failed = [
        look.paint(f"Failed: {one_line(reason, 300)}.", red=True) for reason in reasons
    ]
    return "\n".join([*lines, *([""] if failed else []), *failed]), 1 if failed else 0


def _comparison_json(names: Sequence[str], comparison: RunComparison) -> str:
    data = {
        "schema": 1,
        "before": names[0],
        "after": names[1],
        **json_values(comparison),
    }
    return json.dumps(data, indent=2)


# Reports.


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s RUN ... [options]"
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help=f"results of pytest --skill-json, or kept runs: {_ID_HELP}",
    )
    groups = add_options(parser, "report", Settings, Gates)
    groups["reports"].add_argument(
        "-v", "--verbose", action="store_true", help="show all tables, rows and arms"
    )
    groups["gates"].description = "replace the gates of the runs"
    parser.add_argument(
        "--subset",
        action="store_true",
        help="accept that some cases are in none of the files",
    )


def run_report(args: argparse.Namespace) -> tuple[str, int]:
    gates = settings_of(option_values(args, UpskillConfig(), Gates)).gates
    files = [_saved_run(Path(text)) for text in args.runs]
    require_apart(report_paths(args), [("an input", file) for file in files])
    sources = [
        Source(shown(file), _with_gates(read_run(file), gates)) for file in files
    ]
    results, notes = merged(sources, subset=args.subset)
    notes = [*run_notes(results), *notes]
    problems = [f"upskill: {harmless(line)}" for line in results.problems]
    written, status = write_reports(args, results, notes, len(results.failed))
    look = stdout_look(int(args.verbose))
    lines = [*results_lines(results, look, notes), *written, *problems]
    return "\n".join(lines), status or int(bool(problems))


def _saved_run(path: Path) -> Path:
    """A file, or the one of a kept run."""
    if path.suffix or path.exists():
        return path
    return find(runs(runs_folder(None, Path.cwd())), str(path)).path


def _with_gates(results: RunResults, gates: Gates) -> RunResults:
    return replace(results, gates=gates, idle_gates=()) if gates.any() else results
