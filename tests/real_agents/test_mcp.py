"""Real agents use the tools of an MCP server, which a stand-in
answers in their sandbox.
"""

import json
import re
from pathlib import Path
from typing import Final

import pytest

from pytest_upskill.agents.roster import AGENTS
from pytest_upskill.features.mcp.mocks import McpMocks
from pytest_upskill.features.mcp.part import McpServers
from real_agents.packages import HOW, PACKAGES, is_there, path_for
from real_agents.trying import agent_named, tried
from support.agents import write_files
from support.loopback import Asked, Reply
from support.sandboxes import needs_bwrap

pytestmark = needs_bwrap
NAMES: Final = [name for name in PACKAGES if name in AGENTS and AGENTS[name]().mcp]
TOOLS: Final = json.dumps([{"name": "close", "inputSchema": {"type": "object"}}])
MOCKS: Final = {
    "evals/mocks/lamp-tracker/create.md": (
        "---\nexpect: {title: string}\n---\n#48{{input.title}}21"
    ),
    "evals/mocks/lamp-tracker/_tools.json": TOOLS,
}
CALLS: Final = [("create", {"title": "ab"}), ("create", {"title": 7}), ("close", {})]


def clerk(asked: Asked) -> Reply:
    """Calls the tools by the names that it is told."""
    sent = json.dumps(asked.body).replace(r"\n", " ")
    if not asked.tools:
        return Reply("A title")  # beside the conversation
    results = len(asked.results)
    calls = [(_name(tool, sent), arguments) for tool, arguments in CALLS]
    if "ToolSearch" in asked.tools:  # it is told only the names of tools at first
        names = ",".join(dict(calls))
        calls.insert(0, ("ToolSearch", {"query": f"select:{names}", "max_results": 5}))
    return Reply(calls=(calls[results],)) if results < len(calls) else Reply("Done.")


def _name(tool: str, sent: str) -> str:
    if group := re.search(r'"(mcp__lamp[_-]tracker)"', sent):
        return f"{group[1]}.{tool}"
    match = re.search(rf"[\w-]*lamp[_-]tracker[\w-]*{tool}\b", sent)
    return match[0] if match else tool


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_calls_tools_of_a_stand_in(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_there(name, PACKAGES[name]["npm"]):
        pytest.skip(f"{name} is not installed. {HOW}")
    write_files(tmp_path, MOCKS)
    mocked = tuple(McpMocks(tmp_path).with_folder("").servers.values())
    parts = (McpServers(mocked),)
    monkeypatch.setenv("PATH", path_for(name))
    done = tried(name, agent_named(name).protocols[0], clerk, parts=parts)
    answer = done.answer
    assert answer, done.told
    assert answer.activity
    assert answer.activity.findings[:1] == (
        "no mock answers the MCP tool lamp-tracker/close",
    )

    def texts(tool: str) -> list[str]:
        turns = [turn for turn in answer.transcript if turn.kind == "result"]
        return [
            turn.text for turn in turns if turn.tool == f"mcp__lamp-tracker__{tool}"
        ]

    made, refused = texts("create")
    assert "#48ab21" in made, done.told
    assert "title must be" in refused
    assert "No mock answers lamp-tracker/close" in texts("close")[0]
