"""``pytest-upskill benchmark``: compare models on a skill, with and without it."""

import argparse
import os

from .eval import add_shared_arguments, pytest_arguments, run_pytest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_shared_arguments(parser, "benchmark")


def run(given: argparse.Namespace) -> tuple[str, int]:
    return "", run_pytest(pytest_arguments(given, os.environ))
