"""The command ``pytest-upskill``: parse, call, print, exit status."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from .. import __version__
from ..errors import InputError
from ..schema import schema_text
from .answers import answers_text, days
from .judge import add_judge
from .lint import add_lint
from .models import models_text
from .runs import add_runs

# What a command does with its arguments: the text to print, and its exit status.
Run = Callable[[argparse.Namespace], tuple[str, int]]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="pytest-upskill",
        description="Test Agent Skills. The tests themselves are run by pytest: "
        "pytest --skill PATH --model NAME",
    )
    parser.add_argument("--version", action="version", version=f"pytest-upskill {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    models = commands.add_parser("models", help="list the models that --model takes")
    models.set_defaults(run=lambda _: (models_text(os.environ), 0))
    answers = commands.add_parser("answers", help="show or clear this project's stored answers")
    forget = answers.add_mutually_exclusive_group()
    forget.add_argument(
        "--prune", type=days, metavar="DAYS", help="forget answers that are older than this"
    )
    forget.add_argument("--clear", action="store_true", help="forget them all")
    answers.set_defaults(run=lambda given: (answers_text(given.prune, given.clear), 0))
    add_judge(commands)
    add_lint(commands)
    add_runs(commands)
    schema = commands.add_parser("schema", help="print the JSON schema of skill_meta.json")
    schema.set_defaults(run=lambda _: (schema_text().rstrip("\n"), 0))
    parsed = parser.parse_args(arguments)
    if parsed.command is None:
        parser.print_help()
        return 2
    run: Run = parsed.run
    try:
        text, status = run(parsed)
    except InputError as error:
        print(f"pytest-upskill: {error}", file=sys.stderr)
        return 2
    print(text)
    return status
