"""``pytest-upskill benchmark``: compare models on a skill, with and without it."""

import argparse
import os

from .eval import add_shared_arguments, pytest_arguments, run_pytest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_shared_arguments(parser, models_required=True, runs="3")
    # upskill's flag for the folder of run logs.
    parser.add_argument(
        *("-o", "--output"),
        dest="runs_dir",
        metavar="DIR",
        help="folder of the run history (default: .upskill/runs)",
    )
    parser.set_defaults(log_runs=True)


def run(given: argparse.Namespace) -> tuple[str, int]:
    return "", run_pytest(pytest_arguments(given, os.environ))
