"""A project: where it keeps its runs and its skills, and the ini file of pytest.

The file is read and edited without loading pytest.
"""

import os
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from iniconfig import IniConfig, ParseError

from .._util.files import read_file
from .._util.keys import shown_command
from ..errors import InputError, SkillError, shown
from ..results.history import default_folder
from ..settings import INI_FILES
from ..skills.named_skill import path_or_name, require_text, skills_dir
from ..skills.search import find_skills
from ..skills.upskill_config import UpskillConfig, read_config


def config_here() -> UpskillConfig:
    return read_config(Path.cwd(), os.environ)


def project_root(start: Path) -> Path:
    """The folder of the ini file, else that of the git repository, else the root."""
    above = (start, *start.parents)
    with_ini = filter(has_ini_file, above)
    with_git = (folder for folder in above if (folder / ".git").exists())
    return next(with_ini, None) or next(with_git, above[-1])


def root_of_run(start: Path) -> Path:
    """Where a run from here keeps its answers, as pytest does: without a project,
    right here.
    """
    root = project_root(start)
    return start if root == Path(start.anchor) else root


def runs_folder(folder: Path | None, start: Path) -> Path:
    """The folder of kept runs: this one, else that of the ini file or
    upskill.config.yaml, else the nearest one here or in a parent folder.
    """
    if folder is not None:
        if not folder.is_dir():
            raise InputError(f"--dir {folder}", "no such folder", "Check the path.")
        return folder
    named = [
        *ini_paths(start, "skill_runs_dir"),
        read_config(start, os.environ).runs_dir,
    ]
    if chosen := next(filter(None, named), None):
        return chosen
    root = project_root(start)
    above = [
        parent for parent in (start, *start.parents) if parent.is_relative_to(root)
    ]
    return next(filter(Path.is_dir, map(default_folder, above)), default_folder(start))


def find_skill(written: str, env: Mapping[str, str]) -> Path:
    """A path, or the skill of this name in the project's folders of skills."""
    require_text(written)
    if os.path.lexists(written):  # as it is written
        return Path(written)
    here = Path.cwd()
    path = Path(os.path.abspath(written))  # noqa: PTH100
    folders = [skills_dir(here, env), *ini_paths(here, "skill_paths")]
    return path_or_name(path, here, folders)


def find_one_skill(written: str, env: Mapping[str, str], command: str) -> Path:
    """The SKILL.md that is meant; InputError if there is none, or several."""
    path = find_skill(written, env).resolve()
    try:
        first, *others = find_skills(path).files
    except SkillError as error:
        hint = (
            "A skill is a folder with a SKILL.md. To start one: pytest-upskill init"
            " my-skill"
        )
        raise InputError(path, error.problem, hint) from None
    if others:
        words = shown_command(["pytest-upskill", command, shown(first.parent)])
        raise InputError(
            path, f"{1 + len(others):,} skills are here", f"Name one: {words}"
        )
    return first


# The ini file.

MAX_BYTES: Final = 10_000_000
# Where an ini file has its settings for pytest; the first is the one for a new table.
_TABLES: Final = {
    **dict.fromkeys(INI_FILES, (("pytest",),)),
    "pyproject.toml": (("tool", "pytest", "ini_options"), ("tool", "pytest")),
    "setup.cfg": (("tool:pytest",),),
}
# What no ini file gives a meaning of its own
_PLAIN: Final = re.compile(r"[\w./@:+ -]+")


def ini_settings(start: Path) -> tuple[Path, dict[str, Any]] | None:
    """The ini file that pytest would use here, and what it says to pytest;
    None if there is none.

    A file that can't be read is ignored: pytest reports it better.
    """
    for folder in (start, *start.parents):
        for name in _TABLES:
            if (table := _table_of(folder / name)) is not None:
                return folder / name, table
    return None


def has_ini_file(folder: Path) -> bool:
    return any(_table_of(folder / name) is not None for name in _TABLES)


def ini_paths(start: Path, key: str) -> list[Path]:
    """The paths under a key of the ini file, relative to its folder."""
    file, value = _value_of(start, key)
    names = value.split() if isinstance(value, str) else value
    return [file.parent / name for name in names] if isinstance(names, list) else []


def ini_lines(start: Path, key: str) -> tuple[Path, list[str]]:
    """The ini file, and its lines under a key without empty ones."""
    file, value = _value_of(start, key)
    lines = value.splitlines() if isinstance(value, str) else value
    texts = map(str, lines if isinstance(lines, list) else [])
    return file, [text for text in texts if text.strip()]


