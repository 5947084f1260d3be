"""What a project says of itself: pytest's ini file, kept runs, skills by name."""

import configparser
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..errors import InputError, shown
from ..results.history import default_folder
from ..skills.upskill_config import read_config

# In the order in which pytest looks, each with the tables of pytest in it.
_TABLES: Final = {
    "pytest.toml": (("pytest",),),
    ".pytest.toml": (("pytest",),),
    "pytest.ini": (("pytest",),),
    ".pytest.ini": (("pytest",),),
    "pyproject.toml": (("tool", "pytest", "ini_options"), ("tool", "pytest")),
    "tox.ini": (("pytest",),),
    "setup.cfg": (("tool:pytest",),),
}
INI_FILES: Final = tuple(_TABLES)
_DEFAULT_SKILLS: Final = "skills"  # where upskill keeps them if nothing is said


def ini_paths(start: Path, key: str) -> list[Path]:
    """The paths under a key of the ini file, as seen from its folder."""
    folder, value = _found(start, key)
    names = value.split() if isinstance(value, str) else value
    return [folder / name for name in names] if isinstance(names, list) else []


def ini_lines(start: Path, key: str) -> list[str]:
    """The lines under a key of the ini file, without empty ones."""
    value = _found(start, key)[1]
    lines = value.splitlines() if isinstance(value, str) else value
    return [str(line) for line in lines if str(line).strip()] if isinstance(lines, list) else []


def _found(start: Path, key: str) -> tuple[Path, Any]:
    """The folder of the ini file that pytest would read if it were called here, and a value of it.

    A file that can't be read counts as none: pytest tells what is wrong with it, better than
    here.
    """
    for folder in (start, *start.parents):
        for name, tables in _TABLES.items():
            table = _table(folder / name, tables)
            if table is not None:
                return folder, table.get(key, [])
    return start, []


def project_root(start: Path) -> Path:
    """The folder of the ini file, or else of the git repository, or else the top of all."""
    above = (start, *start.parents)
    with_ini = (f for f in above if any(_table(f / n, t) is not None for n, t in _TABLES.items()))
    with_git = (folder for folder in above if (folder / ".git").exists())
    return next(with_ini, None) or next(with_git, above[-1])


def _table(file: Path, tables: tuple[tuple[str, ...], ...]) -> dict[str, Any] | None:
    """What stands in the file for pytest; None if nothing does."""
    try:
        text = file.read_text("utf-8-sig")
        data = tomllib.loads(text) if file.suffix == ".toml" else _ini(text)
    except (OSError, ValueError, configparser.Error):
        return None
    for path in tables:
        here: Any = data
        for step in path:
            here = here.get(step) if isinstance(here, dict) else None
        if isinstance(here, dict):
            return here
    return {} if "pytest" in file.stem else None  # such a file is pytest's own, even if empty


def _ini(text: str) -> dict[str, Any]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


def runs_folder(given: Path | None, start: Path) -> Path:
    """The folder of kept runs: the one that was named, on the command line, in the ini file of
    pytest or in upskill.config.yaml; else the nearest, here or above."""
    if given is not None:
        if not given.is_dir():
            raise InputError(f"--dir {given}", "there is no such folder", "Check the path.")
        return given
    named = [*ini_paths(start, "skill_runs_dir"), read_config(start, os.environ).runs_dir]
    if chosen := next(filter(None, named), None):
        return chosen
    root = project_root(start)
    inside = [folder for folder in (start, *start.parents) if folder.is_relative_to(root)]
    folders = map(default_folder, inside)
    return next((folder for folder in folders if folder.is_dir()), default_folder(start))


def find_skill(written: str, env: Mapping[str, str]) -> Path:
    """A path as it is; a bare name may be that of a skill in skills_dir."""
    path = Path(written)
    if not written.strip():  # an unset variable of a CI job, most often
        raise InputError("SKILL", "nothing is given", "Name a skill, or its folder.")
    if os.path.exists(path):  # noqa: PTH110 (does not raise at a name that is too long)
        return path
    if path.name != written:
        raise InputError(written, "there is no such file or folder", "Check the path.")
    config = read_config(Path.cwd(), env)
    kept = config.skills_dir or Path.cwd() / _DEFAULT_SKILLS
    if os.path.isdir(kept / written):  # noqa: PTH112
        return kept / written
    raise InputError(
        written,
        f"there is no such folder, and no skill of this name in {shown(kept)}",
        "Check the name; pytest-upskill list shows those that there are.",
    )
