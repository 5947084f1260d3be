"""Where commands look for what runs of pytest left."""

import os
from pathlib import Path

from ..errors import SettingsError
from ..results.history import default_folder
from ..skills.upskill_config import read_config
from .ini import ini_paths, project_root


def runs_folder(given: Path | None, start: Path) -> Path:
    """The folder of kept runs: the one that was named, on the command line, in the ini file of
    pytest or in upskill.config.yaml; else the nearest, here or above."""
    if given is not None:
        if not given.is_dir():
            raise SettingsError(f"--dir {given}", "there is no such folder", "Check the path.")
        return given
    named = [*ini_paths(start, "skill_runs_dir"), read_config(start, os.environ).runs_dir]
    if chosen := next(filter(None, named), None):
        return chosen
    root = project_root(start)
    inside = [folder for folder in (start, *start.parents) if folder.is_relative_to(root)]
    folders = map(default_folder, inside)
    return next((folder for folder in folders if folder.is_dir()), default_folder(start))
