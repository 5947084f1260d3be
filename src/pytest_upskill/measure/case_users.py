"""Users of cases, before the first call: agents that can be answered,
and a model that plays them.

Fixed replies need no model.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from ..agents.roster import AGENTS
from ..errors import InputError, Setting, Text, shown
from ..models.model import NamedBy
from ..settings import Settings
from ..skills.case import Case
from ..trials.subject import CHAT, ORACLE, Subject
from .assembly import Assembly

CaseOfFile = tuple[Path, Case]
_HOW_TO_NAME: Final = (
    "Name one in the ini file, such as skill_user_model = haiku, or with ",
    Setting("judge"),
    ": a model that judges plays users, too.",
)


def cases_with_user(
    cases: Iterable[CaseOfFile], subjects: Mapping[Subject, str]
) -> list[CaseOfFile]:
    """Those that an agent is asked and a user answers;
    ``subjects`` have the ids of models.
    """
    return [
        (file, case)
        for file, case in cases
        if case.user and any(_agents(case, subjects))
    ]


def _agents(case: Case, subjects: Mapping[Subject, str]) -> list[str]:
    """The agents that a case is for, and that may ask something."""
    return [
        subject.agent
        for subject, model_id in subjects.items()
        if subject.agent not in (CHAT, ORACLE)
        and not case.skip
        and case.is_for(subject.label, subject.model, model_id)
    ]


def add_user_model(
    models: Assembly, cases: Collection[CaseOfFile], settings: Settings
) -> None:
    """Add the model that plays the users of these cases,
    if they have facts and there is one.
    """
    name = settings.model_of_users
    if name and any(case.user and case.user.facts for _, case in cases):
        by = NamedBy("user_model" if settings.user_model else "judge")
        (models.user_model,) = models.add_named(name, settings, by)


def use_users(
    models: Assembly,
    cases: Iterable[CaseOfFile],
    subjects: Mapping[Subject, str],
    settings: Settings,
) -> None:
    """Add the model that plays users; InputError as in ``require_users``."""
    with_user = cases_with_user(cases, subjects)
    require_users(models, with_user, subjects, settings)
    add_user_model(models, with_user, settings)


def require_users(
    models: Assembly,
    cases: Collection[CaseOfFile],
    subjects: Mapping[Subject, str],
    settings: Settings,
    how_to_name: Text = _HOW_TO_NAME,
) -> None:
    """InputError if an agent can't be answered, or if no model is there to answer
    it.
    """
    for file, case in cases:
        place = f"{shown(file)}:{case.line}"
        for agent in _agents(case, subjects):
            if not models.roster.agent(agent).takes_answers:
                fitting = [
                    name for name in AGENTS if models.roster.agent(name).takes_answers
                ]
                patterns = ", ".join(f'"{name}/*"' for name in fitting)
                raise InputError(
                    place,
                    f"{case.id} has a user, and {agent} can't be answered",
                    f"Use {' or '.join(fitting)}, or keep the case to them with "
                    f'"models": [{patterns}].',
                )
        if case.user and case.user.facts and not settings.model_of_users:
            problem = f"{case.id} has a user with facts, and no model plays it"
            problem += ": the judge is an agent" if settings.judge else ""
            raise InputError(place, problem, how_to_name)
