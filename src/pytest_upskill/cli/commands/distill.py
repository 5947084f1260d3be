"""``pytest-upskill distill``: make a skill shorter, and show what is lost."""

import argparse
import os
import sys
from functools import partial

from ...errors import SettingsError
from ...reports.markdown import markdown_summary
from ...reports.writers import (
    Finished,
    report_paths,
    report_writers,
    require_apart,
    write_all,
    written_line,
)
from ...skills.folder import skill_file
from ...skills.skill import load_skill
from ...teach.distilled import Distilled, distilled_data, report_lines, result_line
from ...teach.distilling import distill
from ..output import tell
from ..project import find_skill
from ..teaching import Shown, add_teach_arguments, config_here, run_shown, teach_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_teach_arguments(parser, "distill")


def run(given: argparse.Namespace) -> tuple[str, int]:
    path = find_skill(given.skill, os.environ)
    skill = load_skill(skill_file(path))
    if given.max_skill_tokens is None:
        problem = f"not given; {skill.name} has about {skill.tokens:,} tokens"
        raise SettingsError("max_skill_tokens", problem, "Choose how many it may have.")
    wanted = report_paths(given)
    require_apart(wanted)
    settings = teach_settings(given, given.task or skill.description, config_here())

    def show(found: Distilled, width: int) -> Shown:
        lines = [*report_lines(found, width), result_line(found)]
        status = found.status
        if found.results:
            text = partial(markdown_summary, found.results, found.notes, 0)
            done = write_all(report_writers(Finished(found.results, text, found.notes), wanted))
            lines += [written_line(done.paths)] if done.paths else []
            for error in done.problems:
                tell(sys.stderr, f"pytest-upskill: {error.message(given.spell)}\n")
            status = 2 if done.problems else status
        return Shown(lines, distilled_data(found), status)

    return run_shown(given, lambda context: distill(path, settings, context), show)
