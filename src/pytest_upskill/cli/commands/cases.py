"""``pytest-upskill cases``: cases for a skill that has none, or more of them."""

import argparse
import os
from dataclasses import replace
from typing import Final

from ...errors import SettingsError, shown
from ...skills.skill import SKILL_NAMES, find_cases, load_skill
from ...teach import workflow
from ..project import find_skill
from ..teaching import add_teaching_arguments, config_here, describe, lesson_of, teach

_OPTIONS: Final = """\
  SKILL               its folder, its SKILL.md, or its name in skills_dir
  --cases N           write so many (12);   --add N   and so many more
  -m, --model NAME    the author (opus);   --base-url URL   its server
  --eval-model NAME   a student: what it passes without the skill is replaced
  --eval-base-url URL   its server
  --task TEXT         what the skill is for (its description)
  --judge NAME        grades what no rule can
  --runs N (1)   --max-output N (2048)   --max-cost USD
  --yes  --resume     spend without asking; go on where a run was stopped
  --json              the result as JSON"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(parser, "SKILL", _OPTIONS)
    parser.add_argument("skill", metavar="SKILL", help=argparse.SUPPRESS)
    parser.add_argument("--cases", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--add", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    add_teaching_arguments(parser)


def run(given: argparse.Namespace) -> tuple[str, int]:
    path = find_skill(given.skill, os.environ)
    file = path if path.is_file() else path / SKILL_NAMES[0]
    skill = load_skill(file)
    there = find_cases(skill.file.parent)
    if there and given.add is None:
        raise SettingsError(
            shown(there), "this skill has cases already", "Add --add N for N more of them."
        )
    lesson = lesson_of(given, given.task or skill.description, config_here())
    lesson = replace(
        lesson,
        cases=given.add if given.add is not None else lesson.cases,
        source=None,
        students=tuple(given.eval_model),  # only if some are named: cases can be had without
    )
    return teach(given, lambda how: workflow.add_cases(path, lesson, how))
