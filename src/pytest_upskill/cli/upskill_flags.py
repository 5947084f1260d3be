"""Commands and flags of upskill that have no counterpart, each with what to use instead."""

import argparse
from typing import Final

from ..errors import InputError

_JOBS: Final = "Runs are local; with -- -n 4, pytest-xdist grades answers in four processes."
_PROVIDER: Final = "Put it into the model's name: {option} openai:ID, {option} ollama:NAME."

# Flags by name, and whether they take a value.
_OF_JOBS: Final = {
    "--executor": True,
    "--artifact-repo": True,
    "--jobs-timeout": True,
    "--jobs-flavor": True,
    "--jobs-secrets": True,
    "--jobs-namespace": True,
    "--wait": False,
    "--no-wait": False,
}
FLAGS_OF_EVAL: Final = {
    "--test-gen-model": "Write cases first: pytest-upskill cases SKILL.",
    "--provider": _PROVIDER.format(option="-m"),
    **dict.fromkeys(_OF_JOBS, _JOBS),
}
FLAGS_OF_GENERATE: Final = {
    "--eval-provider": _PROVIDER.format(option="--eval-model"),
    "--max-parallel": "Fewer calls are made at once while a server is busy.",
    **dict.fromkeys(_OF_JOBS, _JOBS),
}
COMMANDS: Final = {
    "delete": "Delete the folder of the skill.",
    "ci": "Run pytest in the job, with gates or --skill-against REF: see docs/ci.md.",
}


def add_flags(parser: argparse.ArgumentParser, flags: dict[str, str]) -> None:
    """Let the parser know them, so that ``refuse`` can say what to use instead."""
    for flag in flags:
        if _OF_JOBS.get(flag, True):
            parser.add_argument(flag, help=argparse.SUPPRESS)
        else:
            parser.add_argument(flag, action="store_const", const="", help=argparse.SUPPRESS)


def refuse(given: argparse.Namespace, flags: dict[str, str]) -> None:
    """InputError for the first of these flags that was given, unless it changes nothing."""
    for flag, hint in flags.items():
        value = getattr(given, flag.strip("-").replace("-", "_"))
        if value is not None and (flag, value) != ("--executor", "local"):
            raise InputError(flag, "not supported by pytest-upskill", hint)
