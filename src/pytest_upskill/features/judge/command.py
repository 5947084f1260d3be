"""``pytest-upskill judge``: how well a judge agrees with answers that people
labelled.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from ..._util.texts import one_line, percent
from ...checks.judging import Rulings, judge
from ...cli.command_table import add_options
from ...cli.output import tell
from ...errors import shown
from ...measure.engine_of_run import open_engine
from ...measure.open_run import open_run
from ...measure.requirements import require, require_sandbox
from ...options import whole
from ...reports.terminal.tables import text_table
from ...results.run_file import read_run
from ...settings import Settings
from ...trials.answer import Answer
from ...trials.trial import Question, Rubric, judge_task
from .agreement import (
    Agreement,
    JudgedShare,
    Labelled,
    compared,
    judged_shares,
    load_labels,
)


def add_judge_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="answers that people labelled, as JSON lines",
    )
    add_options(parser, "judge", Settings)
    parser.add_argument(
        "--votes",
        type=whole(1).parse,
        default=1,
        metavar="N",
        help="rulings per answer; the majority counts (default: 1)",
    )
    parser.add_argument(
        "--run",
        dest="run_file",
        type=Path,
        metavar="FILE",
        help=(
            "results (--skill-json) whose judged pass rates are corrected by the labels"
        ),
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_judge(args: argparse.Namespace) -> tuple[str, int]:
    examples, results = (
        load_labels(args.file),
        read_run(args.run_file) if args.run_file else None,
    )
    trouble: list[str] = []
    rulings, kept = _ask_judge(examples, args, trouble)
    result = compared(examples, rulings)
    shares = judged_shares(results.records, result) if results else []
    if args.json:
        data = {
            "model": args.judge,
            "votes": args.votes,
            **asdict(result),
            "trouble": trouble,
        }
        data |= {"run": [asdict(share) for share in shares]} if results else {}
        text = json.dumps(data, indent=2)
    else:
        of_run = [_run_text(shown(args.run_file), shares)] if results else []
        text = "\n".join([*trouble, _text(args.judge, args.votes, result), *of_run])
    return text, 0 if result.labels and kept else 1


def _ask_judge(
    examples: Sequence[Labelled], args: argparse.Namespace, trouble: list[str]
) -> tuple[list[Rulings], bool]:
    """The rulings, and whether their answers were stored."""
    settings = Settings(judge=args.judge, base_url=args.base_url, login=args.login)
    run = open_run(settings, names=())

    def say(line: str) -> None:
        tell(sys.stderr, f"{line}\n")

    require(run, (), say)
    require_sandbox(run, say)
    task = judge_task(run.settings, run.version_of)
    engine = open_engine(run, Path.cwd(), trouble.append, spell=args.spell)
    to_judge = [
        (
            Rubric(example.texts, args.votes, judge=args.judge, task=task),
            Question("", "", (("user", example.question),), 0),
            Answer(example.answer),
        )
        for example in examples
    ]
    try:
        rulings = judge(engine.ask, to_judge)
    finally:
        engine.close()
    return rulings, not engine.not_kept


def _run_text(name: str, shares: Sequence[JudgedShare]) -> str:
    rows = [
        (
            one_line(f"{share.skill} on {share.model}", 60),
            share.arm,
            share.cases,
            f"{share.passed:.0%}",
            _spanned(
                percent, share.corrected, share.corrected_low, share.corrected_high, "-"
            ),
        )
        for share in shares
    ]
    if not rows:
        return f"{name}: no criteria for a judge"
    return text_table((name, "arm", "cases", "judge passed", "corrected"), rows)


def _spanned(
    form: Callable[[float], str],
    value: float | None,
    low: float | None,
    high: float | None,
    unknown: str,
) -> str:
    if value is None:
        return unknown
    return form(value) + (
        "" if low is None or high is None else f" ({form(low)} to {form(high)})"
    )


def _text(name: str, votes: int, result: Agreement) -> str:
    agreed = result.agreement, result.agreement_low, result.agreement_high
    kappa = result.kappa, result.kappa_low, result.kappa_high
    alike = result.votes_agree, result.votes_agree_low, result.votes_agree_high
    of_votes = (
        [("votes all agree", _spanned(percent, *alike, "none judged"))]
        if votes > 1
        else []
    )
    rows = [
        ("labels", result.labels),
        ("agreement", _spanned(percent, *agreed, "none judged")),
        ("Cohen's kappa", _spanned("{:.2f}".format, *kappa, "not defined")),
        (
            "false passes",
            f"{result.false_passes} of {result.failed_by_people} that people failed",
        ),
        (
            "false fails",
            f"{result.false_fails} of {result.passed_by_people} that people passed",
        ),
        *of_votes,
        ("no ruling", len(result.no_ruling)),
    ]
    return "\n".join(
        [text_table((f"judge {name}", ""), rows), *result.differ, *result.no_ruling]
    )
