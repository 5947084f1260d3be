"""The command ``pytest-upskill``: parse the arguments, run the command, print, exit."""

import sys
from collections.abc import Sequence

from .._util.keys import without_keys
from .._util.texts import harmless
from ..errors import InputError, SettingsError, TeachError
from .command_table import BY_NAME, make_parser
from .output import write
from .upskill_flags import COMMANDS as COMMANDS_OF_UPSKILL


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = next((word for word in words if not word.startswith("-")), "")
    if name == "plot":  # of upskill
        cut = words.index(name)
        name, words[cut : cut + 1] = "runs", ["runs", "--plot", "--metric", "success"]
        print("pytest-upskill plot is now: pytest-upskill runs --plot", file=sys.stderr)
    if name in COMMANDS_OF_UPSKILL:
        print(
            f"pytest-upskill: {name}: no such command\n  {COMMANDS_OF_UPSKILL[name]}",
            file=sys.stderr,
        )
        return 2
    command = BY_NAME.get(name)
    for_pytest: list[str] = []
    if command and command.runs_pytest and "--" in words:
        cut = words.index("--")
        words, for_pytest = words[:cut], words[cut + 1 :]
    parser = make_parser([name])
    given = parser.parse_args(words)
    if given.command is None:
        parser.print_help()
        return 2
    given.for_pytest = for_pytest
    try:
        text, status = given.run(given)
        if text:
            write(text)
    except SettingsError as error:
        message = error.message(given.spell, lambda setting: given.origins.get(setting, ""))
        _complain(message)
        return 2
    except InputError as error:
        _complain(error.message(given.spell))
        return 2
    except KeyboardInterrupt as error:
        print("pytest-upskill: interrupted", *error.args, sep="\n", file=sys.stderr)
        return 130
    except TeachError as error:
        _complain(error.message(given.spell))
        return 1
    return int(status)


def _complain(message: str) -> None:
    print(f"pytest-upskill: {harmless(without_keys(message))}", file=sys.stderr)
