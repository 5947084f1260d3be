"""Measure a skill without pytest: every case on every model, in all arms, as one RunResults."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic

from ..checks import CheckedCase, why_agent
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..errors import shown
from ..models.prices import PriceOf, cost
from ..results.accepted import planned_case
from ..results.run import RunResults, versions
from ..settings import Score, Settings
from ..skills.skill import Skill
from ..trials.arm import Arm
from ..trials.plan import PlannedCase, SkillInfo, score_of
from ..trials.subject import CHAT, Subject
from ..trials.trial import trials_of, user_text


def evaluate_cases(
    skill: Skill,
    cases: Sequence[CheckedCase],
    subjects: Mapping[Subject, str],
    settings: Settings,
    ask: Ask,
    price_of: PriceOf,
    arms: Sequence[Arm],
    version_of: Callable[[str], str] = lambda _agent: "",
) -> RunResults:
    """Ask everything at once and grade it; ``subjects`` have the ids of their models.

    Skipped cases, cases for other models, and those of agents on a plain completion are left out.
    """
    started, clock = datetime.now(UTC), monotonic()
    tests, to_grade = list[PlannedCase](), list[ToGrade]()
    info = _info(skill, score_of(settings.score, [case for case, _ in cases]))
    for case, checks in cases:
        rubric = rubric_for(checks, settings.judge, skill)
        for subject, model_id in subjects.items():
            if case.skip or not case.is_for(subject.label, subject.model, model_id):
                continue
            if subject.agent == CHAT and why_agent(case, checks):
                continue
            version = version_of(subject.agent)
            trials = trials_of(skill.name, case, subject, arms, settings, rubric, version=version)
            nodeid = f"{info.path}::{case.id}[{subject.label}]"
            planned = planned_case(nodeid, case, trials, settings, compared=case.xfail is None)
            tests.append(replace(planned, trials=()))
            to_grade += [ToGrade(trial, case, checks) for trial in trials]
    records = records_of(to_grade, ask, settings.sandbox)
    prices = {subject.label: price_of(subject.model) for subject in subjects}
    return RunResults(
        started=started,
        seconds=monotonic() - clock,
        skills=(info,),
        model_ids={subject.label: model_id for subject, model_id in subjects.items()},
        tests=tuple(tests),
        records=tuple(
            replace(record, cost=cost(prices[record.label], record.usage)) for record in records
        ),
        questions={(skill.name, case.id): user_text(case) for case, _ in cases},
        versions=versions(),
    )


def _info(skill: Skill, score: Score) -> SkillInfo:
    return SkillInfo.of(skill, skill.name, shown(skill.file.parent), score=score)
