"""``pytest-upskill eval``: run pytest with the flags of upskill."""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ..._util.credentials import shown_command
from ...options import PYTEST, options_of
from ...settings import Settings
from ...skills.upskill_config import read_config
from ..command_options import add_options, add_skill, option_values
from ..ini_file import require_ini_outside
from ..output import forget_output, write
from ..project import find_skill
from ..upskill_flags import FLAGS_OF_EVAL, add_flags, refuse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_shared_arguments(parser, "eval")
    parser.add_argument("--log-runs", action="store_true", help=argparse.SUPPRESS)


def add_shared_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """The arguments that eval and benchmark share."""
    model = "[-m NAME]" if command == "eval" else "-m NAME"
    parser.usage = f"%(prog)s SKILL {model} ... [-- PYTEST ARGS]"
    add_skill(parser)
    groups = add_options(parser, command, Settings)
    groups["output"].add_argument(
        "-v", "--verbose", action="store_true", help="print a line for every case"
    )
    add_flags(parser, FLAGS_OF_EVAL)


def run(given: argparse.Namespace) -> tuple[str, int]:
    return "", run_pytest(pytest_arguments(given, os.environ))


def pytest_arguments(given: argparse.Namespace, env: Mapping[str, str]) -> list[str]:
    """The same as arguments of pytest."""
    refuse(given, FLAGS_OF_EVAL)
    here = Path.cwd()
    config = read_config(here, env)
    skill = find_skill(given.skill, env)
    if "--skill-allow-code" not in given.for_pytest:
        require_ini_outside(here, skill)
    # With a space pytest would take its settings from the skill's folder, and run what they name.
    words = [f"--skill={skill.relative_to(here) if skill.is_relative_to(here) else skill}"]
    options, values = options_of(PYTEST, Settings), option_values(given, config, Settings)
    for setting, value in values.items():
        if getattr(given, setting) is not None or value != options[setting].default:
            words += options[setting].words(value)
    words += ["-v"] if given.verbose else []
    return [*words, *given.for_pytest]


def run_pytest(arguments: list[str]) -> int:
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
