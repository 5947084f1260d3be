"""``triggers`` and ``describe``: write queries, and a description that they open."""

import argparse
from functools import partial

from ...cli.commands.teach_commands import add_teach_arguments, run_on_skill
from .describing import describe_skill
from .query_writing import write_triggers

add_triggers_arguments = partial(add_teach_arguments, command="triggers")
add_describe_arguments = partial(add_teach_arguments, command="describe")


def run_triggers(args: argparse.Namespace) -> tuple[str, int]:
    return run_on_skill(args, write_triggers, students=())


def run_describe(args: argparse.Namespace) -> tuple[str, int]:
    return run_on_skill(args, describe_skill)
