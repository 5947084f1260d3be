"""Makes the arms of a run: what all of them share,
and what of a skill belongs to its cases.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from posixpath import join, normpath
from typing import Any, Final

from .._util.files import resolved
from ..errors import Setting, SettingsError, SkillError, shown
from ..settings import Settings
from ..skills.bundle import Bundle, load_bundle
from ..skills.case import Case
from ..skills.case_files import is_path
from ..skills.folder import skill_file
from ..skills.noise import noise_for
from ..skills.search import find_skills
from ..skills.skill import Skill, name_of
from ..skills.suites.reading import read_suites
from ..trials.arm import BASELINE, SKILL, Arm, SkillCopy, arms_of, by_name, copies_of

FIXTURES: Final = "fixtures"  # in a skill's folder: what cases start from, by its name
_MAX_DEPTH: Final = 20  # of checks in which files are looked for


class ArmMaker:
    """Makes the arms of a run, each set of them once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: dict[tuple[object, ...], tuple[Arm, ...]] = {}

    @cached_property
    def _in_all_arms(self) -> tuple[SkillCopy, ...]:
        return _skills_with(self._settings.with_skills)

    @property
    def others(self) -> list[str]:
        """The names of the skills that are installed in all arms, without bundled
        ones.
        """
        return [skill.name for skill in self._in_all_arms]

    def arms(
        self,
        skill: Skill,
        cases: Sequence[Case] | None = None,
        neighbours: tuple[SkillCopy, ...] = (),
        *,
        agents: bool = False,
        case_files: Iterable[Path] = (),
    ) -> tuple[Arm, ...]:
        """The arms of a skill, for plain completions and, if there are any,
        for ``agents``.

        ``cases`` are the skill's own by default: their files are not installed,
        nor are those of ``case_files``. ``neighbours`` are in all arms, like
        the skills of the settings.
        """
        if not agents:
            return arms_of(skill, self._settings)
        own = own_cases(skill.folder) if cases is None else cases
        inside = (file for file in case_files if file.is_relative_to(skill.folder))
        suites = sorted(file.relative_to(skill.folder).as_posix() for file in inside)
        without = (*files_of_cases(skill, own), *_files_of_members(skill), *suites)
        key = skill.file, skill.digest, skill.previous, without, neighbours
        if key not in self._made:
            files = (skill_file(Path(neighbour.folder)) for neighbour in neighbours)
            self.require_apart([*(member.file for member in skill.members), *files])
            beside = self.beside([member.name for member in skill.members], neighbours)
            self._made[key] = arms_of(
                skill, self._settings, beside, without, agents=True
            )
        return self._made[key]

    def with_own(self, arms: Sequence[Arm], case: Case) -> tuple[Arm, ...]:
        """Arms of a skill for a case that has skills of its own, beside the tested
        one.
        """
        # A task's are replaced by the skill under test
        if not case.skills or case.is_task:
            return tuple(arms)
        copies = copies_of(load_bundle(Path(case.skills), self._settings))
        return tuple(
            replace(arm, skills=by_name(*arm.skills, *copies)) if arm.tested else arm
            for arm in arms
        )

    def of_task(self, case: Case, *, compared: bool) -> tuple[Arm, ...]:
        """The arms of a task: they differ by its skills.
        SkillError if these can't be read.

        A task without skills has one arm, unless something else is ``compared``.
        """
        if case.skills:
            bundle = load_bundle(Path(case.skills), self._settings)
            return self.arms(bundle, (), agents=True)
        skills = by_name(*self.beside(()))
        alone = Arm(SKILL, skills=skills)
        return (Arm(BASELINE, skills=skills), alone) if compared else (alone,)

    def beside(
        self, names: Sequence[str], neighbours: tuple[SkillCopy, ...] = ()
    ) -> tuple[SkillCopy, ...]:
        """All that is installed beside skills; SettingsError if
        there is not enough noise.
        """
        skills = [*self._in_all_arms, *neighbours]
        number = self._settings.noise
        if not number:
            return tuple(skills)
        noise = noise_for(number, [*names, *(skill.name for skill in skills)])
        if len(noise) < number:
            have = f"only {len(noise)} of the unrelated skills"
            problem = f"{have} have names of their own here"
            raise SettingsError("noise", problem, "Ask for fewer.", value=str(number))
        skills += [SkillCopy.bundled(skill.name, skill.text) for skill in noise]
        return tuple(skills)

    def require_apart(self, tested: Iterable[Path]) -> None:
        """SettingsError if a tested skill is also installed in the baseline."""
        for file in tested:
            name = name_of(file)
            self.beside([name])
            for skill in self._in_all_arms:
                folder = Path(skill.folder)
                if resolved(folder) == resolved(file.parent):
                    problem = "this skill is tested, so the baseline must not have it"
                elif skill.name == name:
                    skill_of_name = f"a skill of this name ({name})"
                    problem = f"{skill_of_name} is tested, and names must differ"
                else:
                    continue
                hint = ("Leave it out of ", Setting("with_skills"), ".")
                raise SettingsError("with_skills", problem, hint, value=shown(folder))


