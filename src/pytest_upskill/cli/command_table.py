"""The commands of ``pytest-upskill`` as one table, and the parser for all of them.

To add a command, say ``lint``, add an entry here, and ``add_lint_arguments`` and
``run_lint`` to a module in ``commands/``. The module is imported only when its command
is called, so that ``--help`` and quick commands do not load what a slow one needs.
"""

import argparse
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, get_args

from .. import __version__
from ..errors import DEFAULT, Spell, spelling
from ..options import Group, Option, options_of
from ..registry import Command, CommandGroup, features

if TYPE_CHECKING:
    from ..skills.upskill_config import UpskillConfig

Groups = Mapping[Group, argparse._ArgumentGroup]

USAGE: Final = "2 usage or input error"
_PYTEST: Final = f"0 passed, 1 failed, {USAGE}, or another of pytest's"


_CORE: Final = (
    Command(
        "try",
        "test",
        "test a skill once with what is at hand",
        "pytest-upskill try skills/wick",
        _PYTEST,
        module=".commands.try_out",
    ),
    Command(
        "eval",
        "test",
        "test a skill with pytest, using upskill's flags",
        "pytest-upskill eval skills/wick -m haiku --runs 5 -- -n 4",
        _PYTEST,
        runs_pytest=True,
    ),
    Command(
        "benchmark",
        "test",
        "compare models on a skill with pytest",
        "pytest-upskill benchmark skills/wick -m haiku -m sonnet",
        _PYTEST,
        module=".commands.eval",
        runs_pytest=True,
    ),
    Command(
        "plan",
        "test",
        "say how many cases and runs find a lift",
        "pytest-upskill plan skills/wick --lift 20",
        f"0 success, {USAGE}",
    ),
    Command(
        "init",
        "write",
        "write example cases for a skill, and the settings to run them",
        "pytest-upskill init skills/wick",
        f"0 success, 1 a skill is broken, {USAGE}",
    ),
    Command(
        "generate",
        "write",
        "write a skill and its cases, and measure it on other models",
        'pytest-upskill generate "write commit messages" --eval-model haiku',
        f"0 the skill helps, 1 it does not or failed, {USAGE}",
    ),
    Command(
        "refine",
        "write",
        "improve a skill that has cases, or make it shorter",
        "pytest-upskill refine skills/wick --eval-model haiku --attempts 5",
        f"0 it helps or is short, 1 neither or failed, {USAGE}",
        module=".commands.teach_commands",
    ),
    Command(
        "cases",
        "write",
        "write cases for a skill",
        "pytest-upskill cases skills/wick --add 6",
        f"0 success, 1 no usable cases, {USAGE}",
        module=".commands.teach_commands",
    ),
    Command(
        "runs",
        "look",
        "show the history of runs, one run, or compare two",
        "pytest-upskill runs --skill wick --model haiku",
        f"0 success, 1 nothing to write, {USAGE}",
        inner=("show", "compare"),
    ),
    Command(
        "report",
        "look",
        "write reports of saved results, and merge shards",
        "pytest-upskill report shard-*.json --markdown comment.md --min-lift 0.2",
        f"0 passed, 1 failed or incomplete, {USAGE}",
        module=".commands.runs",
    ),
    Command(
        "list",
        "look",
        "list skills with their size, cases and last results",
        "pytest-upskill list skills -v",
        f"0 success, 1 a skill is broken, {USAGE}",
    ),
    Command(
        "lint",
        "look",
        "find problems in skills and their cases",
        "pytest-upskill lint skills --strict",
        f"0 success, 1 errors found, {USAGE}",
    ),
    Command(
        "models",
        "look",
        "list models, and which API keys are set",
        "pytest-upskill models",
        f"0 success, {USAGE}",
    ),
    Command(
        "doctor",
        "look",
        "try sandboxes and agents, or see where tasks would run",
        "pytest-upskill doctor",
        f"0 agents work here, 1 they do not, {USAGE}",
    ),
    Command(
        "answers",
        "look",
        "show or delete this project's stored answers",
        "pytest-upskill answers --prune 30",
        f"0 success, {USAGE}",
    ),
    Command(
        "schema",
        "look",
        "print the JSON schema of skill_meta.json",
        "pytest-upskill schema > skill_meta.schema.json",
        f"0 success, {USAGE}",
        module=".commands.init",
    ),
)
_GROUPS: Final[tuple[CommandGroup, ...]] = get_args(CommandGroup)
COMMANDS: Final = sorted(
    (
        *_CORE,
        *(command for feature in features().values() for command in feature.commands),
    ),
    key=lambda command: _GROUPS.index(command.group),
)
BY_NAME: Final = {command.name: command for command in COMMANDS}
ONLY_UPSKILL: Final = {  # commands without a counterpart, and what to do instead
    "run": (
        "Run tests: pytest --skill PATH --model NAME, or pytest-upskill eval SKILL -m"
        " NAME"
    ),
    "plot": "List the history: pytest-upskill runs",
    "delete": "Delete the folder of the skill.",
    "ci": "Run pytest in the job, with gates or --skill-against REF: see docs/ci.md.",
}


