"""Trials: arms differ only by the skill; keys cover all that is asked."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.keys import hide_keys
from pytest_upskill.features.mcp.part import McpServers
from pytest_upskill.features.mcp.server import McpServer
from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case, SandboxNeeds, WorkspaceFile
from pytest_upskill.skills.skill import Skill, load_skill
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.arm import Arm, SkillCopy, arms_of
from pytest_upskill.trials.choice import Choice
from pytest_upskill.trials.plan import Plan, PlannedCase
from pytest_upskill.trials.subject import CHAT, Subject
from pytest_upskill.trials.transcript import Step, Tool, ToolCall, ToolResult
from pytest_upskill.trials.trial import (
    Question,
    Task,
    Trial,
    skill_system,
    trials_of,
    user_text,
)
from support.kit import BODY, write_skill

CASE = Case("open-gate", "How do I open it?", files=(("a.txt", "one\ntwo\n"),))
QUESTION = Question(
    "haiku", "Be kind.", (("user", "Hello"), ("assistant", "Hi")), 100, 1
)


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    return load_skill(write_skill(tmp_path / "gatekeeper") / "SKILL.md")


def trials(skill: Skill, case: Case = CASE, **options: Any) -> list[Trial]:
    settings = Settings(**options)
    arms = arms_of(skill, settings)
    return trials_of(
        "gatekeeper", case, Subject(CHAT, "haiku"), arms, settings=settings
    )


def test_arms_differ_only_in_the_system_text(skill: Skill) -> None:
    baseline, with_skill = trials(skill, max_output=77)
    assert (baseline.arm, with_skill.arm) == ("baseline", "skill")
    assert baseline.question != with_skill.question
    same_system = dataclasses.replace(
        with_skill.question, system=baseline.question.system
    )
    assert same_system == baseline.question
    assert baseline.question.max_output == 77


def test_baseline_sees_nothing_of_the_skill(skill: Skill) -> None:
    baseline, with_skill = trials(skill)
    sent = repr(baseline.question)
    for hidden in (
        skill.name,
        skill.description,
        skill.body,
        "skill",
        str(skill.file.parent),
    ):
        assert hidden not in sent
    assert skill.body in with_skill.question.system


def test_system_texts_differ_by_one_block(skill: Skill) -> None:
    baseline, with_skill = (trial.question.system for trial in trials(skill))
    block = with_skill.removeprefix(baseline)
    assert with_skill == baseline + block
    # All of the block is the skill and one sentence that says to follow it.
    assert re.fullmatch(rf"\n\n{re.escape(BODY)}\n\n[^\n]*skill[^\n]*", block)


def test_skill_is_sent_as_written(skill: Skill) -> None:
    odd = dataclasses.replace(skill, body="Use {braces}, %s, \\n and <tags> & `ticks`.")
    assert odd.body in skill_system(odd.body)


def test_arms_of_a_run_are_asked_together(skill: Skill) -> None:
    asked = trials(skill, runs=3)
    assert [(trial.run, trial.arm) for trial in asked] == [
        (1, "baseline"),
        (1, "skill"),
        (2, "baseline"),
        (2, "skill"),
        (3, "baseline"),
        (3, "skill"),
    ]
    assert [trial.question.run for trial in asked] == [trial.run for trial in asked]
    assert len({trial.question.key for trial in asked}) == 6
    assert {(trial.skill, trial.case, trial.label) for trial in asked} == {
        ("gatekeeper", "open-gate", "haiku")
    }


def test_no_baseline_asks_only_the_skill_arm(skill: Skill) -> None:
    both = trials(skill, runs=2)
    alone = trials(skill, runs=2, baseline=False)
    assert alone == [trial for trial in both if trial.arm == "skill"]
    assert len(alone) == 2


def test_question_without_files_is_sent_as_written() -> None:
    assert user_text(Case("id", "  What?\n")) == "  What?\n"


def test_files_follow_the_question_in_named_fences() -> None:
    case = Case("id", "What?", files=(("a.txt", "one\ntwo\n"), ("b/c.md", "")))
    assert (
        user_text(case) == "What?\n\na.txt:\n```\none\ntwo\n```\n\nb/c.md:\n```\n\n```"
    )


def test_fence_is_longer_than_any_inside() -> None:
    text = "```python\nx\n```\n`````\ny\n`````"
    sent = user_text(Case("id", "What?", files=(("a.md", text),)))
    assert sent == f"What?\n\na.md:\n``````\n{text}\n``````"


@given(st.text(alphabet="`~\n ab"))
def test_no_file_can_close_its_own_fence(text: str) -> None:
    lines = user_text(Case("id", "What?", files=(("a.md", text),))).split("\n")
    fence = lines[3]
    assert re.fullmatch(r"`{3,}", fence)
    assert [number for number, line in enumerate(lines) if fence in line] == [
        3,
        len(lines) - 1,
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"model": "sonnet"},
        {"system": "Be terse."},
        {"messages": (("user", "Hello"), ("assistant", "Hello"))},
        {"messages": (("user", "Hello"), ("user", "Hi"))},
        {"messages": (("user", "Hello"),)},
        {"messages": (("user", "HelloassistantHi"),)},
        {"max_output": 101},
        {"run": 2},
        {"schema": "{}"},
        {"tools": (Tool("bash", "Run a command.", "{}"),)},
        {"steps": (Step("Let me see.", (), ()),)},
        {"task": Task("loop")},
        {"choice": Choice(("pdf",), ())},
    ],
)
def test_any_field_changes_the_key(change: dict[str, Any]) -> None:
    assert dataclasses.replace(QUESTION, **change).key != QUESTION.key


def test_every_field_is_in_the_key() -> None:
    # A field added later must get a line above; the number of verdicts is in the
    # schema, the mark in the messages, and neither what is shared, nor when it is
    # asked, nor who pays shapes an answer.
    apart = {"verdicts", "mark", "shared", "renew", "judged_at", "login"}
    fields = {field.name for field in dataclasses.fields(Question)} - apart
    sent = {"model", "system", "messages", "max_output", "run", "schema"}
    assert fields == sent | {"tools", "steps", "task", "choice"}
    later = dataclasses.replace(
        QUESTION, shared=("system",), renew=True, judged_at=7, login="claude"
    )
    assert later.key == QUESTION.key


TASK = Task("loop", "1", max_turns=5)


@pytest.mark.parametrize(
    "change",
    [
        {"agent": "claude"},
        {"version": "2"},
        {"files": (WorkspaceFile("a.txt", b"a"),)},
        {"files": (WorkspaceFile("a.txt", b"a", 0o755),)},
        {"setup": "make"},
        {"skills": (SkillCopy("wick", "/wick", "d1"),)},
        {"needs": SandboxNeeds(network=True)},
        {"max_turns": 6},
        {"image": "python:3.13"},
        {"parts": (McpServers((McpServer("tracker", "{}"),)),)},
    ],
)
def test_any_field_of_a_task_changes_the_key(change: dict[str, Any]) -> None:
    assert dataclasses.replace(TASK, **change).content != TASK.content
    assert change.keys() < {field.name for field in dataclasses.fields(Task)}


def test_where_a_skill_is_does_not_change_the_key() -> None:
    here, there = (
        dataclasses.replace(
            TASK, skills=(SkillCopy("wick", folder, "d1", ref),), tested=tested
        )
        for folder, ref, tested in (("/here", None, ("wick",)), ("/there", "HEAD", ()))
    )
    assert here.content == there.content


def test_keys_of_stored_answers_never_change() -> None:
    """If this fails, everybody's stored answers and recordings are lost."""
    asked = Question(
        "haiku", "Be kind.", (("user", "Hello"), ("assistant", "Hi")), 100, 1
    )
    formed = dataclasses.replace(asked, schema="{}", verdicts=2)
    assert [asked.key, asked.content, formed.content] == [
        "f31a1b7666cdaa0d5d30cc83e37585c76ea463431bd6c90c2bb3def6683603e6",
        "11ec4502037752ddf6216aafa536a303ae67515c58eaf142dac950ba8969e96b",
        "f8437878c53bb9b065cae1e6fb2bba3f7eac2a199de3e581238d8154629c30af",
    ]


