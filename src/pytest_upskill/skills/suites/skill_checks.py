"""What foreign forms expect of an agent that has the skill: that it opens it,
and runs its scripts.

No baseline could pass such checks, so they are in ``with_skill``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ..._util.json_forms import Location
from ..folder import contents_of, is_skill, skill_file
from ..skill import name_of
from .json_files import Unknown

WISHES: Final = (
    "should_trigger",
    "should_activate",
    "should_fire",
    "skill_should_trigger",
)
# names; null or another's: stays closed
_SKILLS: Final = ("expected_skill", "expected_skills")
_PATHS: Final = {
    "expected_script": "scripts_run",
    "expected_scripts": "scripts_run",
    "expected_references": "references_read",
}
_OF_FILE: Final = ("skill_name", "skill")  # keys of a file that name the skill
_MEMBERS: Final = ("skills/*/SKILL.md", "*/SKILL.md")  # the skills of a bundle
OF_SKILL: Final = frozenset({*WISHES, *_SKILLS, *_PATHS})


class OwnSkill(NamedTuple):
    """The skill that a file of cases is about."""

    folder: Path
    names: frozenset[str] = frozenset()
    told: str = ""  # by which name cases call it, if that is none of its own
    # Names of the skills, if it is a bundle
    members: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def of(cls, folder: Path, data: Any, entries: Iterable[Any]) -> "OwnSkill":
        """``data`` is the whole file: it may name the skill.

        A skill that was renamed may still have the end of its name in all of its cases.
        """
        wanted = {
            plain_name(name)
            for entry in entries
            if isinstance(entry, dict) and entry.get(WISHES[0]) is not False
            for name in names_in(entry)
        }
        if wanted and not is_skill(folder):
            files = (file for pattern in _MEMBERS for file in folder.glob(pattern))
            members = {plain_name(name): name for name in map(name_of, files)}
            if members:
                return cls(folder, frozenset(members), members=members)
        written = [data.get(key) for key in _OF_FILE] if isinstance(data, dict) else []
        if is_skill(folder):
            written += [folder.name, *([name_of(skill_file(folder))] if wanted else [])]
        names = {
            plain_name(name)
            for name in written
            if isinstance(name, str) and name.strip()
        }
        if wanted & names or len(wanted) != 1:
            return cls(folder, frozenset(names))
        (told,) = wanted
        if names and not any(
            name.endswith(told) or told.endswith(name) for name in names
        ):
            return cls(folder, frozenset(names))
        return cls(folder, frozenset({*names, told}), told)

    @property
    def warnings(self) -> Iterator[tuple[int, str]]:
        if self.told:
            problem = f"no case names this skill, so {self.told} is taken for it"
            yield 1, problem


def should_open(entry: Mapping[str, Any], skill: OwnSkill) -> bool | None:
    """Whether a case wants the skill to be opened; None if it does not say."""
    for key in WISHES:
        if isinstance(entry.get(key), bool):
            return bool(entry[key])
    if not skill.names or not any(key in entry for key in _SKILLS):
        return None
    return any(plain_name(name) in skill.names for name in names_in(entry))


def has_wish(entry: Mapping[str, Any]) -> bool:
    """Whether a case says if the skill should be opened."""
    return any(key in entry for key in (*WISHES, *_SKILLS))


def has_paths(entry: Mapping[str, Any]) -> bool:
    """Whether a case wants files of the skill to be used."""
    return any(entry.get(key) for key in _PATHS)


def skill_checks(
    entry: Mapping[str, Any], place: Location, skill: OwnSkill, unknown: Unknown
) -> dict[str, Any]:
    """The checks of ``with_skill``; files that the skill does not have are left out,
    and told.
    """
    checks = dict[str, Any]()
    wish = should_open(entry, skill)
    names = [skill.members.get(plain_name(name), "") for name in names_in(entry)]
    if wish and (opened := [{"skill_opened": name} for name in names if name]):
        checks |= opened[0] if len(opened) == 1 else {"any_of": opened}
    elif wish is not None:
        checks["skill_activated"] = wish
    elif others := names_in(entry):
        unknown.leave_out(
            "expected_skill", f"not known to be this skill: {others[0]}", place
        )
    for key, name in _PATHS.items():
        for path in _texts(entry.get(key)):
            if file := _file_of(skill.folder, path):
                checks.setdefault(name, []).append(file)
            else:
                unknown.leave_out(key, f"no such file in the skill: {path}", place)
    return checks


def names_in(entry: Mapping[str, Any]) -> list[str]:
    return [name for key in _SKILLS for name in _texts(entry.get(key))]


def _texts(value: Any) -> list[str]:
    texts: Sequence[Any] = value if isinstance(value, list) else [value]
    stripped = [text.strip() for text in texts if isinstance(text, str)]
    return [text for text in stripped if text.lower() not in ("", "none", "null")]


def plain_name(name: str) -> str:
    """A name without the folder, the plugin or the slash that may be around it."""
    path = PurePosixPath(name.strip())
    name = path.parent.name if path.name.lower() == "skill.md" else path.name
    return name.rpartition(":")[2].casefold()


def _file_of(folder: Path, written: str) -> str:
    """The file of the skill that is meant, by its path or its name;
    empty if there is none.
    """
    wanted = written.split()[0].removeprefix("./")
    files = [file.relative_to(folder).as_posix() for file in contents_of(folder).files]
    inside = f"/{wanted}".partition(f"/{folder.name}/")[2]
    for path in (wanted, inside):
        if path in files:
            return path
    same = [path for path in files if PurePosixPath(path).name == wanted]
    return same[0] if len(same) == 1 else ""
