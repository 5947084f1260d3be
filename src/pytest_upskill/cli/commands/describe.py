"""``pytest-upskill describe``: improve a skill's description by its queries."""

import argparse
import os

from ..._util.texts import dollars
from ...errors import shown
from ...skills.folder import skill_file
from ...skills.skill import load_skill
from ...teach.described import Described, described_data, described_lines, status_of
from ...teach.describing import describe_task, improve_description
from ..project import find_skill
from ..teaching import Shown, add_teach_arguments, config_here, run_shown, teach_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_teach_arguments(parser, "describe")


def run(given: argparse.Namespace) -> tuple[str, int]:
    path = find_skill(given.skill, os.environ)
    task = describe_task(load_skill(skill_file(path)))
    settings = teach_settings(given, task, config_here())
    return run_shown(given, lambda context: improve_description(path, settings, context), _shown)


def _shown(described: Described, width: int) -> Shown:
    lines = ["", *described_lines(described, width), *_end(described)]
    return Shown(lines, described_data(described), status_of(described))


def _end(described: Described) -> list[str]:
    """What was done to the skill, and what can be done."""
    cost = f"   (cost {dollars(described.cost)})" if described.cost else ""
    lines = [f"The previous skill is kept in {shown(described.kept)}"] if described.kept else []
    if described.unsaved:
        return [*lines, *f"{described.unsaved}{cost}".splitlines()]
    if described.folder:
        return [*lines, f"Saved to {shown(described.folder.absolute())}{cost}"]
    if described.winner and described.version_folder:
        lines += [
            f"Version {described.winner.number} is kept in {shown(described.version_folder)}",
            "Write it all the same with --resume --anyway, or get more queries first.",
        ]
    return [*lines, f"The skill is unchanged.{cost}"]
