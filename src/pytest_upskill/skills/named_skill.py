"""A skill by its path or by its name in a project."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from .._util.files import resolved
from .._util.texts import first_few, guess, one_line
from ..errors import InputError, SkillError, shown
from .search import find_skills, no_such_path
from .skill import Skill, name_of
from .upskill_config import read_config

DEFAULT_SKILLS: Final = "skills"  # upskill's default
_MOST_NAMED: Final = 3


def named_once(skills: Iterable[Skill]) -> dict[str, Skill]:
    """Each skill once, by its name; InputError if two have the same name."""
    by_name: dict[str, Skill] = {}
    for skill in skills:
        folder, same_name = (
            skill.file.parent,
            by_name.setdefault(skill.name, skill).file.parent,
        )
        if resolved(folder) != resolved(same_name):
            problem = (
                f"{shown(same_name)} has the same name ({one_line(skill.name, 60)})"
            )
            hint = "Agents know skills by their names, so rename one, or leave it out."
            raise InputError(shown(folder), problem, hint)
    return by_name


def require_text(written: str) -> None:
    if not written.strip():  # mostly an unset variable of a CI job
        raise InputError("SKILL", "must not be empty", "Name a skill, or its folder.")


def skills_dir(here: Path, env: Mapping[str, str]) -> Path:
    """The folder of skills of a project that names no other."""
    return read_config(here, env).skills_dir or here / DEFAULT_SKILLS


def path_or_name(path: Path, here: Path, folders: Iterable[Path]) -> Path:
    """A path that exists, else the skill of this name in these folders,
    else below ``here``.

    Only the name of an entry right ``here`` can be that of a skill.
    """
    if os.path.lexists(path):
        return path
    if path.parent != here:
        raise no_such_path(path)
    name, names = path.name, list[str]()
    everywhere = here in (Path.home(), Path(here.anchor))  # too much to search
    for folder in dict.fromkeys([*folders, *([] if everywhere else [here])]):
        if os.path.isdir(folder / name):  # noqa: PTH112 (does not raise if the name is too long)
            return folder / name
        by_folder = {
            file.parent: {file.parent.name, name_of(file)}
            for file in _skills_of(folder)
        }
        matches = [skill for skill, known_as in by_folder.items() if name in known_as]
        if len(matches) > 1:
            paths = first_few([shown(match) for match in matches], _MOST_NAMED)
            hint = f"Name its folder: {paths}"
            raise SkillError(name, f"{len(matches)} skills have this name", hint)
        if matches:
            return matches[0]
        names += [known for known_as in by_folder.values() for known in known_as]
    raise SkillError(
        one_line(name, 200),
        f"no such file or folder, and no skill of this name{guess(name, names)}",
        "pytest-upskill list shows all skills.",
    )


def _skills_of(folder: Path) -> tuple[Path, ...]:
    try:
        return find_skills(folder).files
    except SkillError:
        return ()