def make_parser(names: Collection[str] = tuple(BY_NAME)) -> argparse.ArgumentParser:
    """The parser of all commands; only those of these names get their arguments."""
    parser = argparse.ArgumentParser(
        prog="pytest-upskill",
        usage="%(prog)s [-h] [--version] COMMAND ...",
        description=(
            "Write, check and compare Agent Skills.\n"
            f"Tests are run by pytest: pytest --skill PATH --model NAME\n\n{_listing()}"
        ),
        epilog=_epilog(
            "pytest-upskill list skills (options: pytest-upskill list --help)",
            f"0 success, 1 problems found, {USAGE}",
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"pytest-upskill {__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", help=argparse.SUPPRESS, prog="pytest-upskill"
    )
    for command in COMMANDS:
        subparser = add_command(commands, command)
        if command.name in names:
            module = import_module(
                command.module or f".commands.{command.name}", __package__
            )
            getattr(module, f"add_{command.name}_arguments")(subparser)
            subparser.set_defaults(
                # Returns a text and the exit status
                run=getattr(module, f"run_{command.name}"),
                spell=_spelling_of(subparser),
                parser=subparser,
                # Settings that were read from a file: which one, and its key
                origins={},
            )
    return parser


def grouped_commands() -> dict[CommandGroup, list[Command]]:
    return {name: [one for one in COMMANDS if one.group == name] for name in _GROUPS}


def _listing() -> str:
    """The commands in groups, which argparse can't do."""
    groups = grouped_commands().items()
    return "\n\n".join(
        "\n".join([f"{name}:", *(f"  {one.name:<10} {one.help}" for one in commands)])
        for name, commands in groups
    )


def _spelling_of(parser: argparse.ArgumentParser) -> Spell:
    """Settings by the options of a command: an option's ``dest`` is the setting's
    name.
    """
    names = {"prices": "skill_prices"}  # of pytest's ini file
    for action in parser._actions:
        flags = [flag for flag in action.option_strings if flag.startswith("--")]
        names.setdefault(
            action.dest, flags[0] if flags else str(action.metavar or action.dest)
        )
    return spelling(names)


def add_command(commands: Any, command: Command) -> argparse.ArgumentParser:
    """Add a parser to those of ``add_subparsers``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        command.name,
        description=f"{command.help[0].upper()}{command.help[1:]}.",
        epilog=_epilog(command.example, command.status),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _epilog(example: str, status: str) -> str:
    return f"example: {example}\nexit status: {status}"


# The settings as arguments of the commands.


def add_options(
    parser: argparse.ArgumentParser, command: str, *tables: type, missing: Any = None
) -> Groups:
    """Add the settings that a command takes, of these tables; return their groups.

    ``missing`` is the value of an option that is not given.
    """
    groups: dict[Group, argparse._ArgumentGroup] = {}
    for setting, option in _options(command, *tables).items():
        if option.group not in groups:
            groups[option.group] = parser.add_argument_group(option.group)
        groups[option.group].add_argument(
            *option.flags,
            dest=setting,
            default=missing,
            required=option.required,
            help=option.help_text(),
            **option.arguments(),
        )
    return groups


def _options(name: str, *tables: type) -> dict[str, Option]:
    command = BY_NAME.get(name)
    return options_of(name, *tables, takes=command.takes if command else ())


def add_skill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "skill",
        metavar="SKILL",
        help="a skill: its folder, its SKILL.md, or its name in skills_dir",
    )


def option_values(
    args: argparse.Namespace, config: "UpskillConfig", *tables: type
) -> dict[str, Any]:
    """What the command line says, else upskill.config.yaml,
    else the defaults of the command.
    """
    values: dict[str, Any] = {}
    for setting, option in _options(args.command, *tables).items():
        value = getattr(args, setting)
        if value is None and option.config:
            value = getattr(config, option.config)
            args.origins[setting] = config.origin(option.config) if value else DEFAULT
        if value in (None, ()):
            value = option.default
        if value is not None:
            values[setting] = tuple(value) if option.kind.repeats else value
    return values
