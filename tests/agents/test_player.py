"""The scripted model that plays on the tools of any agent."""

import json

from pytest_upskill.agents.probe import ScriptStep, ToolScript
from pytest_upskill.trials.tools import Tool
from pytest_upskill.trials.trial import Question

EXEC = Tool("exec_command", "", json.dumps({"type": "object", "properties": {"cmd": {}}}))


def test_paths_that_codex_shortens_are_made_whole() -> None:
    system = (
        "### Skill roots\n- `r0` = `/home/agent/.agents/skills`\n### Available skills\n"
        "- gate: Opens gates. (file: r0/gate/SKILL.md)\n"
    )
    question = Question("m", system, (("user", "Open the gate."),), 1000, 1, tools=(EXEC,))
    (call,) = ToolScript([ScriptStep("skill", "gate")], "gate")(question).calls
    assert json.loads(call.arguments) == {"cmd": "cat /home/agent/.agents/skills/gate/SKILL.md"}


def test_tools_that_read_several_files_get_one() -> None:
    schema = {"properties": {"files": {"type": "array"}}, "required": ["files"]}
    tool = Tool("read_files", "", json.dumps(schema))
    question = Question("m", "", (("user", "Open the gate."),), 1000, 1, tools=(tool,))
    (call,) = ToolScript([ScriptStep("read", "/a/b.md")])(question).calls
    assert json.loads(call.arguments) == {"files": [{"path": "/a/b.md"}]}


def test_paths_are_absolute_where_a_tool_says_so() -> None:
    """Qwen Code refuses others."""
    form = {"file_path": {"type": "string", "description": "The absolute path to the file."}}
    write = Tool("write_file", "", json.dumps({"properties": {**form, "content": {}}}))
    question = Question("m", "", (("user", "Open the gate."),), 1000, 1, tools=(write,))
    (call,) = ToolScript([ScriptStep("write", "gate.txt", "open")])(question).calls
    assert json.loads(call.arguments) == {"file_path": "/workspace/gate.txt", "content": "open"}
