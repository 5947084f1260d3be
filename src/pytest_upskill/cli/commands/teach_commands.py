"""The commands that teach an existing skill, and what they share with ``generate``."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..._util.json_forms import json_values
from ...errors import InputError, Spell, TeachError, shown
from ...settings import Settings
from ...skills.folder import skill_file
from ...skills.suites.reading import read_suites
from ...skills.upskill_config import UpskillConfig
from ...teach.outcome import Taught, report_lines
from ...teach.teach_run import Declined, TeachContext
from ...teach.teach_settings import TeachCommand, TeachSettings
from ...teach.workflow import add_cases, refine_skill
from ..command_table import Groups, add_options, add_skill, option_values
from ..output import terminal_width, write
from ..project import config_here, find_skill
from ..shared_steps import Consent, prices_here, progress_screen

_HOW_TO_CONTINUE: Final = (
    "Nothing was saved. Run the same command again to continue; nothing is asked twice."
)


def add_teach_arguments(
    parser: argparse.ArgumentParser, command: TeachCommand
) -> Groups:
    """Add the arguments of a command that teaches; return their groups."""
    parser.usage = f"%(prog)s {'TASK' if command == 'generate' else 'SKILL'} [options]"
    if command == "generate":
        parser.add_argument(
            "task",
            nargs="?",
            metavar="TASK",
            help="what the skill is for, or what to change in it, in words",
        )
    else:
        add_skill(parser)
    if command in ("cases", "refine"):
        parser.add_argument(
            "--task",
            metavar="TEXT",
            help="what the skill is for (default: its description)",
        )
    groups = add_options(parser, command, TeachSettings, Settings)
    output = groups.get("output") or parser.add_argument_group("output")
    output.add_argument("-y", "--yes", action="store_true", help="spend without asking")
    output.add_argument("--json", action="store_true", help="print the result as JSON")
    return groups


add_refine_arguments = partial(add_teach_arguments, command="refine")


def teach_settings(
    args: argparse.Namespace, config: UpskillConfig, **changes: Any
) -> TeachSettings:
    values = {**option_values(args, config, TeachSettings), **changes}
    return TeachSettings(getattr(args, "task", None) or "", **values)


def run_teaching(
    args: argparse.Namespace,
    teach: Callable[[TeachContext], Taught],
    ending: Callable[[Taught, int], Iterable[str]] = lambda _taught, _width: (),
    **context: Any,
) -> tuple[str, int]:
    """Teach, show the steps and the result, and what ``ending`` says for a width."""
    stream = sys.stderr if args.json else sys.stdout
    screen = progress_screen(stream)
    consent = Consent(args.yes, screen, stream)
    prices = prices_here(args)
    try:
        taught = teach(
            TeachContext(
                screen=screen,
                agree=consent,
                prices=prices,
                spell=args.spell,
                **context,
            )
        )
    except Declined:
        screen.line("Nothing was asked.")
        return "", 1
    except KeyboardInterrupt:
        screen.drop()
        if not consent.agreed:
            raise
        raise KeyboardInterrupt(_HOW_TO_CONTINUE) from None
    except TeachError as error:
        raise TeachError(f"{error.message(args.spell)}\n{_HOW_TO_CONTINUE}") from None
    width = terminal_width()
    for line in (*report_lines(taught, width), *ending(taught, width)):
        screen.line(line)
    if args.json:
        write(json.dumps(json_values(taught), indent=2))
    return "", taught.status


def run_on_skill(
    args: argparse.Namespace,
    teach: Callable[[Path, TeachSettings, TeachContext], Taught],
    **changes: Any,
) -> tuple[str, int]:
    path = find_skill(args.skill, os.environ)
    settings = teach_settings(args, config_here(), **changes)
    return run_teaching(args, lambda context: teach(path, settings, context))


def run_refine(args: argparse.Namespace) -> tuple[str, int]:
    return run_on_skill(args, refine_skill)


def add_cases_arguments(parser: argparse.ArgumentParser) -> None:
    groups = add_teach_arguments(parser, "cases")
    groups["runs and attempts"].add_argument(
        "--add", type=int, metavar="N", help="add N cases to those of the skill"
    )


def run_cases(args: argparse.Namespace) -> tuple[str, int]:
    suite = read_suites(skill_file(find_skill(args.skill, os.environ)).parent).cases
    if suite and suite.has_cases and args.add is None:
        problem = "this skill has cases already"
        raise InputError(shown(suite.path), problem, "Add more with --add N.")
    if args.add is not None:
        args.cases, args.spell = args.add, _with_add(args.spell)
    # Cases can be written without students, whatever is configured.
    return run_on_skill(args, add_cases, students=tuple(args.students or ()))


def _with_add(spell: Spell) -> Spell:
    """Errors about the number of cases name --add."""
    return lambda setting: "--add" if setting == "cases" else spell(setting)