def _value_of(start: Path, key: str) -> tuple[Path, Any]:
    file, settings = ini_settings(start) or (start / INI_FILES[0], {})
    return file, settings.get(key, [])


def _table_of(file: Path) -> dict[str, Any] | None:
    """The file's table for pytest; None if it has none."""
    try:
        data = _parsed(file.name, read_file(file, MAX_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError, ParseError):
        return None
    for path in _TABLES[file.name]:
        if (table := _table_at(data, path)) is not None:
            return table
    # pytest's own file counts even if it is empty
    return {} if "pytest" in file.stem else None


def _parsed(name: str, text: str) -> dict[str, Any]:
    if name.endswith(".toml"):
        return tomllib.loads(text)
    return {
        section.name: dict(section.items()) for section in IniConfig(name, data=text)
    }


def _table_at(data: Any, path: Sequence[str]) -> dict[str, Any] | None:
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else None


def require_ini_outside(start: Path, skill: Path) -> None:
    """Refuse to start pytest with settings of a skill: they can name code."""
    folder = os.path.realpath(skill.parent if skill.is_file() else skill)
    file, _ = _value_of(start, "")
    if file.is_file() and Path(os.path.realpath(file)).is_relative_to(folder):
        raise InputError(
            file,
            f"ini file inside the skill {shown(skill)}: its settings can run code",
            "Run this command from outside of the skill, or add -- --skill-allow-code "
            "if you trust its author.",
        )


class CannotEdit(Exception):
    """The keys can't be added; says why."""


def with_keys(name: str, text: str, keys: Mapping[str, str]) -> str:
    """The text of a file of this name with these keys of lists,
    none of which it has yet.

    Comments and formatting stay; what it says is read back to be sure of it.
    """
    is_toml = name.endswith(".toml")
    values = {
        key: [value] if is_toml else _ini_value(key, value)
        for key, value in keys.items()
    }
    add = _with_toml_keys if is_toml else _with_ini_keys
    try:
        data = _parsed(name, text.removeprefix("\ufeff"))
        path = next(
            (p for p in _TABLES[name] if _table_at(data, p) is not None),
            _TABLES[name][0],
        )
        edited = add(text, path, values)
        table = _table_at(_parsed(name, edited.removeprefix("\ufeff")), path) or {}
        edited.encode("utf-8")
    except (ValueError, ParseError, RecursionError) as error:
        problem = str(error).splitlines()[0]
        raise CannotEdit(f"not valid: {problem}") from None
    if table != {**(_table_at(data, path) or {}), **values}:
        raise CannotEdit(
            "pytest's settings are written in a way that can't be added to safely"
        )
    return edited


def block(name: str, keys: Mapping[str, str]) -> str:
    """The lines for these keys, as a file of this name has them."""
    added = with_keys(name, "", keys)
    return added.partition("\n")[2].rstrip("\n")


def _with_toml_keys(
    text: str, path: Sequence[str], values: Mapping[str, object]
) -> str:
    import tomlkit

    windows = text.count("\n") == text.count("\r\n") > 0
    document = tomlkit.parse(text.replace("\r\n", "\n") if windows else text)
    table: Any = document
    for number, step in enumerate(path, start=1):
        if step not in table:
            table[step] = tomlkit.table(is_super_table=number < len(path))
        table = table[step]
    # Comments at the end of a table are about the next one.
    body, tail = table.value.body, []
    while body and body[-1][0] is None:
        tail.append(body.pop())
    table.update(values)
    body += reversed(tail)
    edited = tomlkit.dumps(document)
    return edited.replace("\n", "\r\n") if windows else edited


def _with_ini_keys(text: str, path: Sequence[str], values: Mapping[str, object]) -> str:
    line_end = "\r\n" if "\r\n" in text else "\n"
    added = "".join(f"{key} = {value}{line_end}" for key, value in values.items())
    header = re.search(rf"^\[{re.escape(path[0])}\][^\n]*(\n|\Z)", text, re.M)
    if header:
        start = text[: header.end()]
        gap = "" if start.endswith("\n") else line_end
        return f"{start}{gap}{added}{text[header.end() :]}"
    gap = line_end * (2 - text[-2:].count("\n")) if text else ""
    return f"{text}{gap}[{path[0]}]{line_end}{added}"


def _ini_value(key: str, value: str) -> str:
    if not _PLAIN.fullmatch(value):
        raise CannotEdit(f"{key}: such a name has no place in an ini file")
    # Paths are split as by a shell
    return shlex.quote(value) if key == "skill_paths" else value
