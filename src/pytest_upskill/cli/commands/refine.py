"""``pytest-upskill refine``: the loop alone, on a skill that has cases."""

import argparse
import os
from typing import Final

from ...skills.skill import SKILL_NAMES, load_skill
from ...teach import workflow
from ..project import find_skill
from ..teaching import (
    add_loop_arguments,
    add_teaching_arguments,
    config_here,
    describe,
    lesson_of,
    teach,
)

_OPTIONS: Final = """\
  SKILL               its folder, its SKILL.md, or its name in skills_dir
  -m, --model NAME    the teacher (opus);   --base-url URL   its server
  --eval-model NAME   a student (haiku), repeatable;   --eval-base-url URL
  --task TEXT         what the skill is for (its description)
  --judge NAME        grades what no rule can
  --adversary NAME    writes cases against the skill
  --runs N (1)  --attempts N (3)  --target R   of a question; of a skill; enough
  --holdout R         the share of cases that decides at the end (0.33)
  --max-skill-tokens N (1500)   --max-output N (2048)   --max-cost USD
  --yes  --resume     spend without asking; go on where a run was stopped
  --json              the result as JSON"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(parser, "SKILL", _OPTIONS)
    parser.add_argument("skill", metavar="SKILL", help=argparse.SUPPRESS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    add_teaching_arguments(parser)
    add_loop_arguments(parser)


def run(given: argparse.Namespace) -> tuple[str, int]:
    path = find_skill(given.skill, os.environ)
    file = path if path.is_file() else path / SKILL_NAMES[0]
    lesson = lesson_of(given, given.task or load_skill(file).description, config_here())
    return teach(given, lambda how: workflow.refine(path, lesson, how))
