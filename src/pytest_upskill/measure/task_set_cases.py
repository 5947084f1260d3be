"""Tasks of a benchmark as cases of a study; each brings the
skills that its arms differ by.
"""

from dataclasses import replace
from pathlib import Path

from ..agents.task_sandbox import skipped_if_unrunnable
from ..checks import checked_suite
from ..errors import InputError, shown
from ..settings import Settings
from ..skills.suites.reading import read_suite
from ..skills.task_set import load_task_set
from ..trials.plan import score_of
from .study_runner import SkillCases


def load_task_set_cases(path: Path, settings: Settings) -> tuple[SkillCases, ...]:
    """The tasks of a path that have skills, and those that have none;
    InputError if one is broken.

    Those that can't run here are skipped.
    """
    tasks, suite = load_task_set(path), read_suite(path, path)
    if suite is None:
        raise InputError(
            shown(path), "no tasks here", "Name a task, or a folder of tasks."
        )
    checked = [
        case for of_file in checked_suite(suite) for case in of_file.require_all()
    ]
    image = settings.image or ""
    cases = [
        (skipped_if_unrunnable(case, settings.sandbox, image), checks)
        for case, checks in checked
    ]
    score = score_of(settings.score, [case for case, _ in cases])
    with_skills = tuple(each for each in cases if each[0].skills)
    without = tuple(each for each in cases if not each[0].skills)
    sources = {tasks.name: with_skills, f"{tasks.name} (no skills)": without}
    return tuple(
        SkillCases(name, replace(tasks, name=name), own, score, suite.path)
        for name, own in sources.items()
        if own
    )
