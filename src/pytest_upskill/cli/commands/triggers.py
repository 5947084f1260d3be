"""``pytest-upskill triggers``: write queries that should open a skill, and near misses."""

import argparse
import os

from ..._util.texts import dollars
from ...errors import shown
from ...skills.folder import skill_file
from ...skills.skill import load_skill
from ...teach.trigger_set import (
    TriggerSet,
    trigger_set_data,
    trigger_set_lines,
    trigger_task,
    write_triggers,
)
from ..project import find_skill
from ..teaching import Shown, add_teach_arguments, config_here, run_shown, teach_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_teach_arguments(parser, "triggers")


def run(given: argparse.Namespace) -> tuple[str, int]:
    path = find_skill(given.skill, os.environ)
    task = trigger_task(load_skill(skill_file(path)))
    settings = teach_settings(given, task, config_here(), students=())
    return run_shown(given, lambda context: write_triggers(path, settings, context), _shown)


def _shown(made: TriggerSet, width: int) -> Shown:
    cost = f"   (cost {dollars(made.cost)})" if made.cost else ""
    saved = f"Saved to {shown(made.file.absolute())}{cost}"
    return Shown([*trigger_set_lines(made, width), saved], trigger_set_data(made), 0)
