"""The settings as arguments of the commands."""

import argparse
from collections.abc import Mapping
from typing import Any

from ..errors import DEFAULT
from ..options import Group, options_of
from ..skills.upskill_config import UpskillConfig

Groups = Mapping[Group, argparse._ArgumentGroup]


def add_options(
    parser: argparse.ArgumentParser, command: str, *tables: type, missing: Any = None
) -> Groups:
    """Add the settings that a command takes, of these tables; return their groups.

    ``missing`` is the value of an option that is not given.
    """
    groups: dict[Group, argparse._ArgumentGroup] = {}
    for setting, option in options_of(command, *tables).items():
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


def add_skill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "skill",
        metavar="SKILL",
        help="a skill: its folder, its SKILL.md, or its name in skills_dir",
    )


def option_values(args: argparse.Namespace, config: UpskillConfig, *tables: type) -> dict[str, Any]:
    """What the command line says, else upskill.config.yaml, else the defaults of the command."""
    values: dict[str, Any] = {}
    for setting, option in options_of(args.command, *tables).items():
        value = getattr(args, setting)
        if value is None and option.config:
            value = getattr(config, option.config)
            args.origins[setting] = config.origin(option.config) if value else DEFAULT
        if value in (None, ()):
            value = option.default
        if value is not None:
            values[setting] = tuple(value) if option.kind.repeats else value
    return values
