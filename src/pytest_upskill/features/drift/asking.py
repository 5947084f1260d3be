"""Skills on an old model and on a new one: both are asked the same cases,
with and without.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import takewhile
from typing import Final

from ..._util.texts import counted, first_few, one_line
from ...checks import CheckedCase
from ...checks.grading import ToGrade
from ...errors import InputError, Setting, SettingsError
from ...measure.arm_maker import ArmMaker
from ...measure.evaluate import asked_cases
from ...measure.study_cases import SkillCases
from ...measure.study_runner import StudyRunner
from ...results.causes import cause_lines
from ...results.run import RunResults
from ...skills.task_set import TaskSet
from ...trials.arm import Arm
from ...trials.plan import PlannedCase, SkillInfo
from ...trials.records import Record
from ...trials.subject import CHAT, Subject
from .results import ModelAnswers, ModelChange, skill_changes

_MOST_NAMES: Final = 5


@dataclass(frozen=True)
class _Asked:
    """A case of a skill, and its trials by one of the models."""

    skill: SkillInfo
    case: CheckedCase
    trials: list[ToGrade]


@dataclass(frozen=True)
class ModelPair:
    """An agent on an old model and on a new one, and the skills
    that they are compared with.
    """

    sources: Sequence[SkillCases]
    old: Subject
    new: Subject
    model_ids: Mapping[Subject, str]
    runner: StudyRunner
    maker: ArmMaker
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        tasks = [source for source in self.sources if isinstance(source.skill, TaskSet)]
        if tasks and self.old.agent == CHAT:
            problem = "tasks need an agent: a plain completion has no workspace"
            raise SettingsError(
                "agents", problem, "Choose one, for example loop.", value=CHAT
            )
        if not any(self._cases.values()):
            names = first_few([one_line(name, 60) for name in self._cases], _MOST_NAMES)
            problem = (
                f"none of these skills has cases for {self.old.label} and"
                f" {self.new.label}"
            )
            raise InputError(
                names, problem, "Write some: a skill is tested on its own cases."
            )

    @cached_property
    def _cases(self) -> dict[str, tuple[CheckedCase, ...]]:
        """The cases of each skill that both models are asked."""
        cases = dict[str, tuple[CheckedCase, ...]]()
        for source in self.sources:
            old, new = (
                asked_cases(source.cases, subject, self.model_ids[subject])
                for subject in (self.old, self.new)
            )
            of_new = {case.id for case, _ in new}
            cases[source.skill.name] = tuple(
                each for each in old if each[0].id in of_new
            )
        return cases

    @cached_property
    def _infos(self) -> dict[str, SkillInfo]:
        """The skills that have cases."""
        return {
            source.skill.name: source.info
            for source in self.sources
            if self._cases[source.skill.name]
        }

    @cached_property
    def asked(self) -> dict[Subject, list[_Asked]]:
        asked: dict[Subject, list[_Asked]] = {self.old: [], self.new: []}
        for source in self.sources:
            skill = source.skill
            for case in self._cases[skill.name]:
                arms, info = self._arms(source, case), self._infos[skill.name]
                for subject, of_subject in asked.items():
                    trials = self.runner.evaluator.trials(skill, [case], subject, arms)
                    of_subject.append(_Asked(info, case, trials))
        return asked

    def _arms(self, source: SkillCases, checked: CheckedCase) -> tuple[Arm, ...]:
        """Of a task, those that its own skills make; of one without skills,
        a single one.
        """
        case = checked[0]
        if isinstance(source.skill, TaskSet):
            return self.maker.of_task(case, compared=False)
        own = [each for each, _ in source.cases]
        arms = self.maker.arms(source.skill, own, agents=self.old.agent != CHAT)
        return self.maker.with_own(arms, case)

    def run(self) -> ModelChange:
        """Ask the old model, then the new one; SettingsError if
        one of them has no answers.

        So nothing is paid for if the old model is gone.
        """
        records: dict[Subject, list[Record]] = {self.old: [], self.new: []}
        tests, interrupted = list[PlannedCase](), False
        for subject, setting in ((self.old, "from_model"), (self.new, "to_model")):
            to_grade = [item for each in self.asked[subject] for item in each.trials]
            self.runner.begin(f"{subject.label}: {counted(len(to_grade), 'trial')}")
            records[subject], interrupted = self.runner.ask(to_grade)
            tests += [
                self.runner.evaluator.test_of(each.skill, each.case[0], each.trials)
                for each in self.asked[subject]
            ]
            if interrupted:
                break
            _require_answers(setting, subject, records[subject])
            stored = sum(record.stored for record in records[subject])
            self.runner.done(f"{stored:,} stored, {len(to_grade) - stored:,} asked")
        asked = (*records[self.old], *records[self.new])
        ungraded = [] if interrupted else _ungraded(asked)
        results = RunResults(
            started=self.started,
            seconds=0.0,
            skills=tuple(self._infos.values()),
            records=tuple(
                record
                for record in asked
                if (record.skill, record.case) not in ungraded
            ),
            tests=tuple(
                test for test in tests if (test.skill, test.case) not in ungraded
            ),
            model_ids={subject.label: name for subject, name in self.model_ids.items()},
            max_age=self.runner.evaluator.settings.max_age,
        )
        return ModelChange(
            agent=self.old.agent,
            old=ModelAnswers.of(
                self.old.model, self.model_ids[self.old], records[self.old]
            ),
            new=ModelAnswers.of(
                self.new.model, self.model_ids[self.new], records[self.new]
            ),
            skills=skill_changes(results.rows, self.old, self.new),
            cases=sum(map(len, self._cases.values())),
            missing=tuple(cause_lines(replace(results, records=asked).causes)),
            notes=self._notes(ungraded),
            interrupted=interrupted,
        )

    def _notes(self, ungraded: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        without = [
            one_line(name, 60) for name in self._cases if name not in self._infos
        ]
        names = first_few(without, _MOST_NAMES)
        notes = (
            [f"Left out, as they have no cases for both: {names}"] if without else []
        )
        for source in self.sources:
            skipped = [(case.id, case.skip) for case, _ in source.cases if case.skip]
            if skipped and isinstance(source.skill, TaskSet):
                name, reason = skipped[0]
                tasks = f"{len(skipped):,} of {counted(len(source.cases), 'task')}"
                notes.append(
                    f"Skipped: {tasks}, such as {name}: {one_line(reason, 200)}"
                )
        by_skill: dict[str, list[str]] = {}
        for skill, case in ungraded:
            by_skill.setdefault(skill, []).append(one_line(case, 60))
        for skill, cases in by_skill.items():
            share = f"{len(cases):,} of {counted(len(self._cases[skill]), 'case')}"
            names = first_few(cases, _MOST_NAMES)
            notes.append(
                f"{one_line(skill, 60)}: {share} left out, never graded on either"
                f" model: {names}"
            )
        return tuple(notes)


def _ungraded(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Skills with cases that no arm of either model has a grade of,
    if there are others.

    What is missing of other cases may depend on the model,
    so it makes a skill incomplete.
    """
    graded = {
        (r.skill, r.case) for r in records if r.outcome != "errored" or r.over_budget
    }
    skills = {skill for skill, _ in graded}
    cases = dict.fromkeys((r.skill, r.case) for r in records if r.skill in skills)
    return [case for case in cases if case not in graded]


