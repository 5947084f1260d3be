"""Settings of a project, without loading pytest: its ini file, kept runs, skills by name."""

import configparser
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .._util.files import read_file
from ..errors import InputError, shown
from ..results.history import default_folder
from ..settings import INI_FILES
from ..skills.upskill_config import read_config

_LONGEST: Final = 10_000_000  # bytes
# Where an ini file has its settings for pytest.
TABLES: Final = {
    **dict.fromkeys(INI_FILES, (("pytest",),)),
    "pyproject.toml": (("tool", "pytest", "ini_options"), ("tool", "pytest")),
    "setup.cfg": (("tool:pytest",),),
}
DEFAULT_SKILLS: Final = "skills"  # upskill's default


def ini_paths(start: Path, key: str) -> list[Path]:
    """The paths under a key of the ini file, relative to its folder."""
    file, value = _found(start, key)
    names = value.split() if isinstance(value, str) else value
    return [file.parent / name for name in names] if isinstance(names, list) else []


def ini_lines(start: Path, key: str) -> tuple[Path, list[str]]:
    """The ini file, and its lines under a key without empty ones."""
    file, value = _found(start, key)
    lines = value.splitlines() if isinstance(value, str) else value
    listed = lines if isinstance(lines, list) else []
    return file, [str(line) for line in listed if str(line).strip()]


def _found(start: Path, key: str) -> tuple[Path, Any]:
    """The ini file that pytest would use here, and the value of a key."""
    found = ini_settings(start)
    return (found[0], found[1].get(key, [])) if found else (start / INI_FILES[0], [])


def ini_settings(start: Path) -> tuple[Path, dict[str, Any]] | None:
    """The ini file that pytest would use here, and what it says to pytest; None if there is none.

    A file that can't be read is ignored: pytest reports it better.
    """
    for folder in (start, *start.parents):
        for name, tables in TABLES.items():
            table = _table(folder / name, tables)
            if table is not None:
                return folder / name, table
    return None


def require_ini_outside(start: Path, skill: Path) -> None:
    """Refuse to start pytest with settings of a skill: they can name code."""
    folder = os.path.realpath(skill.parent if skill.is_file() else skill)
    file, _ = _found(start, "")
    if file.is_file() and Path(os.path.realpath(file)).is_relative_to(folder):
        raise InputError(
            file,
            f"ini file inside the skill {shown(skill)}: its settings can run code",
            "Run this command from outside of the skill, or add -- --skill-allow-code "
            "if you trust its author.",
        )


def project_root(start: Path) -> Path:
    """The folder of the ini file, else that of the git repository, else the root."""
    above = (start, *start.parents)
    with_ini = (f for f in above if any(_table(f / n, t) is not None for n, t in TABLES.items()))
    with_git = (folder for folder in above if (folder / ".git").exists())
    return next(with_ini, None) or next(with_git, above[-1])


def root_of_run(start: Path) -> Path:
    """Where a run from here keeps its answers, as pytest does: without a project, right here."""
    root = project_root(start)
    return start if root == Path(start.anchor) else root


def _table(file: Path, tables: tuple[tuple[str, ...], ...]) -> dict[str, Any] | None:
    """The file's table for pytest; None if it has none."""
    try:
        text = read_file(file, _LONGEST).decode("utf-8-sig")
        data = tomllib.loads(text) if file.suffix == ".toml" else _ini(text)
    except (OSError, ValueError, configparser.Error):
        return None
    for path in tables:
        here: Any = data
        for step in path:
            here = here.get(step) if isinstance(here, dict) else None
        if isinstance(here, dict):
            return here
    return {} if "pytest" in file.stem else None  # pytest's own file counts even if it is empty


def _ini(text: str) -> dict[str, Any]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


def runs_folder(given: Path | None, start: Path) -> Path:
    """The folder of kept runs: the given one, else that of the ini file or upskill.config.yaml,
    else the nearest one here or in a parent folder."""
    if given is not None:
        if not given.is_dir():
            raise InputError(f"--dir {given}", "no such folder", "Check the path.")
        return given
    named = [*ini_paths(start, "skill_runs_dir"), read_config(start, os.environ).runs_dir]
    if chosen := next(filter(None, named), None):
        return chosen
    root = project_root(start)
    inside = [folder for folder in (start, *start.parents) if folder.is_relative_to(root)]
    folders = map(default_folder, inside)
    return next((folder for folder in folders if folder.is_dir()), default_folder(start))


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
    kept = config.skills_dir or Path.cwd() / DEFAULT_SKILLS
    if os.path.isdir(kept / written):  # noqa: PTH112
        return kept / written
    raise InputError(
        written,
        f"no such folder, and no skill of this name in {shown(kept)}",
        "Check the name; pytest-upskill list shows all skills.",
    )
