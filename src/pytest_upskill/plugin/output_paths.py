"""The files that a run writes: each has a path of its own, and can be written."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from .._util.files import why_unwritable
from ..engine.recording import load_recording
from ..engine.store import FILE_NAME, FOLDER
from ..errors import Setting, SettingsError, shown
from ..reports.writers import report_paths, require_apart
from ..settings import Settings
from ..skills.suites.beside import files_beside
from .paths import SkillSource

# Files that pytest and its plugins write or read,
# by the name that argparse has for the option.
_OTHERS: Final = {
    "xmlpath": "--junitxml",
    "report_log": "--report-log",
    "log_file": "--log-file",
    "htmlpath": "--html",
    "json_report_file": "--json-report-file",
}


def require_own_paths(
    settings: Settings, skills: Iterable[SkillSource], config: pytest.Config
) -> None:
    """Every file of a run has a path of its own."""
    taken: list[tuple[str, Path]] = []
    for setting in ("replay_file", "tests_file", "runs_folder"):
        if path := getattr(settings, setting):
            taken.append((Setting(setting), path))

    for name, flag in _OTHERS.items():
        if file := getattr(config.option, name, None):
            taken.append((flag, Path(os.path.expandvars(file)).expanduser()))

    for skill in skills:
        paths = [skill.skill_file, skill.folder / "skill_results.json"]
        if skill.suites.path:
            paths.append(skill.suites.path)
        for path in (*paths, *files_beside(skill.folder)):
            taken.append((f"the skill {skill.label}", path))

    taken.append(("the store of answers", config.rootpath / FOLDER / FILE_NAME))
    require_apart(_output_paths(settings), taken)


def require_outputs(settings: Settings) -> None:
    """Find out before the run, not after it, that a file can't be written."""
    for setting, file in _output_paths(settings).items():
        is_folder = setting.endswith("_folder")
        if file and (problem := why_unwritable(file, folder=is_folder)):
            raise SettingsError(setting, problem, "Check the path.", value=shown(file))

    record_file = settings.record_file
    if record_file and record_file.is_file():
        # Nothing but a recording is overwritten.
        load_recording(record_file, "record_file")


def _output_paths(settings: Settings) -> dict[str, Path | None]:
    return report_paths(settings) | {"record_file": settings.record_file}
