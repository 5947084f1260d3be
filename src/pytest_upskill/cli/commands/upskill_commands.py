"""Commands of upskill that run pytest, and what to use instead of flags that are not supported."""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..._util.credentials import shown_command
from ...errors import InputError
from ...options import PYTEST, options_of
from ...settings import Settings
from ...skills.upskill_config import read_config
from ..command_options import add_options, add_skill, option_values
from ..ini_file import require_ini_outside
from ..output import forget_output, write
from ..project import find_skill

_JOBS: Final = "Runs are local; with -- -n 4, pytest-xdist grades answers in four processes."
_PROVIDER: Final = "Put it into the model's name: {option} openai:ID, {option} ollama:NAME."

_JOB_SWITCHES: Final = ("--wait", "--no-wait")
_JOB_FLAGS: Final = (
    *("--executor", "--artifact-repo", "--jobs-timeout", "--jobs-flavor", "--jobs-secrets"),
    *("--jobs-namespace", *_JOB_SWITCHES),
)
FLAGS_OF_EVAL: Final = {
    "--test-gen-model": "Write cases first: pytest-upskill cases SKILL.",
    "--provider": _PROVIDER.format(option="-m"),
    **dict.fromkeys(_JOB_FLAGS, _JOBS),
}
FLAGS_OF_GENERATE: Final = {
    "--eval-provider": _PROVIDER.format(option="--eval-model"),
    "--max-parallel": "Fewer calls are made at once while a server is busy.",
    **dict.fromkeys(_JOB_FLAGS, _JOBS),
}


def add_eval_arguments(parser: argparse.ArgumentParser) -> None:
    _add_arguments(parser, "eval")
    parser.add_argument("--log-runs", action="store_true", help=argparse.SUPPRESS)


def add_benchmark_arguments(parser: argparse.ArgumentParser) -> None:
    _add_arguments(parser, "benchmark")


def _add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    model = "[-m NAME]" if command == "eval" else "-m NAME"
    parser.usage = f"%(prog)s SKILL {model} ... [-- PYTEST ARGS]"
    add_skill(parser)
    groups = add_options(parser, command, Settings)
    groups["output"].add_argument(
        "-v", "--verbose", action="store_true", help="print a line for every case"
    )
    add_refused_flags(parser, FLAGS_OF_EVAL)


def run_eval(args: argparse.Namespace) -> tuple[str, int]:
    return "", _run_pytest(pytest_arguments(args, os.environ))


run_benchmark = run_eval


def pytest_arguments(args: argparse.Namespace, env: Mapping[str, str]) -> list[str]:
    """The same as arguments of pytest."""
    refuse(args, FLAGS_OF_EVAL)
    here = Path.cwd()
    config = read_config(here, env)
    skill = find_skill(args.skill, env)
    if "--skill-allow-code" not in args.for_pytest:
        require_ini_outside(here, skill)
    # With a space pytest would take its settings from the skill's folder, and run what they name.
    words = [f"--skill={skill.relative_to(here) if skill.is_relative_to(here) else skill}"]
    options, values = options_of(PYTEST, Settings), option_values(args, config, Settings)
    for setting, value in values.items():
        if getattr(args, setting) is not None or value != options[setting].default:
            words += options[setting].words(value)
    words += ["-v"] if args.verbose else []
    return [*words, *args.for_pytest]


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


def add_refused_flags(parser: argparse.ArgumentParser, flags: dict[str, str]) -> None:
    """Let the parser know them, so that ``refuse`` can say what to use instead."""
    for flag in flags:
        if flag in _JOB_SWITCHES:
            parser.add_argument(flag, action="store_const", const="", help=argparse.SUPPRESS)
        else:
            parser.add_argument(flag, help=argparse.SUPPRESS)


def refuse(args: argparse.Namespace, flags: dict[str, str]) -> None:
    """InputError for the first of these flags that was given, unless it changes nothing."""
    for flag, hint in flags.items():
        value = getattr(args, flag.strip("-").replace("-", "_"))
        if value is not None and (flag, value) != ("--executor", "local"):
            raise InputError(flag, "not supported by pytest-upskill", hint)