def files_of_cases(skill: Skill, cases: Iterable[Case]) -> tuple[str, ...]:
    """Paths in the skill's folder that belong to its cases, not to the skill.

    A file that SKILL.md names belongs to the skill, even if a check compares with it.
    """
    spaces = {FIXTURES}
    answers: set[str] = set()
    for case in cases:
        if case.workspace:
            spaces.add(normpath(case.workspace))
        answers.update(map(normpath, _answers(case.expected)))
        if case.reference:
            answers.update(map(normpath, case.reference.sources))
    named = {path for path, _ in skill.references}
    named |= {file.path for file in skill.unseen}
    return tuple(sorted(spaces | (answers - named)))


def _files_of_members(skill: Skill) -> list[str]:
    """Paths in the folder of a bundle that belong to cases of its skills."""
    if not isinstance(skill, Bundle):
        return []
    return [
        join(place, path)
        for member, place in zip(skill.members, skill.places, strict=True)
        for path in files_of_cases(member, own_cases(member.folder))
    ]


def own_cases(folder: Path) -> Sequence[Case]:
    """The cases of a skill's own file; none if it can't be read,
    which its tests report.
    """
    suite = read_suites(folder).cases
    return suite.cases if suite else ()


def _answers(expected: Any, depth: int = 0) -> Iterator[str]:
    """The files that checks compare with, add or run:
    an agent that reads them knows the answer.
    """
    if depth > _MAX_DEPTH:
        return
    if isinstance(expected, list):
        for item in expected:
            yield from _answers(item, depth + 1)
    elif isinstance(expected, dict):
        for name, value in expected.items():
            if name in ("equals_file", "file") and isinstance(value, str):
                yield value
            elif name == "hidden_files" and isinstance(value, str | list):
                yield from filter(
                    is_path, [value] if isinstance(value, str) else map(str, value)
                )
            elif name == "verifier" and isinstance(value, dict):
                yield from PurePosixPath(str(value.get("run"))).parts[:1]  # its folder
            yield from _answers(value, depth + 1)


def _skills_with(paths: Iterable[Path]) -> tuple[SkillCopy, ...]:
    """The skills of the setting ``with_skills``, sorted by name."""
    folders: dict[str, Path] = {}
    for path in paths:
        try:
            files = find_skills(path).files
        except SkillError as error:
            raise SettingsError(
                "with_skills", error.problem, error.hint, value=error.where
            ) from None
        for file in files:
            name, folder = name_of(file), file.parent
            if resolved(folders.setdefault(name, folder)) != resolved(folder):
                problem = f"{shown(folders[name])} has the same name ({name})"
                hint = "Leave one of them out."
                raise SettingsError("with_skills", problem, hint, value=shown(folder))
    return tuple(SkillCopy.of(name, folders[name]) for name in sorted(folders))
