"""The doctor's trial of an agent."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_upskill.agents.agent import Agent
from pytest_upskill.agents.clis.claude import ClaudeCode
from pytest_upskill.agents.loop import LoopAgent, tools_for
from pytest_upskill.agents.probe import (
    STEPS,
    Probe,
    ScriptStep,
    ToolScript,
    is_installed,
    probes,
)
from pytest_upskill.agents.sandboxes.bwrap import Bwrap
from pytest_upskill.agents.sandboxes.sandbox import (
    Sandbox,
    SandboxError,
    SandboxKind,
    SandboxSpec,
)
from pytest_upskill.agents.sandboxes.unconfined import Unconfined
from pytest_upskill.agents.staging import InstalledSkill
from pytest_upskill.trials.transcript import Tool
from pytest_upskill.trials.trial import Question
from support.fake_cli import VERSION, fake_cli
from support.sandboxes import needs_bwrap

OUTSIDE = ("key invisible", "network closed")


class Broken(SandboxKind):
    name = "broken"

    def why_not(self) -> str | None:
        return None

    async def open(self, room: SandboxSpec) -> Sandbox:  # noqa: ARG002
        raise SandboxError("no room left")


def probe(agent: Agent, kind: SandboxKind) -> Probe:
    return asyncio.run(probes([agent], kind))[agent.name]


@needs_bwrap
def test_loop_works_in_a_sandbox() -> None:
    found = probe(LoopAgent(), Bwrap())
    assert found.outcomes == dict.fromkeys(STEPS, True)
    assert found.works
    assert (found.version, found.problem) == (LoopAgent().version(), "")


def test_without_a_sandbox_the_probe_sees_key_and_network() -> None:
    before = dict(os.environ)
    found = probe(LoopAgent(), Unconfined())
    assert [step for step, done in found.outcomes.items() if not done] == list(OUTSIDE)
    assert not found.works
    assert dict(os.environ) == before


def test_a_sandbox_that_does_not_open_is_told() -> None:
    found = probe(LoopAgent(), Broken())
    assert not any(found.outcomes.values())
    assert "no room left" in found.problem


@pytest.mark.parametrize(
    ("tools", "lacking"),
    [
        (["skill", "read", "write"], None),  # a shell does for all of them
        (["bash"], "runs a command"),
        (["bash", "write"], "runs a command"),
        (["skill", "read", "bash"], "opens one"),
    ],
)
@needs_bwrap
def test_what_an_agent_has_no_tool_for_is_told(
    tools: list[str], lacking: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fewer(skills: Sequence[InstalledSkill]) -> tuple[Tool, ...]:
        return tuple(one for one in tools_for(skills) if one.name not in tools)

    monkeypatch.setattr("pytest_upskill.agents.loop.tools_for", fewer)
    found = probe(LoopAgent(), Bwrap())
    after = STEPS[STEPS.index(lacking) + 1 :] if lacking else ()
    expected = {step: None if step in after else step != lacking for step in STEPS}
    assert found.outcomes == expected
    assert found.works is (lacking is None)
    assert ("no tool for" in found.problem) is (lacking is not None)


@needs_bwrap
def test_a_program_of_the_host_is_really_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{fake_cli(tmp_path)}:{os.environ['PATH']}")
    agent = ClaudeCode()
    assert is_installed(agent)
    found = probe(agent, Bwrap())
    assert found.outcomes == dict.fromkeys(STEPS, True)
    assert (found.version, found.problem) == (VERSION, "")


@needs_bwrap
def test_a_program_that_breaks_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake_cli(tmp_path, breaks="echo 'node 20 is too old' >&2; exit 3")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    found = probe(ClaudeCode(), Bwrap())
    assert not any(found.outcomes.values())
    assert "node 20 is too old" in found.problem


def test_a_program_without_a_version_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake_cli(tmp_path, version="echo 'needs node 22' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    found = probe(ClaudeCode(), Broken())
    assert found.version == ""
    assert "needs node 22" in found.problem
    assert found.outcomes["starts"] is False


def test_a_program_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert not is_installed(ClaudeCode())
    assert is_installed(LoopAgent())


def test_a_node_that_is_too_old_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = (
        "file:///x.js:2\\nSyntaxError: no export named y\\n    at z\\n\\nNode.js"
        " v20.1.0"
    )
    folder = fake_cli(tmp_path, version=f"printf '{said}\\n' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    found = probe(ClaudeCode(), Broken())
    assert (
        "SyntaxError: no export named y (node 20.1.0 may be too old for it)"
        in found.problem
    )


EXEC = Tool(
    "exec_command", "", json.dumps({"type": "object", "properties": {"cmd": {}}})
)


def test_paths_that_codex_shortens_are_made_whole() -> None:
    system = (
        "### Skill roots\n- `r0` = `/home/agent/.agents/skills`\n### Available skills\n"
        "- gate: Opens gates. (file: r0/gate/SKILL.md)\n"
    )
    question = Question(
        "m", system, (("user", "Open the gate."),), 1000, 1, tools=(EXEC,)
    )
    (call,) = ToolScript([ScriptStep("skill", "gate")], "gate")(question).calls
    assert json.loads(call.arguments) == {
        "cmd": "cat /home/agent/.agents/skills/gate/SKILL.md"
    }


def test_paths_are_absolute_where_a_tool_says_so() -> None:
    """Some tools refuse others."""
    form = {
        "file_path": {"type": "string", "description": "The absolute path to the file."}
    }
    write = Tool("write_file", "", json.dumps({"properties": {**form, "content": {}}}))
    question = Question("m", "", (("user", "Open the gate."),), 1000, 1, tools=(write,))
    (call,) = ToolScript([ScriptStep("write", "gate.txt", "open")])(question).calls
    assert json.loads(call.arguments) == {
        "file_path": "/workspace/gate.txt",
        "content": "open",
    }
