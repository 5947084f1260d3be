"""Trials of triggers: is the skill opened for a query? An agent decides, or a model alone."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from .._util.files import read_file
from ..settings import DEFAULT_TRIGGER_RUNS, TRIGGER_TURNS, Settings
from ..skills.case import Case
from ..skills.folder import SKILL_NAMES
from ..skills.skill import summary_of
from ..skills.trigger_loading import Trigger
from .answer import Answer, NoAnswer, Reply
from .arm import SKILL, Arm, SkillCopy
from .choice import Choice, Listed, skill_tool
from .records import Grade, Record, errored_record, graded_record
from .subject import CHAT, Subject
from .transcript import GIVEN, UNTOLD, Activity
from .trial import BASE_SYSTEM, Question, Trial, question_of

TRIGGER: Final = "trigger"  # the check of a query's record


def choice_of(arm: Arm) -> Choice:
    """What a model without an agent chooses from: the skills of an arm, one of them tested."""
    listed = (Listed(skill.name, _description(skill)) for skill in arm.skills)
    return Choice(arm.tested, tuple(listed))


def trigger_trials(
    label: str,
    trigger: Trigger,
    subject: Subject,
    arms: Iterable[Arm],
    settings: Settings,
    *,
    version: str = "",
    runs: int = DEFAULT_TRIGGER_RUNS,
) -> list[Trial]:
    """The trials of a query in the skill arm: by an agent, or as a choice without one.

    ``arms`` have the skills that are installed, also for a plain completion.
    """
    agent, model = subject
    (arm,) = (arm for arm in arms if arm.name == SKILL)
    if agent == CHAT:
        question = choice_question(trigger.query, model, settings, choice_of(arm))
    else:
        case = Case(trigger.id, trigger.query)
        question = until_opened(question_of(case, subject, arm, settings, version=version))
    return [
        Trial(label, trigger.id, model, arm.name, run, replace(question, run=run), agent=agent)
        for run in range(1, runs + 1)
    ]


def until_opened(question: Question) -> Question:
    """The same for an agent that is ended as soon as it is decided."""
    assert question.task
    turns = min(TRIGGER_TURNS, question.task.max_turns)
    return replace(question, task=replace(question.task, max_turns=turns, until_opened=True))


def choice_question(query: str, model: str, settings: Settings, choice: Choice) -> Question:
    """The question that lets a model choose a skill by a tool, and do nothing else."""
    return Question(
        model,
        f"{BASE_SYSTEM}\n\n{choice.by_tool}",
        (("user", query),),
        settings.answer_output,
        1,
        tools=(skill_tool(choice.names),),
        choice=choice,
    )


def by_schema(question: Question) -> Question:
    """The same for a model that takes no tools."""
    assert question.choice
    system = f"{BASE_SYSTEM}\n\n{question.choice.by_schema}"
    return replace(question, system=system, tools=(), schema=question.choice.schema)


def trigger_record(trial: Trial, reply: Reply, should_trigger: bool) -> Record:
    """Passed if it was decided right. What was not decided is an error, never "not opened"."""
    if isinstance(reply, NoAnswer):
        return errored_record(trial, reply.reason)
    name, activity = _tested(trial.question), reply.activity or Activity()
    if problem := _undecided(reply, activity):
        return errored_record(trial, problem, reply)
    opened = bool(activity.activated)
    right = opened == should_trigger
    asks = f"{'open' if should_trigger else 'do not open'} {name}"
    grade = Grade(TRIGGER, right, _reason(reply, activity, name, should_trigger), asks=asks)
    return graded_record(trial, reply, (grade,))


def _undecided(answer: Answer, activity: Activity) -> str:
    """Why a trial does not tell whether the skill is opened; empty if it does."""
    if activity.activated:
        return ""
    if answer.stop == "time":
        return f"{answer.why_not_gradable}, before it was decided whether the skill is opened"
    if activity.untold:
        return UNTOLD
    return "" if activity.activated is False else "nothing tells whether the skill was opened"


def _reason(answer: Answer, activity: Activity, name: str, should_trigger: bool) -> str:
    if activity.activated:
        outcome = " without being asked to" if GIVEN in activity.findings else ""
        return f"opened {name}{outcome}, {'as it should' if should_trigger else 'and should not'}"
    other_skills = [opened_skill for opened_skill in activity.opened if opened_skill != name]
    if other_skills:
        outcome = f"opened {', '.join(other_skills)} instead"
    elif answer.refused:
        outcome = "the model refused"
    elif answer.stop == "max_turns":
        outcome = f"went on without it for {activity.turns} turns"
    else:
        outcome = "answered without it"
    return f"not opened: {outcome}" if should_trigger else f"not opened, as it should be: {outcome}"


def _tested(question: Question) -> str:
    if question.choice:
        return question.choice.tested
    return (question.task and question.task.tested) or "the skill"


def _description(skill: SkillCopy) -> str:
    """Empty if the skill can't be read, as an agent would not know it either."""
    if skill.text:
        return summary_of(skill.text.encode())[0]
    for name in SKILL_NAMES:
        try:
            return summary_of(read_file(Path(skill.folder, name)))[0]
        except OSError:
            continue
    return ""
