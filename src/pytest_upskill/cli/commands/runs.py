"""The commands that read runs: ``runs`` and ``report``.

``runs`` lists, plots, shows and compares the kept runs of a project; ``report`` writes reports of
saved results, and merges several into one run.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ..._util.files import save_file
from ..._util.texts import counted, harmless, one_line
from ...errors import ResultsError, shown
from ...options import whole
from ...reports.history_entries import Entry, entry_data, history_csv
from ...reports.html import html_report
from ...reports.html.trend_page import trend_page
from ...reports.numbers import metrics
from ...reports.terminal.layout import TerminalLook
from ...reports.terminal.run_lines import comparison_lines, run_lines
from ...reports.terminal.summary_text import results_lines
from ...reports.terminal.trend import history_lines, plot_lines
from ...reports.writers import report_paths, require_apart
from ...results.history import KeptRun, find, runs, short_ids
from ...results.merging import Source, merged
from ...results.run import RunResults
from ...results.run_comparison import Earlier, RunComparison, compare_runs
from ...results.run_file import read_run, unpacked
from ...results.run_notes import run_notes
from ...settings import Gates, Settings, settings_of
from ...skills.upskill_config import UpskillConfig
from ..command_table import USAGE, Subcommand, add_command, add_options, option_values
from ..output import stdout_look
from ..project import runs_folder
from ..shared_steps import write_reports

_ROWS: Final = 20
_NONE: Final = (
    "No runs yet. Make one: pytest --skill PATH --model NAME\n"
    "(looked for in .upskill/runs, here and in parent folders; --dir names another folder)"
)
_ID_HELP: Final = "the start or end of a run's id, or last, last~1, or a file of results"
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
    parser.add_argument("--plot", action="store_true", help="plot the trend in the terminal")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the trend as an HTML page")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a CSV file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "-n",
        "--limit",
        type=whole(1).parse,
        metavar="N",
        help=f"maximum number of lines (default: {_ROWS}, or all with --json, --html, --csv)",
    )
    add_options(parser, "runs", Settings)
    single = parser.add_subparsers(
        dest="what", metavar="COMMAND", help=argparse.SUPPRESS, prog="pytest-upskill runs"
    )
    _add_show(single)
    _add_compare(single)


def run_runs(args: argparse.Namespace) -> tuple[str, int]:
    require_apart({"html": args.html, "csv": args.csv})
    history = runs(runs_folder(args.runs_folder, Path.cwd()))
    look = stdout_look()
    if args.what == "show":
        return _show(args, history, look)
    if args.what == "compare":
        return _compare(args, history, look)
    if not history and not args.json:
        return _NONE, 1 if args.html or args.csv else 0
    damaged: list[str] = []
    matches = _entries(args, history, damaged)
    limit = args.limit or (None if args.json or args.html or args.csv else _ROWS)
    entries = list(islice(matches, limit))
    written = _written(args, entries)
    # If a file was asked for, writing none is a failure.
    status = 1 if (args.html or args.csv) and not entries else 0
    if args.json:
        data = {"schema": 1, "rows": [entry_data(entry) for entry in entries], "damaged": damaged}
        return json.dumps(data, indent=2), status
    lines = written if written and not args.plot else [*written, *_entry_lines(args, entries, look)]
    if next(matches, None):
        lines += ["", f"There are older runs: show them with -n {2 * len(entries)}."]
    return "\n".join([*lines, *(f"skipped, damaged: {line}" for line in damaged)]), status


def _entries(
    args: argparse.Namespace, history: Sequence[KeptRun], damaged: list[str]
) -> Iterator[Entry]:
    """Newest first; each run is read when it is reached."""
    short = short_ids(history)
    for kept_run in history:
        try:
            head = kept_run.head
        except ResultsError as error:
            damaged.append(one_line(f"{error.where}: {error.problem}", 200))
            continue
        for row in head.summary:
            names = (row.label, row.model)
            if _is_wanted([row.skill], args.skill) and _is_wanted(names, args.model):
                yield Entry(kept_run.id, short[kept_run.id], head.started, head.commit, row)


def _is_wanted(names: Sequence[str], patterns: Sequence[str] | None) -> bool:
    """By any of its names: an agent on a model is found by its label, or by its model."""
    pairs = [(name, pattern) for name in names for pattern in patterns or ()]
    return not patterns or any(
        name == pattern or fnmatchcase(name, pattern) for name, pattern in pairs
    )


def _written(args: argparse.Namespace, entries: Sequence[Entry]) -> list[str]:
    """Write the requested files; return a line for each."""
    metric, size = metrics()[args.metric], counted(len(entries), "line")
    lines = []
    if args.html and entries:
        save_file(args.html, trend_page(entries, metric))
        lines.append(f"{shown(args.html)}: {metric.title}, {size}")
    if args.csv and entries:
        save_file(args.csv, history_csv(entries, metric))
        lines.append(f"{shown(args.csv)}: {size}")
    return lines


def _entry_lines(
    args: argparse.Namespace, entries: Sequence[Entry], look: TerminalLook
) -> list[str]:
    if not entries:
        filtered = args.skill or args.model
        return [_NO_MATCH if filtered else "No kept run can be read."]
    now = datetime.now().astimezone()
    if args.plot:
        return plot_lines(entries, metrics()[args.metric], look, now)
    return history_lines(entries, look, now)


def _add_show(commands: Any) -> None:
    parser = add_command(
        commands,
        Subcommand(
            "show",
            "look",
            "show a run: tables, verdicts, failed cases, gates, commit, versions",
            "pytest-upskill runs show last~1",
            f"0 success, {USAGE}",
        ),
    )
    parser.add_argument("id", metavar="ID", help=_ID_HELP)
    parser.add_argument("--json", action="store_true", help="print the whole run as JSON")
    # A --dir before the subcommand counts if there is none behind it.
    add_options(parser, "runs", Settings, missing=argparse.SUPPRESS)


def _show(
    args: argparse.Namespace, history: Sequence[KeptRun], look: TerminalLook
) -> tuple[str, int]:
    name, file = _file_of(args.id, history)
    results = read_run(file)
    if args.json:
        # Answers may contain terminal controls; ASCII escapes them.
        return json.dumps(json.loads(unpacked(file)), indent=1), 0
    return "\n".join(run_lines(name, results, look)), 0


def _file_of(text: str, history: Sequence[KeptRun]) -> tuple[str, Path]:
    """The name and file of a run, in the history or anywhere."""
    path = Path(text)
    try:
        run = find(history, text)
    except ResultsError:
        if path.is_file():
            return path.name, path
        raise
    return run.id, run.path


def _add_compare(commands: Any) -> None:
    parser = add_command(
        commands,
        Subcommand(
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
        help="exit with 1 if a skill is significantly worse on a model, or that can't be decided",
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
    names, files = zip(
        *(_file_of(text, history) for text in (args.before, args.after)), strict=True
    )
    before, after = (read_run(file) for file in files)
    comparison = compare_runs(before, after)
    reasons = comparison.reasons if args.fail_if_worse else []
    written = []
    if args.html:
        require_apart({"html": args.html}, [("an input", file) for file in files])
        save_file(args.html, html_report(after, run_notes(after), Earlier(names[0], before)))
        written = ["", f"{shown(args.html)}: {names[1]} compared with {names[0]}"]
    if args.json:
        return _comparison_json(names, comparison), 1 if reasons else 0
    compared = list(zip(names, (before, after), strict=True))
    lines = [*comparison_lines(compared, comparison, look), *written]
    failed = [look.paint(f"Failed: {one_line(reason, 300)}.", red=True) for reason in reasons]
    return "\n".join([*lines, *([""] if failed else []), *failed]), 1 if failed else 0


def _comparison_json(names: Sequence[str], comparison: RunComparison) -> str:
    pairs = [
        {
            **asdict(pair),
            "change": pair.change
            and {
                "points": pair.change.lift.lift,
                "low": pair.change.lift.low,
                "high": pair.change.lift.high,
                "p_value": pair.change.lift.p_value,
                "verdict": pair.change.word,
                "worse": pair.change.versions and pair.change.versions.worse_cases,
                "better": pair.change.versions and pair.change.versions.better_cases,
                "score": pair.change.score,
            },
            "tokens": pair.change and pair.change.tokens and pair.change.tokens._asdict(),
        }
        for pair in comparison.pairs
    ]
    data = {
        "schema": 1,
        "before": names[0],
        "after": names[1],
        "pairs": pairs,
        "only_before": [(pair.skill, pair.subject.label) for pair in comparison.only_before],
        "only_after": [(pair.skill, pair.subject.label) for pair in comparison.only_after],
        "differences": comparison.differences,
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
        "--subset", action="store_true", help="accept that some cases are in none of the files"
    )


def run_report(args: argparse.Namespace) -> tuple[str, int]:
    gates = settings_of(option_values(args, UpskillConfig(), Gates)).gates
    files = [_saved_run(Path(text)) for text in args.runs]
    require_apart(report_paths(args), [("an input", file) for file in files])
    sources = [Source(shown(file), _with_gates(read_run(file), gates)) for file in files]
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
