"""What the commands of teach/ share: their arguments, the consent, the screen, the result."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO, TypeVar

from .._util.texts import dollars
from ..errors import InputError, TeachError, shown
from ..measure.estimate import Estimate
from ..models.prices import parse_prices
from ..settings import Settings
from ..skills.upskill_config import UpskillConfig, read_config
from ..teach.outcome import Taught, report_lines, taught_data
from ..teach.progress_lines import ProgressScreen
from ..teach.teach_run import AlreadyFinished, Declined, TeachContext
from ..teach.teach_settings import TeachCommand, TeachSettings
from .command_options import Groups, add_options, add_skill, option_values
from .ini_file import ini_lines
from .output import ask, painter, tell, write

Result = TypeVar("Result")

_HOW_TO_CONTINUE: Final = (
    "Nothing was saved. Run it again with --resume to continue; nothing is asked twice."
)
_DEFAULT_WIDTH: Final = 80


def add_teach_arguments(parser: argparse.ArgumentParser, command: TeachCommand) -> Groups:
    """Add the arguments of a command that teaches; return their groups."""
    parser.usage = f"%(prog)s {'TASK' if command == 'generate' else 'SKILL'} [options]"
    if command == "generate":
        parser.add_argument("task", metavar="TASK", help="what the skill is for, in words")
    else:
        add_skill(parser)
    if command in ("cases", "refine", "distill"):
        parser.add_argument(
            "--task", metavar="TEXT", help="what the skill is for (default: its description)"
        )
    groups = add_options(parser, command, TeachSettings, Settings)
    groups["output"].add_argument("-y", "--yes", action="store_true", help="spend without asking")
    groups["output"].add_argument("--json", action="store_true", help="print the result as JSON")
    if command in ("generate", "cases", "refine"):
        # The first is upskill's name for it; refine writes no cases, and takes both all the same.
        hidden = ["--test-gen-model"] + (["--test-model"] if command == "refine" else [])
        parser.add_argument(*hidden, dest="author", help=argparse.SUPPRESS)
    return groups


def teach_settings(
    args: argparse.Namespace, task: str, config: UpskillConfig, **changes: Any
) -> TeachSettings:
    values = option_values(args, config, TeachSettings)
    return TeachSettings(task, **{**values, **changes})


class Shown(NamedTuple):
    """The end of a command: what it prints, its JSON and its exit status."""

    lines: Sequence[str]
    data: Mapping[str, Any]
    status: int


def run_teaching(
    given: argparse.Namespace, run: Callable[[TeachContext], Taught], **context: Any
) -> tuple[str, int]:
    """Run a command that makes a skill or cases."""
    return run_shown(given, run, shown_teaching, **context)


def shown_teaching(taught: Taught, width: int) -> Shown:
    report = report_lines(taught, width)
    lines = [*([""] if report else []), *report, *result_lines(taught)]
    return Shown(lines, taught_data(taught), status_of(taught))


def run_shown(
    given: argparse.Namespace,
    run: Callable[[TeachContext], Result],
    show: Callable[[Result, int], Shown],
    **context: Any,
) -> tuple[str, int]:
    """Run a command, show its steps and print its result, made for a width by ``show``."""
    stream = sys.stderr if given.json else sys.stdout
    width = shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns
    live = stream.isatty() and os.environ.get("TERM") != "dumb"

    screen = ProgressScreen(
        partial(tell, stream), width=width, live=live, paint=painter(stream, os.environ)
    )
    consent = Consent(given.yes, screen, stream)
    ini_file, prices = ini_lines(Path.cwd(), "skill_prices")
    given.origins["prices"] = f"{shown(ini_file)}: skill_prices"
    try:
        result = run(
            TeachContext(
                screen=screen,
                agree=consent,
                only_unfinished=True,
                prices=parse_prices(prices),
                spell=given.spell,
                **context,
            )
        )
    except AlreadyFinished as finished:
        screen.line(f"Already finished: saved in {shown(finished.folder)}")
        if given.json:
            write(json.dumps({"schema": 1, "folder": str(finished.folder), "finished": True}))
        return "", 0
    except Declined:
        screen.line("Nothing was asked.")
        return "", 1
    except KeyboardInterrupt:
        screen.drop()
        if not consent.given:
            raise
        raise KeyboardInterrupt(_HOW_TO_CONTINUE) from None
    except TeachError as error:
        raise TeachError(f"{error.message(given.spell)}\n{_HOW_TO_CONTINUE}") from None
    shown_result = show(result, width)
    for line in shown_result.lines:
        screen.line(line)
    if given.json:
        write(json.dumps(shown_result.data, indent=2))
    return "", shown_result.status


@dataclass
class Consent:
    """Asks before spending, unless --yes was given or it is free."""

    yes: bool
    screen: ProgressScreen
    stream: TextIO
    given: bool = False

    def __call__(self, guess: Estimate) -> bool:
        self.screen.line(f"This takes {guess}.")
        if guess.warning:
            self.screen.line(guess.warning)
        self.given = guess.free or self.yes or self._ask(guess)
        return self.given

    def _ask(self, guess: Estimate) -> bool:
        if not (sys.stdin.isatty() and self.stream.isatty()):
            raise InputError("not a terminal", f"add --yes to {guess.spending}")
        return ask(self.stream, "Continue?")


def result_lines(taught: Taught) -> list[str]:
    cost = f"   (cost {dollars(taught.cost)})" if taught.cost else ""
    lines = [f"The previous skill is kept in {shown(taught.kept)}"] if taught.kept else []
    if taught.unsaved:
        lines += f"{taught.unsaved}{cost}".splitlines()
    elif taught.folder:
        path = shown(taught.folder.absolute())
        lines.append(f"Saved to {path if path.startswith('/') else f'./{path}'}{cost}")
    else:
        lines.append(f"The skill is unchanged.{cost}")
    return lines


def status_of(taught: Taught) -> int:
    """1 if the skill helps no student, could not be saved, or the budget ended before measuring."""
    if taught.unsaved:
        return 1
    if not taught.learning:
        return 1 if taught.best.problem else 0
    return 0 if taught.helps else 1


def config_here() -> UpskillConfig:
    return read_config(Path.cwd(), os.environ)
