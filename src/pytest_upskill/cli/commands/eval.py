"""``pytest-upskill eval`` and ``benchmark``: upskill's commands, which run pytest."""

import argparse
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ..._util.keys import shown_command
from ...options import PYTEST, options_of
from ...settings import Settings
from ...skills.upskill_config import read_config
from ..command_table import add_options, add_skill, option_values
from ..output import forget_output, write
from ..project import find_skill, require_ini_outside


def _add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    model = "[-m NAME]" if command == "eval" else "-m NAME"
    parser.usage = f"%(prog)s SKILL {model} ... [-- PYTEST ARGS]"
    add_skill(parser)
    groups = add_options(parser, command, Settings)
    groups["reports"].add_argument(
        "-v", "--verbose", action="store_true", help="print a line for every case"
    )


add_eval_arguments = partial(_add_arguments, command="eval")
add_benchmark_arguments = partial(_add_arguments, command="benchmark")


def run_eval(args: argparse.Namespace) -> tuple[str, int]:
    return "", _run_pytest(pytest_arguments(args, os.environ))


run_benchmark = run_eval


def pytest_arguments(args: argparse.Namespace, env: Mapping[str, str]) -> list[str]:
    """The same as arguments of pytest."""
    here = Path.cwd()
    config = read_config(here, env)
    skill = find_skill(args.skill, env)
    if "--skill-allow-code" not in args.for_pytest:
        require_ini_outside(here, skill)
    # With a space pytest would take its settings from the skill's folder,
    # and run what they name.
    words = [
        f"--skill={skill.relative_to(here) if skill.is_relative_to(here) else skill}"
    ]
    options, values = (
        options_of(PYTEST, Settings),
        option_values(args, config, Settings),
    )
    for setting, value in values.items():
        if getattr(args, setting) is not None or value != options[setting].default:
            words += options[setting].words(value)
    words += ["-v"] if args.verbose else []
    # upskill knows no triggers; another -m after this one takes its place.
    return [*words, "-m", "not trigger", *args.for_pytest]


def _run_pytest(arguments: list[str]) -> int:
    """Print the command first, so that users of upskill learn it, and run it."""
    write(shown_command(["pytest", *arguments]))
    import pytest  # takes a quarter of a second

    try:
        status = int(pytest.main(arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # as pytest itself does
        forget_output()
        status = int(pytest.ExitCode.TESTS_FAILED)
    return status
