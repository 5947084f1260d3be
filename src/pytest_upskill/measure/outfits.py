"""What agents have in the trials of a run: their skills, and what these need."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from posixpath import normpath
from typing import Any, Final

from .._util.files import resolved
from ..errors import InputError, Setting, SettingsError, SkillError, shown
from ..settings import Settings
from ..skills.case import Case
from ..skills.case_files import is_path
from ..skills.case_loading import find_cases, load_cases
from ..skills.folder import skill_file
from ..skills.noise import noise_for
from ..skills.search import find_skills
from ..skills.skill import Skill, name_of
from ..trials.choice import Choice
from ..trials.subject import CHAT
from ..trials.task import Installed, Outfit, bundled, installed
from ..trials.trigger_trials import choice_of

FIXTURES: Final = "fixtures"  # in a skill's folder: what cases start from, by its name
_DEEPEST: Final = 20  # that files are looked for in checks


class Outfits:
    """The outfits of a run, each made once."""

    def __init__(self, settings: Callable[[], Settings], version_of: Callable[[str], str]) -> None:
        self._settings = settings
        self._version_of = version_of
        self._made: dict[tuple[object, ...], Outfit] = {}

    @cached_property
    def _others(self) -> tuple[Installed, ...]:
        return _others(self._settings().with_skills)

    @property
    def others(self) -> list[str]:
        """The names of the skills that are installed in all arms, without bundled ones."""
        return [skill.name for skill in self._others]

    def _beside(self, name: str, neighbours: tuple[Installed, ...] = ()) -> tuple[Installed, ...]:
        """All that is installed besides a skill; SettingsError if there is not so much noise."""
        others, wanted = (*self._others, *neighbours), self._settings().noise
        if not wanted:
            return others
        noise = noise_for(wanted, [name, *(one.name for one in others)])
        if len(noise) < wanted:
            problem = f"only {len(noise)} of the unrelated skills have names of their own here"
            raise SettingsError("noise", problem, "Ask for fewer.", value=str(wanted))
        return (*others, *(bundled(one.name, one.text) for one in noise))

    def of(
        self,
        agent: str,
        skill: Skill,
        cases: Sequence[Case] | None = None,
        neighbours: tuple[Installed, ...] = (),
    ) -> Outfit | None:
        """None for a plain completion. The default are the skill's own cases.

        ``neighbours`` are in all arms, besides the skills of the settings.
        """
        if agent == CHAT:
            return None
        without = files_of_cases(skill, _own_cases(skill) if cases is None else cases)
        key = agent, skill.file, without, neighbours
        if key not in self._made:
            self.require_apart([skill.file, *(skill_file(Path(one.folder)) for one in neighbours)])
            version = self._version_of(agent)
            others = self._beside(skill.name, neighbours)
            self._made[key] = Outfit.of(agent, version, skill, self._settings(), others, without)
        return self._made[key]

    def among(
        self, agent: str, skill: Skill, cases: Sequence[Case] | None = None
    ) -> Outfit | Choice:
        """What a query of a trigger is decided among: by an agent, or by a model without one."""
        outfit = self.of(agent, skill, cases)
        if outfit is None:
            self.require_apart([skill.file])
        return outfit or choice_of(skill, self._beside(skill.name))

    def require_apart(self, tested: Iterable[Path]) -> None:
        """SettingsError if a skill is tested and installed in the baseline, too."""
        folders = {resolved(Path(one.folder)): one.name for one in self._others}
        for file in tested:
            folder, name = resolved(file.parent), name_of(file)
            self._beside(name)
            problem = ""
            if folder in folders:
                problem = "this skill is tested, so the baseline must not have it"
            elif name in folders.values():
                problem = f"a skill of this name ({name}) is tested, and names must differ"
            if problem:
                other = next(
                    Path(one.folder)
                    for one in self._others
                    if one.name == name or resolved(Path(one.folder)) == folder
                )
                hint = ("Leave it out of ", Setting("with_skills"), ".")
                raise SettingsError("with_skills", problem, hint, value=shown(other))


def files_of_cases(skill: Skill, cases: Iterable[Case]) -> tuple[str, ...]:
    """Paths in the skill's folder that belong to its cases, not to the skill.

    What SKILL.md names is the skill's, even if a check compares with it.
    """
    spaces, answers = set[str](), set[str]()
    for case in cases:
        spaces |= {case.workspace} if case.workspace else set()
        answers |= set(_answers(case.expected))
    named = {path for path, _ in skill.references} | {file.path for file in skill.unseen}
    return tuple(sorted({FIXTURES, *map(normpath, spaces), *(set(map(normpath, answers)) - named)}))


def _own_cases(skill: Skill) -> Sequence[Case]:
    """Those of a skill's own file; none if it can't be read, which its own tests tell."""
    folder = skill.file.parent
    try:
        file = find_cases(folder)
        return load_cases(file, folder).cases if file else ()
    except InputError:
        return ()


def _answers(expected: Any, depth: int = 0) -> Iterator[str]:
    """The files that checks compare with or add: an agent that reads them knows the answer."""
    if depth > _DEEPEST:
        return
    if isinstance(expected, list):
        for one in expected:
            yield from _answers(one, depth + 1)
    elif isinstance(expected, dict):
        for name, value in expected.items():
            if name in ("equals_file", "file") and isinstance(value, str):
                yield value
            elif name == "hidden_files" and isinstance(value, str | list):
                yield from filter(is_path, [value] if isinstance(value, str) else map(str, value))
            yield from _answers(value, depth + 1)


def _others(paths: Iterable[Path]) -> tuple[Installed, ...]:
    """The skills of --skill-with, sorted by name."""
    found: dict[str, Path] = {}
    for path in paths:
        try:
            files = find_skills(path).files
        except SkillError as error:
            raise SettingsError(
                "with_skills", error.problem, error.hint, value=error.where
            ) from None
        for file in files:
            name, folder = name_of(file), file.parent
            if resolved(found.setdefault(name, folder)) != resolved(folder):
                problem = f"{shown(found[name])} has the same name ({name})"
                hint = "Leave one of them out."
                raise SettingsError("with_skills", problem, hint, value=shown(folder))
    return tuple(installed(name, found[name]) for name in sorted(found))
