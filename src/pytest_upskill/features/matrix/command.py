"""``matrix``: what skills do to each other."""

import argparse

from ...cli.command_table import add_options
from ...cli.study_session import add_flags, study_session
from ...settings import Settings
from .plans import matrix_plans


def add_matrix_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s SKILLS [options]"
    parser.add_argument(
        "skills",
        metavar="SKILLS",
        nargs="+",
        help=(
            "a skill: its folder, its SKILL.md, or its name in skills_dir; or a folder"
            " of skills"
        ),
    )
    output = add_options(parser, "matrix", Settings)["reports"]
    add_flags(output)


def run_matrix(args: argparse.Namespace) -> tuple[str, int]:
    with study_session(args, args.skills) as session:
        plans = matrix_plans(
            session.sources, session.run.subjects, session.run.arm_maker
        )
        if not session.may_carry_out(plans):
            return "", 1
        studies = session.carry_out(plans)
    return session.report(studies)