def _require_answers(setting: str, subject: Subject, records: Sequence[Record]) -> None:
    """SettingsError if nothing new was answered, and no case is stored:
    it may be retired.
    """
    asked = [record for record in records if not record.stored]
    if not asked or any(r.outcome != "errored" or r.over_budget for r in asked):
        return
    if {(r.skill, r.case) for r in records} > {(r.skill, r.case) for r in asked}:
        return
    error = one_line(asked[0].error or "no answer", 300).rstrip(".")
    answers = f"{len(asked):,} of its {counted(len(records), 'answer')}"
    problem = f"no answer, and {answers} are not stored: {error}"
    hint: tuple[str, ...] = (
        (
            "Answers are stored where it was asked before with the same skill, cases"
            " and settings; a recording can stand in: "
        ),
        Setting("recorded"),
        " FILE.",
    )
    if runs := _stored_runs(records):
        hint = ("All answers of the first ", counted(runs, "run"), " are stored: ")
        hint = (*hint, Setting("runs"), f" {runs}.")
    raise SettingsError(setting, problem, hint, value=subject.model)


def _stored_runs(records: Sequence[Record]) -> int:
    """How many of the first runs are stored for all cases and arms."""
    last = max(record.run for record in records)
    by_run = (
        all(record.stored for record in records if record.run == run)
        for run in range(1, last + 1)
    )
    return sum(takewhile(bool, by_run))
