"""The commands that read runs: ``runs`` and ``report``.

``runs`` lists, shows and compares the kept runs of a project; ``report`` writes reports
of saved results, and merges several into one run.
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
from ..._util.texts import harmless, one_line
from ...errors import ResultsError, shown, spelling
from ...options import whole
from ...registry import Command
from ...reports.history_rows import row_data
from ...reports.page import run_page
from ...reports.terminal.closing_lines import answer_lines
from ...reports.terminal.layout import TerminalLook
from ...reports.terminal.run_lines import comparison_lines, run_lines
from ...reports.terminal.summary_text import results_lines
from ...reports.terminal.trend import history_lines
from ...reports.writers import report_paths, require_apart
from ...results.case_changes import Earlier
from ...results.history import KeptRow, KeptRun, find, runs
from ...results.merging import Source, merged
from ...results.run_comparison import compare_runs
from ...results.run_file import read_run, unpacked
from ...results.run_notes import run_notes
from ...settings import Gates, Settings, settings_of
from ...skills.upskill_config import UpskillConfig
from ..command_table import USAGE, add_command, add_options, option_values
from ..output import stdout_look
from ..project import runs_folder
from ..shared_steps import write_reports

_DEFAULT_RUNS: Final = 20
_MAX_ROWS: Final = 12  # of a run in the list
_NO_RUNS: Final = (
    "No runs yet. Make one: pytest --skill PATH --model NAME\n(looked for in"
    " .upskill/runs, here and in parent folders; --dir names another folder)"
)
_NO_MATCH: Final = "No run matches. pytest-upskill runs lists them all."
_ID_HELP: Final = (
    "the start or end of a run's id, or last, last~1, or a file of results"
)


def add_runs_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "pytest-upskill runs [options] [show ID | compare A B]"
    parser.description = (
        "List recent runs, newest first, with a line for each skill and model.\n"
        "runs show ID shows one run; runs compare A B shows what changed from A to B."
    )
    for flags in (("-s", "--skill"), ("-m", "--model")):
        text = f"only this {flags[1][2:]}: a name or a pattern (repeatable)"
        parser.add_argument(*flags, action="append", metavar="NAME", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "-n",
        "--limit",
        type=whole(1).parse,
        metavar="N",
        help=f"maximum number of runs (default: {_DEFAULT_RUNS}, or all with --json)",
    )
    add_options(parser, "runs", Settings)
    commands = parser.add_subparsers(
        dest="what",
        metavar="COMMAND",
        help=argparse.SUPPRESS,
        prog="pytest-upskill runs",
    )
    _add_show(commands)
    _add_compare(commands)


def run_runs(args: argparse.Namespace) -> tuple[str, int]:
    history = runs(runs_folder(args.runs_folder, Path.cwd()))
    look = stdout_look()
    if args.what == "show":
        return _show(args, history, look)
    if args.what == "compare":
        return _compare(args, history, look)
    return _list(args, history, look), 0


# The list.


def _list(
    args: argparse.Namespace, history: Sequence[KeptRun], look: TerminalLook
) -> str:
    damaged: list[str] = []
    matches = _matching_runs(args, history, damaged)
    limit = args.limit or (None if args.json else _DEFAULT_RUNS)
    listed = list(islice(matches, limit))
    if args.json:
        rows = [row_data(kept) for kept_rows in listed for kept in kept_rows]
        return json.dumps({"schema": 1, "rows": rows, "damaged": damaged}, indent=2)

    if not history:
        return _NO_RUNS
    lines = [_NO_MATCH if args.skill or args.model else "No kept run can be read."]
    if listed:
        shown_rows = [kept for kept_rows in listed for kept in _lowest(kept_rows)]
        lines = history_lines(shown_rows, look, datetime.now().astimezone())
    if any(len(kept_rows) > _MAX_ROWS for kept_rows in listed):
        lines += [
            "",
            f"Of each run the {_MAX_ROWS} lowest lifts; runs show ID has all.",
        ]
    if next(matches, None):
        lines += ["", f"There are older runs: show them with -n {2 * len(listed)}."]
    return "\n".join([*lines, *(f"skipped, damaged: {line}" for line in damaged)])


def _matching_runs(
    args: argparse.Namespace, history: Sequence[KeptRun], damaged: list[str]
) -> Iterator[list[KeptRow]]:
    """The wanted rows of each run that has any, newest first; a run is read when it is
    reached.
    """
    for run in history:
        try:
            summary = run.head.summary
        except ResultsError as error:
            damaged.append(one_line(f"{error.where}: {error.problem}", 200))
            continue

        rows = []
        for row in summary:
            # An agent on a model is found by its label, or by its model.
            models = (row.label, row.model)
            if _matches([row.skill], args.skill) and _matches(models, args.model):
                rows.append(KeptRow(run, row))
        if rows:
            yield rows


def _matches(names: Sequence[str], patterns: Sequence[str] | None) -> bool:
    if not patterns:
        return True
    for pattern in patterns:
        if any(name == pattern or fnmatchcase(name, pattern) for name in names):
            return True
    return False


def _lowest(rows: Sequence[KeptRow]) -> list[KeptRow]:
    """The rows with the lowest lifts, in the given order; all of a run that has few."""

    def lift_of(number: int) -> float:
        lift = rows[number].row.lift
        return 2.0 if lift is None else lift

    lowest = sorted(range(len(rows)), key=lift_of)[:_MAX_ROWS]
    return [rows[number] for number in sorted(lowest)]


# One run, and two.


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
    run = _find_run(args.id, history)
    results = read_run(run.path)
    if args.json:
        # Answers may contain terminal controls; ASCII escapes them.
        return json.dumps(json.loads(unpacked(run.path)), indent=1), 0
    return "\n".join(run_lines(run.id, results, look)), 0


def _find_run(text: str, history: Sequence[KeptRun]) -> KeptRun:
    """A run of the history, or a file anywhere, named as it was given."""
    try:
        return find(history, text)
    except ResultsError:
        path = Path(text)
        if path.is_file():
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
        help="write run B as an HTML page with what changed, answers side by side",
    )
    parser.set_defaults(spell=spelling({"html": "--html"}))
    # A --dir before the subcommand counts if there is none behind it.
    add_options(parser, "runs", Settings, missing=argparse.SUPPRESS)


def _compare(
    args: argparse.Namespace, history: Sequence[KeptRun], look: TerminalLook
) -> tuple[str, int]:
    kept_before = _find_run(args.before, history)
    kept_after = _find_run(args.after, history)
    before = read_run(kept_before.path)
    after = read_run(kept_after.path)
    comparison = compare_runs(before, after)
    reasons = comparison.reasons if args.fail_if_worse else []
    status = 1 if reasons else 0

    if args.html:
        inputs = [("an input", run.path) for run in (kept_before, kept_after)]
        require_apart({"html": args.html}, inputs)
        earlier = Earlier(kept_before.id, before)
        save_file(args.html, run_page(after, run_notes(after), earlier, view="changes"))
    if args.json:
        data = {"schema": 1, "before": kept_before.id, "after": kept_after.id}
        return json.dumps({**data, **json_values(comparison)}, indent=2), status

    both = [(kept_before.short, before), (kept_after.short, after)]
    lines = comparison_lines(both, comparison, look)
    if args.html:
        lines += ["", f"{shown(args.html)}: {kept_after.id} since {kept_before.id}"]
    if reasons:
        lines.append("")
    for reason in reasons:
        lines.append(look.paint(f"Failed: {one_line(reason, 300)}.", red=True))
    return "\n".join(lines), status


# Reports.


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [RUN ...] [options]"
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        default=["last"],
        help=(
            f"results of pytest --skill-json, or kept runs: {_ID_HELP} (default: last)"
        ),
    )
    groups = add_options(parser, "report", Settings, Gates)
    groups["reports"].add_argument(
        "-v", "--verbose", action="store_true", help="show all tables and rows"
    )
    groups["gates"].description = "replace the gates of the runs"
    parser.add_argument(
        "--subset",
        action="store_true",
        help="accept that some cases are in none of the files",
    )


def run_report(args: argparse.Namespace) -> tuple[str, int]:
    gates = settings_of(option_values(args, UpskillConfig(), Gates)).gates
    files = [_find_file(Path(text)) for text in args.runs]
    require_apart(report_paths(args), [("an input", file) for file in files])
    sources = []
    for file in files:
        results = read_run(file)
        if gates.any():
            results = replace(results, gates=gates, idle_gates=())
        sources.append(Source(shown(file), results))

    results, notes = merged(sources, subset=args.subset)
    notes = [*run_notes(results), *notes]
    problems = [f"upskill: {harmless(line)}" for line in results.problems]
    written, status = write_reports(args, results, notes, len(results.failed))
    look = stdout_look(int(args.verbose))
    lines = results_lines(results, look, notes)
    if answers := answer_lines(results, look):
        lines += ["", *answers]
    lines += [*written, *problems]
    return "\n".join(lines), status or int(bool(problems))


def _find_file(path: Path) -> Path:
    """A file, or the one of a kept run."""
    if path.suffix or path.exists():
        return path
    return find(runs(runs_folder(None, Path.cwd())), str(path)).path
