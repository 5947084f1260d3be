"""``pytest-upskill generate``: a skill with cases from a task, a trace or another skill."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ...errors import shown
from ...skills.skill import SKILL_NAMES
from ...teach import workflow
from ..output import ask
from ..teaching import (
    add_loop_arguments,
    add_teaching_arguments,
    config_here,
    describe,
    lesson_of,
    teach,
)

_OPTIONS: Final = """\
  -f, --from PATH     a trace of an agent, or the folder of a skill to improve
  -e, --example "INPUT -> OUTPUT"   repeatable;   --tool FILE#NAME   an MCP tool
  -m, --model NAME    the teacher (opus);   --base-url URL   its server
  --eval-model NAME   a student (haiku), repeatable;   --eval-base-url URL
  --test-model NAME   writes the cases;   --adversary NAME   and some against it
  --judge NAME        grades what no rule can
  --cases N  --holdout R   so many cases (12), a share held out (0.33)
  --runs N (1)  --attempts N (3)  --target R   of a question; of a skill; enough
  --max-skill-tokens N (1500)   --max-output N (2048)   --max-cost USD
  -o DIR, --name NAME   where it goes (./skills/NAME);   --force   over another
  --no-eval           a draft and cases, unmeasured;   --json   as JSON
  --yes  --resume     spend without asking; go on where a run was stopped"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(parser, '"TASK"', _OPTIONS)

    def add(*names: str, **more: Any) -> None:
        parser.add_argument(*names, help=argparse.SUPPRESS, **more)

    add("task", metavar="TASK")
    add("-e", "--example", action="append", default=[])
    add("-f", "--from", dest="source", type=Path)
    add("--tool")
    add_teaching_arguments(parser)
    add_loop_arguments(parser)
    add("--cases", type=int)
    add("-o", "--output", type=Path)
    add("--name")
    add("--force", action="store_true")
    add("--no-eval", action="store_true")
    # upskill's: what was asked is in the workspace anyway.
    add("--runs-dir")
    add("--log-runs", action="store_true")
    add("--no-log-runs", action="store_true")


def run(given: argparse.Namespace) -> tuple[str, int]:
    config = config_here()
    lesson = lesson_of(given, given.task, config)
    if given.no_eval:
        lesson = replace(lesson, students=())
    how = {
        "output": given.output,
        "skills": config.skills_dir,
        "force": given.force,
        "in_place": _may_change(given),
    }
    return teach(given, lambda how: workflow.generate(lesson, how), **how)


def _may_change(given: argparse.Namespace) -> bool:
    """Whether a skill may be improved in place; on a terminal that is asked."""
    if given.force or given.yes:
        return True
    source: Path | None = given.source
    is_skill = source is not None and (source.is_dir() or source.name in SKILL_NAMES)
    if not source or not is_skill or given.output or given.name or not sys.stdin.isatty():
        return False
    return ask(sys.stderr, f"Change {shown(source)} in place, and keep the old one?")
