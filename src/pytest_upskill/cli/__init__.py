"""The command ``pytest-upskill``: parse the arguments, run the command, print, exit."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from .._util.interrupts import sigterm_as_ctrl_c
from .._util.keys import without_keys
from .._util.texts import closest, guess, harmless, one_line
from ..errors import InputError, SettingsError, TeachError
from ..registry import Command
from .command_table import BY_NAME, ONLY_UPSKILL, make_parser
from .output import write


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = next((word for word in words if not word.startswith("-")), "")
    if name not in BY_NAME and words[:1] == [name]:
        hint = ONLY_UPSKILL.get(name, "List them: pytest-upskill --help")
        meant = "" if name in ONLY_UPSKILL else guess(name, BY_NAME)
        _complain(f"{one_line(name, 60)}: no such command{meant}\n  {hint}")
        return 2
    command = BY_NAME.get(name)
    for_pytest: list[str] = []
    if command and command.runs_pytest and "--" in words:
        cut = words.index("--")
        words, for_pytest = words[:cut], words[cut + 1 :]
    if command and command.inner and _is_short_for_first(words[1:2], command.inner):
        words.insert(1, command.inner[0])
    parser = make_parser([name])
    args, unknown = parser.parse_known_args(words)
    if unknown:
        _refuse(unknown, getattr(args, "parser", parser), command)
    if args.command is None:
        parser.print_help()
        return 2
    args.for_pytest = for_pytest
    try:
        with sigterm_as_ctrl_c():
            text, status = args.run(args)
        if text:
            write(text)
    except SettingsError as error:
        message = error.message(
            args.spell, lambda setting: args.origins.get(setting, "")
        )
        _complain(message)
        return 2
    except InputError as error:
        _complain(error.message(args.spell))
        return 2
    except KeyboardInterrupt as error:
        print("pytest-upskill: interrupted", *error.args, sep="\n", file=sys.stderr)
        return 130
    except TeachError as error:
        _complain(error.message(args.spell))
        return 1
    return int(status)


def _is_short_for_first(words: Sequence[str], inner: Sequence[str]) -> bool:
    """Whether a word is for the first of a command's own commands:
    runs last is runs show last.
    """
    return any(not word.startswith("-") and not guess(word, inner) for word in words)


def _refuse(
    unknown: Sequence[str], parser: argparse.ArgumentParser, command: Command | None
) -> NoReturn:
    """Exit with the usage of the command that has no such argument."""
    word = next((word for word in unknown if word.startswith("-")), unknown[0])
    hint = ""
    if word.startswith("--"):
        # As for pytest
        stem = word.partition("=")[0].removeprefix("--").removeprefix("skill-")
        flags = [flag for action in parser._actions for flag in action.option_strings]
        close = closest(
            stem, [flag.removeprefix("--") for flag in flags if flag[:2] == "--"]
        )
        hint = f" (did you mean --{close}?)" if close else ""
    if command and command.runs_pytest and word.startswith("-") and not hint:
        hint = " (options of pytest come after --)"
    parser.error(f"unrecognized argument: {one_line(word, 200)}{hint}")


def _complain(message: str) -> None:
    print(f"pytest-upskill: {harmless(without_keys(message))}", file=sys.stderr)
