"""Skills that a user invokes: how each agent is told so, and that they count as
opened.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.agents.clis.claude import ClaudeCode
from pytest_upskill.agents.clis.codex import Codex
from pytest_upskill.agents.command_agent import CommandAgent
from pytest_upskill.agents.loop import LoopAgent
from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.agents.sandboxes.sandbox import PLUGINS
from pytest_upskill.agents.staging import InstalledSkill
from pytest_upskill.skills.invocation import Invocation
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.arm import SkillCopy
from pytest_upskill.trials.transcript import NOT_INVOKED, UNTOLD, ToolCall
from support.agents import BODY, MemorySandbox, ScriptedCall, installed, recorder_for
from support.endpoints import KEY
from support.kit import write_skill
from support.loopback import LoopbackServer
from support.tiny_trials import BARE, carried_out, steps
from support.trials import SPEC

INVOKE = Invocation("gate", "for the visitors")
DONE = Answer("Done.")


def recorder(
    *skills: InstalledSkill, invoke: Invocation = INVOKE, system: str = ""
) -> Recorder:
    question = recorder_for(*skills).question
    assert question.task
    task = replace(question.task, invoke=invoke)
    return Recorder(replace(question, task=task, system=system), skills)


def test_our_agent_gives_its_model_the_text_at_once(tmp_path: Path) -> None:
    skill = installed(tmp_path)
    model = ScriptedCall(DONE)
    trial = recorder(skill)
    activity = asyncio.run(
        LoopAgent().run(MemorySandbox(), model, trial, SPEC)
    ).activity
    (question,) = model.questions
    ((role, text),) = question.messages
    assert role == "user"
    assert text.startswith('<skill_content name="gate">\n# The gate')
    assert "\n\nARGUMENTS: for the visitors\n" in text
    assert trial.question.messages[-1][1] not in text
    assert activity
    assert (activity.activated, activity.opened, activity.findings) == (
        True,
        ("gate",),
        (),
    )
    assert activity.listed == ()


def test_our_agent_does_not_list_skills_for_users_only(tmp_path: Path) -> None:
    gate = replace(installed(tmp_path), users_only=True)
    boat = installed(
        tmp_path, "boat", body="# Boats\n\nCoil the line.\n", files={}, tested=False
    )
    for skills in ([gate], [gate, boat]):
        model = ScriptedCall(DONE)
        asyncio.run(LoopAgent().run(MemorySandbox(), model, recorder(*skills), SPEC))
        (question,) = model.questions
        assert gate.description not in question.system
        assert [tool for tool in question.tools if "gate" in tool.schema] == []
        assert ("<available_skills>" in question.system) is (len(skills) == 2)


@pytest.mark.parametrize(
    ("agent", "command"),
    [(ClaudeCode(), "/gate for the visitors"), (Codex(), "$gate for the visitors")],
)
def test_agents_have_commands_of_their_own(
    tmp_path: Path, agent: CommandAgent, command: str
) -> None:
    skill = installed(tmp_path)
    assert agent._prompt(recorder(skill), MemorySandbox()) == (command, True)
    bare, is_command = agent._prompt(
        recorder(skill, invoke=Invocation("gate")), MemorySandbox()
    )
    assert (bare, is_command) == (command.split()[0], True)
    prompt, is_command = agent._prompt(
        recorder(skill, system="Be brief."), MemorySandbox()
    )
    # A command comes first
    assert prompt.startswith('Be brief.\n\n<skill_content name="gate">')
    assert not is_command
    assert not agent._prompt(recorder_for(skill), MemorySandbox())[1]


def test_claude_code_finds_a_skill_of_a_plugin_by_both_names(tmp_path: Path) -> None:
    skill = replace(installed(tmp_path), in_plugin=f"{PLUGINS}/garden/skills/gate")
    assert ClaudeCode().command(skill, "now") == "/garden:gate now"


def test_other_agents_get_the_text_of_the_skill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    skill = SkillCopy.of("gate", write_skill(tmp_path / "gate", body=BODY))
    with LoopbackServer(steps()) as server:
        answer = carried_out(
            *(server.url, "messages"),
            script=BARE,
            sandbox="none",
            skills=(skill,),
            tested=("gate",),
            invoke=INVOKE,
        )
    assert isinstance(answer, Answer)
    (prompt,) = (turn.text for turn in answer.transcript if turn.kind == "user")
    assert BODY.strip() in prompt
    assert "ARGUMENTS: for the visitors" in prompt
    assert answer.activity
    assert (answer.activity.activated, answer.activity.findings) == (True, ())


@pytest.mark.parametrize(
    ("body", "first", "given"),
    [
        (BODY, f"Base directory: /skills\n\n{BODY}", True),
        ("Open $ARGUMENTS.", "Open for the visitors.", True),
        ("Open $ARGUMENTS.", "<skill>Open $ARGUMENTS.</skill>", True),
        (BODY, "/gate for the visitors", False),
    ],
)
def test_only_a_text_that_was_sent_counts_as_opened(
    tmp_path: Path, body: str, first: str, given: bool
) -> None:
    trial = recorder(installed(tmp_path, body=body))
    trial.message("user", first)
    trial.reply(Answer("", calls=(ToolCall("1", "bash", "{}"),)))
    activity = trial.activity
    assert activity.activated is given
    assert (NOT_INVOKED in activity.findings) is not given
    assert UNTOLD not in activity.findings
    assert not activity.untold
