"""``pytest-upskill cases``: write cases for a skill that has none, or add some."""

import argparse
import os

from ...errors import InputError, Spell, shown
from ...skills.case_loading import find_cases, has_cases
from ...skills.folder import skill_file
from ...skills.skill import load_skill
from ...teach.workflow import add_cases
from ..project import find_skill
from ..teaching import add_teach_arguments, config_here, run_teaching, teach_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    groups = add_teach_arguments(parser, "cases")
    groups["runs and attempts"].add_argument(
        "--add", type=int, metavar="N", help="add N cases to those of the skill"
    )


def _with_add(spell: Spell) -> Spell:
    """If --add was given, errors about the number of cases name it."""
    return lambda setting: "--add" if setting == "cases" else spell(setting)


def run(given: argparse.Namespace) -> tuple[str, int]:
    path = find_skill(given.skill, os.environ)
    skill = load_skill(skill_file(path))
    there = find_cases(skill.file.parent)
    if there and has_cases(there) and given.add is None:
        raise InputError(shown(there), "this skill has cases already", "Add more with --add N.")
    if given.add is not None:
        given.cases, given.spell = given.add, _with_add(given.spell)
    students = tuple(given.students or ())  # cases can be written without, whatever is configured
    task = given.task or skill.description
    settings = teach_settings(given, task, config_here(), students=students)
    return run_teaching(given, lambda context: add_cases(path, settings, context))
