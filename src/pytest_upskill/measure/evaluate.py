"""Measure a skill without pytest: every case on every model, in all arms, as one RunResults."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic

from ..checks import CheckedCase
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..errors import shown
from ..models.prices import Price, cost
from ..results.accepted import planned_case
from ..results.run import RunResults, versions
from ..settings import Score, Settings
from ..skills.skill import Skill
from ..trials.plan import PlannedCase, SkillInfo, score_of
from ..trials.trial import ARMS, Arm, trials_of, user_text

PriceOf = Callable[[str], Price | None]


def evaluate_cases(
    skill: Skill,
    cases: Sequence[CheckedCase],
    models: Mapping[str, str],
    settings: Settings,
    ask: Ask,
    price_of: PriceOf,
    arms: Sequence[Arm] = ARMS,
) -> RunResults:
    """Ask everything at once and grade it; ``models`` are ids by the names that questions go to.

    ``arms`` restricts those of the skill and the settings. Skipped cases, and cases for other
    models, are left out.
    """
    started, clock = datetime.now(UTC), monotonic()
    tests, to_grade = list[PlannedCase](), list[ToGrade]()
    info = _info(skill, score_of(settings.score, (case for case, _ in cases)))
    for case, checks in cases:
        rubric = rubric_for(checks, settings.judge, skill)
        for model, model_id in models.items():
            if case.skip or not case.is_for(model, model_id):
                continue
            trials = trials_of(skill.name, skill, case, model, settings, rubric)
            nodeid = f"{info.path}::{case.id}[{model}]"
            planned = planned_case(nodeid, case, trials, settings, compared=case.xfail is None)
            tests.append(replace(planned, trials=()))
            to_grade += [ToGrade(trial, case, checks) for trial in trials if trial.arm in arms]
    records = records_of(to_grade, ask, settings.sandbox)
    prices = {model: price_of(model) for model in models}
    return RunResults(
        started=started,
        seconds=monotonic() - clock,
        skills=(info,),
        model_ids=dict(models),
        tests=tuple(tests),
        records=tuple(
            replace(record, cost=cost(prices[record.model], record.usage)) for record in records
        ),
        questions={(skill.name, case.id): user_text(case) for case, _ in cases},
        versions=versions(),
    )


def _info(skill: Skill, score: Score) -> SkillInfo:
    return SkillInfo.of(skill, skill.name, shown(skill.file.parent), score=score)
