"""Steps of commands that ask models or report results: prices, progress, consent,
reports.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from ..errors import InputError, shown
from ..measure.estimate import Estimate
from ..models.prices import Price, parse_prices
from ..reports.markdown import markdown_summary
from ..reports.publish import write_benchmarks
from ..reports.terminal.progress_screen import ProgressScreen
from ..reports.writers import (
    Finished,
    report_paths,
    report_writers,
    write_all,
    written_line,
)
from ..results.run import RunResults
from .output import ask, painter, tell, terminal_width
from .project import ini_lines


def prices_here(args: argparse.Namespace) -> dict[str, Price]:
    """The prices of pytest's ini file."""
    file, lines = ini_lines(Path.cwd(), "skill_prices")
    args.origins["prices"] = f"{shown(file)}: skill_prices"
    return parse_prices(lines)


def user_model_here(args: argparse.Namespace) -> str | None:
    """The model that plays users, of pytest's ini file."""
    file, lines = ini_lines(Path.cwd(), "skill_user_model")
    args.origins["user_model"] = f"{shown(file)}: skill_user_model"
    return lines[0].strip() if lines else None


def progress_screen(stream: TextIO) -> ProgressScreen:
    return ProgressScreen(
        partial(tell, stream),
        width=terminal_width(),
        live=stream.isatty() and os.environ.get("TERM") != "dumb",
        paint=painter(stream, os.environ),
    )


@dataclass
class Consent:
    """Asks before spending, unless --yes is there or it is free."""

    yes: bool
    screen: ProgressScreen
    stream: TextIO
    agreed: bool = False

    def __call__(self, estimate: Estimate) -> bool:
        self.screen.text(f"This takes {estimate}.")
        if estimate.warning:
            self.screen.text(estimate.warning)
        self.agreed = estimate.is_free or self.yes or self._ask(estimate)
        return self.agreed

    def _ask(self, estimate: Estimate) -> bool:
        if not (sys.stdin.isatty() and self.stream.isatty()):
            raise InputError("not a terminal", f"add --yes to {estimate.spending}")
        return ask(self.stream, "Continue?")


def write_reports(
    args: argparse.Namespace, results: RunResults, notes: Sequence[str], failed: int = 0
) -> tuple[list[str], int]:
    """Write the reports that were asked for; return a line about them,
    and the exit status.
    """
    text = partial(markdown_summary, results, notes, failed)
    writers = [*report_writers(Finished(results, text, notes), report_paths(args))]
    if getattr(args, "benchmark_md", None):
        writers.append(("benchmark_md", partial(write_benchmarks, results, Path.cwd())))
    reports = write_all(writers)
    for error in reports.problems:
        tell(sys.stderr, f"pytest-upskill: {error.message(args.spell)}\n")
    return [written_line(reports.paths)] if reports.paths else [], (
        2 if reports.problems else 0
    )
