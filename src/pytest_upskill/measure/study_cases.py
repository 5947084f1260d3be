"""Skills with their cases, as studies load them: of a skill, a bundle, a set of
tasks.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from ..agents.task_sandbox import skipped_if_unrunnable
from ..checks import CheckedCase, checked_suite, runnable_in
from ..errors import InputError, shown
from ..settings import Score, Settings
from ..skills.bundle import Bundle, load_entry
from ..skills.skill import Skill
from ..skills.suites.reading import read_suite, read_suites
from ..skills.task_set import load_task_set
from ..trials.plan import SkillInfo, score_of
from .open_run import AskedSkill


@dataclass(frozen=True)
class SkillCases:
    """A skill that is studied, and its cases; it may have none."""

    label: str  # its name in reports
    skill: Skill
    cases: tuple[CheckedCase, ...]
    score: Score = "pass"
    path: Path = Path()  # of the cases

    @property
    def info(self) -> SkillInfo:
        path = shown(self.skill.folder)
        return SkillInfo.of(self.skill, self.label, path, score=self.score)

    @property
    def tested(self) -> AskedSkill:
        cases = [(self.path, case) for case, _ in self.cases]
        return AskedSkill(self.label, cases, lambda: self.skill.tokens)


def load_skill_cases(entry: Path, label: str, settings: Settings) -> SkillCases:
    """A skill with its own cases, or a bundle, perhaps with those of its skills.

    InputError if a file is broken.
    """
    skill = load_entry(entry, settings)
    own, path = _read_cases(skill.folder)
    cases = list(own)
    if isinstance(skill, Bundle) and not own:
        for member in skill.members:
            for case, checks in _read_cases(member.folder)[0]:
                cases.append((replace(case, id=f"{member.name}/{case.id}"), checks))
    score = score_of(settings.score, [case for case, _ in cases])
    return SkillCases(label, skill, tuple(cases), score=score, path=path or entry)


def _read_cases(folder: Path) -> tuple[tuple[CheckedCase, ...], Path | None]:
    """The cases in a skill's folder, and where they are."""
    suite = read_suites(folder).cases
    if suite is None:
        return (), None
    return tuple(runnable_in(suite)) if suite.has_cases else (), suite.path


def load_task_set_cases(path: Path, settings: Settings) -> tuple[SkillCases, ...]:
    """The tasks of a path that have skills, and those that have none;
    InputError if one is broken.

    Those that can't run here are skipped.
    """
    tasks = load_task_set(path)
    suite = read_suite(path, path)
    if suite is None:
        hint = "Name a task, or a folder of tasks."
        raise InputError(shown(path), "no tasks here", hint)

    with_skills: list[CheckedCase] = []
    without: list[CheckedCase] = []
    for of_file in checked_suite(suite):
        for case, checks in of_file.require_all():
            image = settings.image or ""
            task = skipped_if_unrunnable(case, settings.sandbox, image)
            (with_skills if task.skills else without).append((task, checks))
    score = score_of(settings.score, [case for case, _ in (*with_skills, *without)])
    groups = {tasks.name: with_skills, f"{tasks.name} (no skills)": without}
    sources = []
    for name, own in groups.items():
        if own:
            skill = replace(tasks, name=name)
            source = SkillCases(name, skill, tuple(own), score=score, path=suite.path)
            sources.append(source)
    return tuple(sources)
