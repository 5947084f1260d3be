"""Skills with their cases, as studies load them: of a skill, a bundle, a set of
tasks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..agents.task_sandbox import skipped_if_unrunnable
from ..checks import CheckedCase, checked_suite, runnable_in
from ..errors import InputError, shown
from ..settings import Score, Settings
from ..skills.bundle import Bundle, load_bundle
from ..skills.context import load_for_run
from ..skills.skill import Skill
from ..skills.suites.reading import read_suite, read_suites
from ..skills.task_set import load_task_set
from ..trials.plan import SkillInfo, score_of
from ..trials.subject import Subject
from .evaluate import asked_cases
from .open_run import AskedSkill


@dataclass(frozen=True)
class SkillCases:
    """A skill that is studied, and its cases; it may have none."""

    label: str  # its name in reports
    skill: Skill
    cases: tuple[CheckedCase, ...]
    score: Score = "pass"
    path: Path = Path()  # of the cases

    def cases_for(self, subject: Subject, model_id: str) -> tuple[CheckedCase, ...]:
        """The cases for a subject, the same as in a run of tests."""
        return asked_cases(self.cases, subject, model_id)

    @property
    def info(self) -> SkillInfo:
        path = shown(self.skill.folder)
        return SkillInfo.of(self.skill, self.label, path, score=self.score)

    @property
    def tested(self) -> AskedSkill:
        cases = [(self.path, case) for case, _ in self.cases]
        return AskedSkill(self.label, cases, lambda: self.skill.tokens)


def load_skill_cases(file: Path, label: str, settings: Settings) -> SkillCases:
    """The skill of a SKILL.md with its own cases; InputError if one of its files is
    broken.
    """
    cases, path = _read_cases(file.parent)
    score = score_of(settings.score, [case for case, _ in cases])
    skill = load_for_run(file, settings)
    return SkillCases(label, skill, cases, score=score, path=path or file)


def load_bundle_cases(root: Path, label: str, settings: Settings) -> SkillCases:
    """A bundle with its own cases, or else with those of its skills."""
    bundle = load_bundle(root, settings)
    cases, path = _read_cases(root)
    cases = cases or tuple(_cases_of_members(bundle))
    score = score_of(settings.score, [case for case, _ in cases])
    return SkillCases(label, bundle, cases, score=score, path=path or root)


def _cases_of_members(bundle: Bundle) -> Iterator[CheckedCase]:
    for member in bundle.members:
        for case, checks in _read_cases(member.folder)[0]:
            yield replace(case, id=f"{member.name}/{case.id}"), checks


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
