"""Carry out and grade cases × subjects × arms × runs, without pytest."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic

from ..checks import CheckedCase, why_agent
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..errors import shown
from ..models.prices import PriceOf, priced
from ..results.planned_cases import planned_case
from ..results.run import RunResults, versions
from ..settings import Settings
from ..skills.case import Case
from ..skills.skill import Skill
from ..trials.arm import Arm
from ..trials.plan import PlannedCase, SkillInfo, score_of
from ..trials.records import Record
from ..trials.subject import CHAT, Subject
from ..trials.trial import judge_task, trials_of, user_text


@dataclass(frozen=True)
class Evaluator:
    """Asks models and agents, and grades what they answer."""

    settings: Settings
    ask: Ask
    price_of: PriceOf
    version_of: Callable[[str], str] = lambda _agent: ""

    def trials(
        self,
        skill: Skill,
        cases: Iterable[CheckedCase],
        subject: Subject,
        arms: Sequence[Arm],
    ) -> list[ToGrade]:
        """What is to be asked; ``skill`` is the tested one, which a judge must not
        see.
        """
        judging = judge_task(self.settings, self.version_of)
        to_grade = []
        for case, checks in cases:
            trials = trials_of(
                skill.name,
                case,
                subject,
                arms,
                settings=self.settings,
                rubric=rubric_for(checks, self.settings.judge, skill, judging),
                version=self.version_of(subject.agent),
            )
            to_grade += [ToGrade(trial, case, checks) for trial in trials]
        return to_grade

    def records(self, to_grade: Sequence[ToGrade]) -> list[Record]:
        """The record of each trial, with its cost. Everything is asked at once."""
        network = self.settings.allow_network
        records = records_of(to_grade, self.ask, self.settings.sandbox, network=network)
        return [priced(record, self.price_of) for record in records]

    def evaluate(
        self,
        skill: Skill,
        cases: Sequence[CheckedCase],
        subjects: Mapping[Subject, str],
        arms: Sequence[Arm],
    ) -> RunResults:
        """All of a skill's cases as one run; ``subjects`` have the ids of their
        models.
        """
        started = datetime.now(UTC)
        clock = monotonic()
        score = score_of(self.settings.score, [case for case, _ in cases])
        info = SkillInfo.of(skill, skill.name, shown(skill.file.parent), score=score)
        tests = []
        to_grade: list[ToGrade] = []
        for subject, model_id in subjects.items():
            for checked in asked_cases(cases, subject, model_id):
                trials = self.trials(skill, [checked], subject, arms)
                tests.append(self.test_of(info, checked[0], trials))
                to_grade += trials
        return RunResults(
            started=started,
            records=tuple(self.records(to_grade)),
            seconds=monotonic() - clock,
            skills=(info,),
            model_ids={subject.label: name for subject, name in subjects.items()},
            tests=tuple(tests),
            questions={(skill.name, case.id): user_text(case) for case, _ in cases},
            versions=versions(),
            max_age=self.settings.max_age,
        )

    def test_of(
        self, skill: SkillInfo, case: Case, trials: Sequence[ToGrade]
    ) -> PlannedCase:
        """A case with its trials by one subject, as a test of a run."""
        asked = [item.trial for item in trials]
        nodeid = f"{skill.path}::{case.id}[{asked[0].label}]"
        planned = planned_case(
            nodeid, case, asked, self.settings, compared=case.xfail is None
        )
        return replace(planned, trials=())


def asked_cases(
    cases: Iterable[CheckedCase], subject: Subject, model_id: str
) -> tuple[CheckedCase, ...]:
    """The cases that a subject is asked, the same as in a run of tests.

    Not those that are skipped or for other models, nor those of agents on a plain
    completion, nor those that arms without the skill can't be compared on.
    """
    asked = []
    for case, checks in cases:
        is_for = case.is_for(subject.label, subject.model, model_id)
        fits = subject.agent != CHAT or not why_agent(case, checks)
        if is_for and fits and not (case.skip or case.kind.is_case_apart):
            asked.append((case, checks))
    return tuple(asked)
