"""``pytest-upskill refine``: improve a skill that has cases."""

import argparse
import os

from ...skills.skill import SKILL_NAMES, load_skill
from ...teach import workflow
from ..project import find_skill
from ..teaching import add_teach_arguments, config_here, run_teaching, teach_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_teach_arguments(parser, "refine")


def run(given: argparse.Namespace) -> tuple[str, int]:
    path = find_skill(given.skill, os.environ)
    file = path if path.is_file() else path / SKILL_NAMES[0]
    settings = teach_settings(given, given.task or load_skill(file).description, config_here())
    return run_teaching(given, lambda context: workflow.refine(path, settings, context))
