"""Trials of triggers: is the skill opened for a query? An agent decides, or a model alone."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from .._util.files import read_file
from ..settings import DEFAULT_TRIGGER_RUNS, TRIGGER_TURNS, Settings
from ..skills.case import Case
from ..skills.folder import SKILL_NAMES
from ..skills.skill import Skill, summary_of
from ..skills.trigger_loading import Trigger
from .answer import Answer, NoAnswer, Reply
from .arm import SkillCopy
from .choice import Choice, Listed, skill_tool
from .records import Grade, Record, errored_record, graded_record
from .subject import CHAT
from .task import Outfit
from .transcript import GIVEN, UNTOLD, Activity
from .trial import BASE_SYSTEM, Question, Trial

TRIGGER: Final = "trigger"  # the check of a query's record


def choice_of(skill: Skill, neighbours: Sequence[SkillCopy] = ()) -> Choice:
    """What a model without an agent chooses from: the skill and others, sorted by name."""
    listed = [Listed(skill.name, skill.description)]
    listed += [Listed(skill_beside.name, _description(skill_beside)) for skill_beside in neighbours]
    return Choice(skill.name, tuple(sorted(listed, key=lambda entry: entry.name)))


def trigger_trials(
    label: str,
    trigger: Trigger,
    model: str,
    settings: Settings,
    among: Outfit | Choice,
    runs: int = DEFAULT_TRIGGER_RUNS,
) -> list[Trial]:
    """The trials of a query on a model: by an agent with its outfit, or as a choice without one."""
    agent = among.agent if isinstance(among, Outfit) else CHAT
    if isinstance(among, Outfit):
        question = _task_of(trigger, model, settings, among)
    else:
        question = choice_question(trigger.query, model, settings, among)
    return [
        Trial(
            label,
            trigger.id,
            model,
            "skill",
            run,
            replace(question, run=run),
            agent=agent,
        )
        for run in range(1, runs + 1)
    ]


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


def _task_of(trigger: Trigger, model: str, settings: Settings, outfit: Outfit) -> Question:
    """The bare query in an empty workspace, until it is decided."""
    task = outfit.tasks(Case(trigger.id, trigger.query))["skill"]
    turns = min(TRIGGER_TURNS, task.max_turns)
    task = replace(task, max_turns=turns, until_opened=True)
    return Question(model, "", (("user", trigger.query),), settings.agent_output, 1, task=task)


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
