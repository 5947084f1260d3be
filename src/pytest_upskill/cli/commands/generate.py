"""``pytest-upskill generate``: write a skill and its cases from a task, a trace or a skill."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from ...errors import shown
from ...skills.folder import SKILL_NAMES
from ...teach.outcome import Taught
from ...teach.teach_run import TeachContext
from ...teach.workflow import write_skill
from ..ending import Clock, ending_lines
from ..output import ask
from ..teaching import (
    Shown,
    add_teach_arguments,
    config_here,
    run_shown,
    shown_teaching,
    teach_settings,
)
from ..upskill_flags import FLAGS_OF_GENERATE, add_flags, refuse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    groups = add_teach_arguments(parser, "generate")
    groups["runs and attempts"].add_argument(
        "--no-eval", action="store_true", help="write a draft and cases, and measure nothing"
    )
    # upskill's: all that was asked is kept anyway.
    parser.add_argument("--runs-dir", help=argparse.SUPPRESS)
    parser.add_argument("--log-runs", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-log-runs", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--trace", dest="source", type=Path, help=argparse.SUPPRESS)  # of 0.1
    add_flags(parser, FLAGS_OF_GENERATE)


def run(given: argparse.Namespace) -> tuple[str, int]:
    refuse(given, FLAGS_OF_GENERATE)
    config = config_here()
    unmeasured = {"students": ()} if given.no_eval else {}
    settings = teach_settings(given, given.task, config, **unmeasured)
    clock = Clock()

    def generate(context: TeachContext) -> Taught:
        return write_skill(settings, replace(context, agree=clock.after(context.agree)))

    def show(taught: Taught, width: int) -> Shown:
        whole = shown_teaching(taught, width)
        seconds = clock.seconds
        lines = [*whole.lines, *ending_lines(taught, settings, seconds, width)]
        return Shown(lines, {**whole.data, "seconds": round(seconds, 1)}, whole.status)

    return run_shown(
        given,
        generate,
        show,
        skills=config.skills_dir,
        in_place=_may_change(given),
    )


def _may_change(given: argparse.Namespace) -> bool:
    """Whether a skill may be improved in place; asked for on a terminal."""
    if given.force or given.yes:
        return True
    source: Path | None = given.source
    is_skill = source is not None and (source.is_dir() or source.name in SKILL_NAMES)
    if not source or not is_skill or given.output or given.name or not sys.stdin.isatty():
        return False
    return ask(sys.stderr, f"Improve {shown(source)} in place? The old version is kept.")
