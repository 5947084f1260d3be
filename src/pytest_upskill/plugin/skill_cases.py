"""The cases of a skill as a run tests them, and what is asked of each."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..checks import CheckedCase
from ..checks.grading import rubric_for
from ..results.planned_cases import case_digest, planned_case
from ..skills.case import Case
from ..skills.kinds import CASE
from ..skills.loaded_cases import BrokenCase, LoadedCases
from ..skills.skill import Skill
from ..trials.arm import Arm
from ..trials.plan import PlannedCase, SkillInfo, score_of
from ..trials.subject import CHAT, Subject, asks_model
from ..trials.trial import Prompt, judge_task, trials_of
from .case_needs import played_by, why_unplayed
from .paths import relative
from .run import Run
from .skill_source import SkillSource

CheckedFile = LoadedCases[CheckedCase]


@dataclass
class SkillCases:
    """A skill with its cases, by file."""

    run: Run
    source: SkillSource
    skill: Skill
    prompt: Prompt
    files: list[CheckedFile] = field(default_factory=list)
    problem: str = ""  # why its cases can't be read; queries may be asked all the same
    for_agents: Collection[str] = ()  # ids of cases that are not for chat

    @property
    def cases(self) -> Iterator[CheckedCase]:
        for file in self.files:
            yield from file.cases

    @property
    def broken(self) -> Iterator[BrokenCase]:
        for file in self.files:
            yield from file.broken

    @property
    def siblings(self) -> tuple[str, ...]:
        """The ids of all cases, if all are known, and of the skill's own files."""
        if self.problem or not self.source.has_own_cases:
            return ()
        return (*(case.id for case, _ in self.cases), *(b.name for b in self.broken))

    def count_runnable(self, label: str) -> Counter[str]:
        """How many cases are not skipped by a subject, by what they are counted as.

        A broken case counts, so that the run is known to lack it.
        """
        counts = Counter(broken.kind.noun for broken in self.broken)
        agent = self.run.subjects.by_label[label].agent
        for case, checks in self.cases:
            if self.fits(case, label) and not case.skip:
                played = played_by(agent, case)
                if not why_unplayed(played, checks, self.run.settings):
                    counts[case.kind.noun] += 1
        return counts

    def fits(self, case: Case, label: str) -> bool:
        """Whether a case is for an agent on a model."""
        agent, model = self.run.subjects.by_label[label]
        if not asks_model(agent):
            return case.kind.noun == CASE.noun
        if agent == CHAT and case.id in self.for_agents:
            return False
        return case.is_for(label, model, self.run.subjects.model_ids[label])

    @cached_property
    def info(self) -> SkillInfo:
        path = relative(self.source.folder, self.run.config.rootpath)
        cases = [case for case, _ in self.cases]
        return info_of(self.run, self.skill, self.source.label, path=path, cases=cases)

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        if self.source.task_files:
            return ()  # each task has its own
        subjects = self.run.subjects
        cases = [case for case, _ in self.cases]
        # A model without an agent chooses a skill as an agent does:
        # from those that are installed.
        agents = bool(subjects.agents) or any(case.kind.until_opened for case in cases)
        return subjects.arm_maker.arms(
            self.skill,
            [case for case in cases if case.kind.noun == CASE.noun] or None,
            agents=agents,
            case_files=[file.file for file in self.files],
        )

    def plan(
        self,
        checked: CheckedCase,
        subject: Subject,
        *,
        case_folder: Path,
        **about: Any,
    ) -> PlannedCase:
        """What a subject is asked of a case, whose files are in ``case_folder``;
        SkillError if its skills can't be read.
        """
        case, checks = checked
        settings = self.run.settings
        subjects = self.run.subjects
        if self.source.task_files:
            arms = subjects.arm_maker.of_task(case, compared=bool(case.kind.agent))
        else:
            arms = subjects.arm_maker.with_own(self.arms, case)
        judging = judge_task(settings, subjects.version_of)
        trials = trials_of(
            self.source.label,
            case,
            subject,
            arms,
            settings=settings,
            rubric=rubric_for(checks, settings.judge, self.skill, judging),
            prompt=self.prompt,
            version=subjects.version_of(subject.agent),
        )
        return planned_case(
            case=case,
            trials=trials,
            settings=settings,
            digest=case_digest(case, case_folder),
            folder=self.source.folder,
            **about,
        )


def info_of(
    run: Run, skill: Skill, label: str, *, path: str, cases: Iterable[Case] = ()
) -> SkillInfo:
    settings = run.settings
    against = settings.against if skill.previous is not None else None
    return SkillInfo.of(skill, label, path, against, score_of(settings.score, cases))