@pytest.mark.parametrize("agent", [CHAT, "loop"])
def test_the_name_of_an_arm_is_not_in_the_key(agent: str) -> None:
    """The baselines of two plans are the same question."""
    copies = (SkillCopy("wick", "/wick", "d1"),)
    arms = [
        Arm(name, "Trim it.", copies, ("wick",)) for name in ("skill", "wick alone")
    ]
    both = trials_of("wick", CASE, Subject(agent, "haiku"), arms, settings=Settings())
    assert [trial.arm for trial in both] == ["skill", "wick alone"]
    assert len({trial.question.key for trial in both}) == 1


def test_equal_questions_have_equal_keys() -> None:
    assert dataclasses.replace(QUESTION).key == QUESTION.key
    assert re.fullmatch(r"[0-9a-f]{64}", QUESTION.key)


def test_lone_surrogate_has_a_key() -> None:
    assert dataclasses.replace(QUESTION, system="\ud800").key != QUESTION.key


def test_editing_the_skill_keeps_the_baseline_question(skill: Skill) -> None:
    before = [trial.question.key for trial in trials(skill)]
    edited = dataclasses.replace(
        skill, body=skill.body + " Or `gate open`.", digest="other"
    )
    after = [trial.question.key for trial in trials(edited)]
    assert before[0] == after[0]
    assert before[1] != after[1]


def test_plan_has_the_questions_of_its_items_in_order(skill: Skill) -> None:
    first, second = trials(skill), trials(skill, Case("shut", "How do I shut it?"))
    tests = [
        PlannedCase(own[0].case, "gatekeeper", own[0].case, "haiku", tuple(own))
        for own in (first, second)
    ]
    plan = Plan((), tuple(tests))
    assert list(plan.questions()) == [trial.question for trial in (*first, *second)]
    turned = Plan((), plan.tests[::-1])
    assert plan.key != turned.key


def test_nothing_that_is_sent_has_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "k3y-of-a-server-0123456789"
    monkeypatch.setenv("SOME_API_KEY", key)
    call = ToolCall("1", key, f'{{"command": "{key}"}}')
    step = Step(
        key, (call,), (ToolResult("1", f"It is {key}."),), f'[{{"text": "{key}"}}]'
    )
    tool = Tool("bash", key, f'{{"description": "{key}"}}')
    asked = Question("m", key, (("user", key),), 100, 1, tools=(tool,), steps=(step,))
    assert key not in repr(hide_keys(asked))
    sent = hide_keys(asked).steps[0]
    assert sent == Step(
        "***",
        (ToolCall("1", "***", '{"command": "***"}'),),
        (ToolResult("1", "It is ***."),),
        '[{"text": "***"}]',
    )


def test_no_agent_is_told_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may quote the key that it was sent, even as the arguments of a call."""
    key = "k3y-of-a-server-0123456789"
    monkeypatch.setenv("SOME_API_KEY", key)
    call = ToolCall("1", "bash", f'{{"command": "echo {key}"}}')
    said = hide_keys(Answer(key, calls=(call,), thinking=key, raw=key))
    assert key not in repr(said) + said.raw
    assert said.calls == (ToolCall("1", "bash", '{"command": "echo ***"}'),)
