"""Trials of triggers, and what came of them."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.checks import checks_of
from pytest_upskill.checks.grading import ToGrade, records_of
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.features.queries import QUERY
from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import OPENS, STAYS_CLOSED, Case
from pytest_upskill.skills.skill import Skill, load_skill
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply, Usage
from pytest_upskill.trials.arm import SkillCopy, arms_of
from pytest_upskill.trials.choice import choice_of
from pytest_upskill.trials.records import Record
from pytest_upskill.trials.subject import CHAT, Subject
from pytest_upskill.trials.transcript import GIVEN, UNTOLD, Activity, ListedSkill
from pytest_upskill.trials.trial import Trial, by_schema, trials_of
from support.kit import write_skill


def trigger(*, opens: bool = True) -> Case:
    tags = (OPENS if opens else STAYS_CLOSED,)
    expected = {"skill_activated": opens}
    return Case("trigger-raise", "Raise the gate.", expected, tags=tags, kind=QUERY)


TRIGGER = trigger()


def trigger_record(trial: Trial, reply: Reply, should_open: bool) -> Record:
    """The record of a trial that gets this reply."""
    case = trigger(opens=should_open)
    to_grade = ToGrade(trial, case, checks_of(case, KINDS, {}))
    return records_of([to_grade], lambda _: [reply])[0]


LOOP, MODEL = Subject("loop", "haiku"), Subject(CHAT, "haiku")


def skill_in(folder: Path, name: str = "gate") -> Skill:
    return load_skill(write_skill(folder / name) / "SKILL.md")


def copy_of(skill: Skill) -> SkillCopy:
    return SkillCopy.of(skill.name, skill.file.parent)


def agent_trial(folder: Path, max_turns: int = 30) -> Trial:
    given = Settings(max_turns=max_turns)
    arms = arms_of(skill_in(folder), given, agents=True)
    return trials_of("gate", TRIGGER, LOOP, arms, settings=given)[0]


def test_an_agent_has_the_bare_query_the_skill_and_five_turns(tmp_path: Path) -> None:
    settings = Settings(trigger_runs=4)
    skill, other = skill_in(tmp_path), skill_in(tmp_path, "boat")
    others = (copy_of(other),)
    arms = arms_of(skill, settings, others, agents=True)
    trials = trials_of("the gate", TRIGGER, LOOP, arms, settings=settings)
    assert [(one.run, one.question.run) for one in trials] == [
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 4),
    ]
    first = trials[0]
    assert (first.skill, first.case, first.arm) == (
        "the gate",
        "trigger-raise",
        "skill",
    )
    assert (first.label, first.agent) == ("loop/haiku", "loop")
    question, task = first.question, first.question.task
    assert task
    assert (question.system, question.messages) == ("", (("user", "Raise the gate."),))
    assert (task.until_opened, task.max_turns, task.files, task.setup) == (
        True,
        5,
        (),
        "",
    )
    assert {one.name for one in task.skills} == {"gate", "boat"}
    assert task.tested == ("gate",)
    assert len({one.question.key for one in trials}) == 4


def test_fewer_turns_can_be_asked_for(tmp_path: Path) -> None:
    task = agent_trial(tmp_path, max_turns=2).question.task
    assert task
    assert task.max_turns == 2


def test_without_an_agent_a_model_chooses(tmp_path: Path) -> None:
    skill, other = skill_in(tmp_path), skill_in(tmp_path, "boat")
    arms = arms_of(skill, Settings(), (copy_of(other),), agents=True)
    choice = choice_of(arms[-1])
    assert choice.names == ("boat", "gate")
    [first, _, _] = trials_of("gate", TRIGGER, MODEL, arms, settings=Settings())
    assert (first.label, first.agent) == ("haiku", "chat")
    question = first.question
    assert question.messages == (("user", "Raise the gate."),)
    assert [tool.name for tool in question.tools] == ["skill"]
    assert skill.description in question.system
    assert skill.body.strip() not in question.system
    assert question.schema is None
    plain = by_schema(question)
    assert (plain.tools, plain.schema) == ((), choice.schema)
    assert plain.messages == question.messages
    assert '{"skill": "NAME"}' in plain.system
    assert pickle.loads(pickle.dumps(question)) == question


def test_the_skill_under_test_is_part_of_the_key(tmp_path: Path) -> None:
    one, other = skill_in(tmp_path), skill_in(tmp_path, "boat")
    asked = [
        trials_of(
            "x",
            TRIGGER,
            MODEL,
            arms_of(tested, Settings(), (copy_of(beside),), agents=True),
            settings=Settings(),
        )[0].question
        for tested, beside in ((one, other), (other, one))
    ]
    assert asked[0].system == asked[1].system
    assert asked[0].key != asked[1].key


@pytest.mark.parametrize(
    ("activity", "stop", "should", "passed", "reason"),
    [
        (
            Activity(1, 1, activated=True, opened=("gate",)),
            "decided",
            True,
            True,
            "the skill was opened",
        ),
        (
            Activity(1, 1, activated=True, opened=("gate",)),
            "decided",
            False,
            False,
            "the skill was opened",
        ),
        (
            Activity(0, 0, activated=True, opened=("gate",), findings=(GIVEN,)),
            *("decided", False, False, "the skill was opened without being asked to"),
        ),
        (
            Activity(1, 0, activated=False),
            "end",
            True,
            False,
            "the skill was not opened",
        ),
        (
            Activity(1, 0, activated=False),
            "end",
            False,
            True,
            "the skill was not opened",
        ),
        (
            Activity(2, 2, activated=False, opened=("boat", "oar")),
            *(
                "decided",
                True,
                False,
                "the skill was not opened; opened instead: boat, oar",
            ),
        ),
        (
            Activity(2, 2, activated=True, opened=("boat", "gate")),
            "decided",
            True,
            True,
            "the skill was opened",
        ),
        (
            Activity(5, 5, activated=False),
            *("max_turns", True, False, "the skill was not opened in 5 turns"),
        ),
        (
            Activity(1, 0, activated=False),
            "refusal",
            True,
            False,
            "the skill was not opened (the model refused to answer)",
        ),
    ],
)
def test_what_was_decided(
    tmp_path: Path,
    activity: Activity,
    stop: str,
    should: bool,
    passed: bool,
    reason: str,
) -> None:
    answer = Answer("Hello.", Usage(7, 3, 0), stop, activity=activity)
    record = trigger_record(agent_trial(tmp_path), answer, should)
    assert record.outcome == ("passed" if passed else "failed")
    assert [(one.check, one.passed, one.reason) for one in record.checks] == [
        ("skill_activated", passed, reason)
    ]
    assert (record.arm, record.label, record.score) == (
        "skill",
        "loop/haiku",
        float(passed),
    )
    assert (record.activity, record.tokens) == (activity, 10)


@pytest.mark.parametrize("should", [True, False])
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (NoAnswer("no key"), "no key"),
        (
            Answer(
                "", stop="time", seconds=9.0, activity=Activity(1, 0, activated=False)
            ),
            (
                "the agent stopped at its time limit of 9 s, before it was decided"
                " whether the skill is opened"
            ),
        ),
        (
            Answer(
                "Hi.",
                activity=Activity(
                    1,
                    0,
                    activated=False,
                    listed=(ListedSkill("gate", "not listed", tested=True),),
                ),
            ),
            UNTOLD,
        ),
        (
            Answer("Hi.", activity=Activity(1)),
            "nothing tells whether the skill was opened",
        ),
        (Answer("Hi."), "nothing tells whether the skill was opened"),
    ],
)
def test_what_was_not_decided_is_an_error(
    tmp_path: Path, reply: Answer | NoAnswer, error: str, should: bool
) -> None:
    record = trigger_record(agent_trial(tmp_path), reply, should)
    assert (record.outcome, record.error, record.checks) == ("errored", error, ())


def test_what_was_opened_before_the_time_was_up_is_opened(tmp_path: Path) -> None:
    answer = Answer(
        "", stop="time", activity=Activity(1, 1, activated=True, opened=("gate",))
    )
    assert (
        trigger_record(agent_trial(tmp_path), answer, should_open=True).outcome
        == "passed"
    )


def test_a_model_that_chose_is_graded_alike(tmp_path: Path) -> None:
    arms = arms_of(skill_in(tmp_path), Settings(), agents=True)
    [trial, *_] = trials_of("gate", TRIGGER, MODEL, arms, settings=Settings())
    record = trigger_record(
        trial,
        Answer("", activity=Activity(1, 1, activated=True, opened=("gate",))),
        should_open=True,
    )
    assert (record.outcome, record.agent) == ("passed", "chat")
    assert record.checks[0].reason == "the skill was opened"


def test_a_whole_trial_is_another_question(tmp_path: Path) -> None:
    question = agent_trial(tmp_path).question
    assert question.task
    whole = replace(question, task=replace(question.task, until_opened=False))
    assert whole.key != question.key
