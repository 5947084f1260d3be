"""Where a project keeps its runs and its skills."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..errors import InputError, shown
from ..results.history import default_folder
from ..skills.upskill_config import UpskillConfig, read_config
from .ini_file import has_ini_file, ini_paths

DEFAULT_SKILLS: Final = "skills"  # upskill's default


def config_here() -> UpskillConfig:
    return read_config(Path.cwd(), os.environ)


def project_root(start: Path) -> Path:
    """The folder of the ini file, else that of the git repository, else the root."""
    above = (start, *start.parents)
    with_ini = filter(has_ini_file, above)
    with_git = (folder for folder in above if (folder / ".git").exists())
    return next(with_ini, None) or next(with_git, above[-1])


def root_of_run(start: Path) -> Path:
    """Where a run from here keeps its answers, as pytest does: without a project, right here."""
    root = project_root(start)
    return start if root == Path(start.anchor) else root


def runs_folder(folder: Path | None, start: Path) -> Path:
    """The folder of kept runs: this one, else that of the ini file or upskill.config.yaml, else
    the nearest one here or in a parent folder."""
    if folder is not None:
        if not folder.is_dir():
            raise InputError(f"--dir {folder}", "no such folder", "Check the path.")
        return folder
    named = [*ini_paths(start, "skill_runs_dir"), read_config(start, os.environ).runs_dir]
    if chosen := next(filter(None, named), None):
        return chosen
    root = project_root(start)
    above = [parent for parent in (start, *start.parents) if parent.is_relative_to(root)]
    return next(filter(Path.is_dir, map(default_folder, above)), default_folder(start))


def find_skill(written: str, env: Mapping[str, str]) -> Path:
    """A path, or the name of a skill in skills_dir."""
    path = Path(written)
    if not written.strip():  # mostly an unset variable of a CI job
        raise InputError("SKILL", "must not be empty", "Name a skill, or its folder.")
    if os.path.exists(path):  # noqa: PTH110 (does not raise if the name is too long)
        return path
    if path.name != written:
        raise InputError(written, "no such file or folder", "Check the path.")
    config = read_config(Path.cwd(), env)
    skills = config.skills_dir or Path.cwd() / DEFAULT_SKILLS
    if os.path.isdir(skills / written):  # noqa: PTH112
        return skills / written
    raise InputError(
        written,
        f"no such folder, and no skill of this name in {shown(skills)}",
        "Check the name; pytest-upskill list shows all skills.",
    )
