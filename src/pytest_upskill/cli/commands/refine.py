"""``pytest-upskill refine``: improve a skill that has cases."""

import argparse
import os

from ...skills.folder import skill_file
from ...skills.skill import load_skill
from ...teach.workflow import refine_skill
from ..project import find_skill
from ..teaching import add_teach_arguments, config_here, run_teaching, teach_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_teach_arguments(parser, "refine")


def run(given: argparse.Namespace) -> tuple[str, int]:
    path = find_skill(given.skill, os.environ)
    task = given.task or load_skill(skill_file(path)).description
    settings = teach_settings(given, task, config_here())
    return run_teaching(given, lambda context: refine_skill(path, settings, context))
