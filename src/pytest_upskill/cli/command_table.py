"""The commands of ``pytest-upskill``: what each is for, and the parser over all of them.

A command is a module here with ``add_arguments`` and ``run``. It is imported when it is called,
so that ``--help`` and a quick command do not wait for what only a slow one needs.
"""

import argparse
from collections.abc import Collection
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol, cast

from .. import __version__

_INPUT: Final = "2 usage or bad input"
_OF_PYTEST: Final = "that of pytest: 0 passed, 1 failed, 4 usage; 2 there is no SKILL"


@dataclass(frozen=True)
class Command:
    """A command as its help tells it."""

    name: str
    help: str
    example: str
    status: str
    runs_pytest: bool = False  # what stands after -- is for pytest


class CommandModule(Protocol):
    """What the module of a command has."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, given: argparse.Namespace) -> tuple[str, int]:
        """The text to print, and the exit status."""


COMMANDS: Final = (
    Command(
        "generate",
        "write a skill and its cases, measured on the models that will use it",
        'pytest-upskill generate "write commit messages" --eval-model haiku',
        "0 saved and it helps, 1 it helps nobody or was not made, 2 usage",
    ),
    Command(
        "cases",
        "write cases for a skill, tried before they count",
        "pytest-upskill cases skills/wick --add 6",
        f"0 fine, 1 they could not be made, {_INPUT}",
    ),
    Command(
        "refine",
        "improve a skill by its cases, and keep the best version",
        "pytest-upskill refine skills/wick --eval-model haiku --attempts 5",
        "0 it helps, 1 it helps nobody or was not measured, 2 usage",
    ),
    Command(
        "eval",
        "test a skill, with the flags of upskill, by pytest",
        "pytest-upskill eval skills/wick -m haiku --runs 5 -- -n 4",
        _OF_PYTEST,
        runs_pytest=True,
    ),
    Command(
        "benchmark",
        "compare models on a skill, by pytest",
        "pytest-upskill benchmark skills/wick -m haiku -m sonnet",
        _OF_PYTEST,
        runs_pytest=True,
    ),
    Command(
        "list",
        "show skills: purpose, size, cases, last results",
        "pytest-upskill list skills -v",
        f"0 fine, 1 a skill is broken, {_INPUT}",
    ),
    Command(
        "runs",
        "show how skills did over time, or compare two runs",
        "pytest-upskill runs --skill wick --metric pass-rate --plot",
        f"0 fine, 1 worse (compare --fail-if-worse), {_INPUT}",
    ),
    Command(
        "report",
        "make reports of files of --skill-json; shards become one run",
        "pytest-upskill report shard-*.json --markdown comment.md --min-lift 0.2",
        "0 passed, 1 a failure, a missing case or a gate, 2 bad input",
    ),
    Command(
        "lint",
        "find what is wrong in skills and their cases",
        "pytest-upskill lint skills --strict",
        f"0 fine, 1 errors were found, {_INPUT}",
    ),
    Command(
        "install",
        "copy a skill to where agents look for skills",
        "pytest-upskill install skills/wick --agent claude --agent codex",
        f"0 fine, 1 not everything was installed, {_INPUT}",
    ),
    Command(
        "models",
        "list the models, and which keys are set",
        "pytest-upskill models --json",
        f"0 fine, {_INPUT}",
    ),
    Command(
        "answers",
        "show or clear this project's stored answers",
        "pytest-upskill answers --prune 30",
        f"0 fine, {_INPUT}",
    ),
    Command(
        "judge",
        "measure a judge on answers that people labelled",
        "pytest-upskill judge labelled.jsonl --model sonnet --votes 3",
        f"0 fine, 1 the judge gave no ruling, {_INPUT}",
    ),
    Command(
        "schema",
        "print the JSON schema of skill_meta.json",
        "pytest-upskill schema > skill_meta.schema.json",
        f"0 fine, {_INPUT}",
    ),
    Command(
        "completion",
        "print a script that completes commands in a shell",
        "source <(pytest-upskill completion bash)",
        f"0 fine, {_INPUT}",
    ),
)
BY_NAME: Final = {command.name: command for command in COMMANDS}


def make_parser(whole: Collection[str] = tuple(BY_NAME)) -> argparse.ArgumentParser:
    """The parser of all commands; those that are not ``whole`` have only their help line."""
    parser = argparse.ArgumentParser(
        prog="pytest-upskill",
        # The two options are told here, which leaves the screen to the commands.
        usage="pytest-upskill [-h] [--version] COMMAND ...",
        epilog="Tests are run by pytest: pytest --skill PATH --model NAME\n"
        "example: pytest-upskill list skills (more: pytest-upskill COMMAND --help)\n"
        "exit status: 0 fine, 1 something was found, 2 usage or bad input",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
    version = f"pytest-upskill {__version__}"
    parser.add_argument("--version", action="version", version=version, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND [ARGS]", title="commands", prog="pytest-upskill"
    )
    for command in COMMANDS:
        own = _add_command(commands, command)
        if command.name in whole:
            module = cast(CommandModule, import_module(f".commands.{command.name}", __package__))
            module.add_arguments(own)
            own.set_defaults(run=module.run)
    return parser


def _add_command(commands: Any, command: Command) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        command.name,
        help=command.help,
        description=f"{command.help[0].upper()}{command.help[1:]}.",
        epilog=f"example: {command.example}\nexit status: {command.status}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser
