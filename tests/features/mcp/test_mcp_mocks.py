"""Mocks of MCP servers, as people write them."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import CasesError
from pytest_upskill.features.mcp.answers import answer_call
from pytest_upskill.features.mcp.mocks import McpMocks, Mocks
from pytest_upskill.features.mcp.server import McpServer
from pytest_upskill.skills.folder import MANIFEST
from support.agents import write_files

HEAD = "---\nexpect:\n  title: string\n  priority: [low, high]\n---\n\n"


def read(folder: Path, files: dict[str, str], own: str = "", **more: str) -> Mocks:
    write_files(
        folder, {f"evals/mocks/{path}": text for path, text in files.items()} | more
    )
    return McpMocks(folder).with_folder(own)


def content(mocks: Mocks, server: str = "tracker") -> Any:
    return json.loads(mocks.servers[server].content)


def answered(server: Any, tool: str, arguments: object) -> Any:
    return answer_call(McpServer("tracker", json.dumps(server)), tool, arguments)


def problem(folder: Path, files: dict[str, str]) -> str:
    with pytest.raises(CasesError) as caught:
        read(folder, files)
    return str(caught.value).splitlines()[0].removeprefix(f"{folder}/evals/mocks/")


def test_a_server(tmp_path: Path) -> None:
    mocks = read(
        tmp_path,
        {
            "tracker/create.md": f"{HEAD}Created {{{{input.title}}}}\n",
            "tracker/get.md": "{{file:fixtures/{input.id}.json}}",
            "tracker/fixtures/7.json": '{"id": 7}\n',
            "tracker/README.md": "About these.",
            "README.md": "About all.",
            ".replay/tracker/x.json": "{}",
        },
    )
    server = content(mocks)
    assert [tool["name"] for tool in server["tools"]] == ["create", "get"]
    assert server["tools"][0]["inputSchema"]["type"] == "object"
    assert answered(server, "create", {"title": "a", "priority": "low"}) == (
        "Created a",
        False,
    )
    assert answered(server, "create", {"title": "a", "priority": "x"})[1]
    assert answered(server, "get", {"id": "7"}) == ('{"id": 7}\n', False)
    assert list(mocks.servers) == ["tracker"]
    assert mocks.notes == ()


def test_answers_by_arguments(tmp_path: Path) -> None:
    mock = """---
description: The weather.
input_schema: {type: object, properties: {city: {type: string}}}
error: true
answers:
  - when: {city: /^os/i, day: 2026-11-18}
    text: Snow.
  - when: {city: Rome}
    text: Sun.
---
Where is that?
"""
    server = content(read(tmp_path, {"tracker/weather.md": mock}))
    assert server["tools"][0]["description"] == "The weather."
    assert "city" in server["tools"][0]["inputSchema"]["properties"]
    assert answered(server, "weather", {"city": "OSLO", "day": "2026-11-18"}) == (
        "Snow.",
        False,
    )
    assert answered(server, "weather", {"city": "Rome"}) == ("Sun.", False)
    assert answered(server, "weather", {"city": "Bern"}) == ("Where is that?", True)


@pytest.mark.parametrize("shape", [{"tools": ...}, {"result": {"tools": ...}}, ...])
def test_a_saved_list_of_tools(tmp_path: Path, shape: Any) -> None:
    tools = [
        {
            "name": "b",
            "description": "B.",
            "inputSchema": {"anyOf": []},
            "outputSchema": {},
        },
        {"name": "a", "annotations": {"readOnlyHint": True}, "icons": []},
    ]
    listed = json.loads(json.dumps(shape, default=lambda _: tools))
    files = {
        "tracker/_tools.json": json.dumps(listed),
        "tracker/c.md": "c",
        "tracker/b.md": "b",
    }
    server = content(read(tmp_path, files))
    assert server["tools"] == [
        {
            "name": "b",
            "description": "B.",
            "inputSchema": {"anyOf": [], "type": "object"},
        },
        {"name": "a", "annotations": {"readOnlyHint": True}, "inputSchema": ANY},
        {"name": "c", "inputSchema": ANY},
    ]
    assert answered(server, "a", {})[1]


ANY = {"type": "object", "properties": {}, "additionalProperties": True}


def test_files_of_the_skill_and_of_a_case_replace_those_of_the_plugin(
    tmp_path: Path,
) -> None:
    skill = tmp_path / "skills" / "desk"
    servers = {
        "mcpServers": {"tracker": {"command": "rm"}, "figma": {"url": "http://x"}}
    }
    write_files(
        tmp_path,
        {
            ".claude-plugin/plugin.json": '{"name": "my.plug"}',
            ".mcp.json": json.dumps(servers),
            "evals/mocks/tracker/a.md": "plugin",
            "evals/mocks/tracker/b.md": "plugin",
            "skills/desk/evals/mocks/tracker/b.md": "skill",
            "skills/desk/evals/mocks/tracker/c.md": "skill",
            "skills/desk/evals/mocks/own/d.md": "skill",
            "skills/desk/evals/one/mocks/tracker/c.md": "case",
        },
    )
    mocks = McpMocks(skill).with_folder("evals/one/mocks")
    texts = {tool: answered(content(mocks), tool, {})[0] for tool in "abc"}
    assert texts == {"a": "plugin", "b": "skill", "c": "case"}
    names = {name: server.plugin for name, server in mocks.servers.items()}
    assert names == {"own": "", "tracker": "my.plug"}
    assert mocks.notes == ("MCP servers without mocks are left out: figma",)
    of_plugin = McpMocks(tmp_path).with_folder("")
    assert [tool["name"] for tool in content(of_plugin)["tools"]] == ["a", "b"]
    assert of_plugin.servers["tracker"] != mocks.servers["tracker"]


@pytest.mark.parametrize(
    ("manifest", "files", "left_out"),
    [
        ({"mcpServers": {"a": {}}}, {}, "a"),
        (
            {"mcpServers": "./servers.json"},
            {"servers.json": '{"mcpServers": {"b": {}}}'},
            "b",
        ),
        ({"mcpServers": ["./s.json", {"c": {}}]}, {"s.json": '{"d": {}}'}, "d, c"),
        ({}, {".mcp.json": '{"e": {}}'}, "e"),
        ({"mcpServers": 5}, {".mcp.json": "[]"}, ""),
        ({"mcpServers": "../out.json"}, {}, "can't be read"),
        ({}, {".mcp.json": "{"}, "can't be read"),
    ],
)
def test_servers_of_a_plugin(
    tmp_path: Path, manifest: Any, files: dict[str, str], left_out: str
) -> None:
    write_files(tmp_path, {MANIFEST: json.dumps({"name": "p", **manifest}), **files})
    mocks = McpMocks(tmp_path).with_folder("")
    assert mocks.servers == {}
    assert left_out in " ".join(mocks.notes)
    assert bool(mocks.notes) is bool(left_out)


def test_mocks_that_a_model_would_answer_are_offered_and_fail(tmp_path: Path) -> None:
    agent = "---\ntype: agent\nabort_when: x\n---\nYou are a server."
    several = "---\ntype: agent\ntools: [b, c]\n---\nYou are a server."
    files = {"tracker/a.md": agent, "tracker/_server.md": several, "tracker/c.md": "c"}
    mocks = read(tmp_path, {**files, "tracker/notes.txt": "x"})
    server = content(mocks)
    assert sorted(tool["name"] for tool in server["tools"]) == ["a", "b", "c"]
    assert [answered(server, tool, {})[1] for tool in "abc"] == [True, True, False]
    assert [note.rpartition("/")[2] for note in mocks.notes] == [
        "_server.md",
        "a.md",
        "notes.txt",
    ]


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("t/a.md", "---\nexpect: [\n---\n", "t/a.md:2: invalid YAML"),
        ("t/a.md", "---\ntype: fixed\n", "t/a.md:1: the frontmatter is not closed"),
        ("t/a.md", "---\n\ntype: agnet\n---\n", "t/a.md:3: type: "),
        (
            "t/a.md",
            "---\nanswers:\n  - when: {}\n    text: 5\n---\n",
            "t/a.md:4: answers[0].text: ",
        ),
        (
            "t/a.md",
            "---\nexpect: {a: /(/}\n---\n",
            "t/a.md:1: the pattern /(/ can't be used",
        ),
        ("t/a.md", "---\n- a\n---\n", "t/a.md:2: "),
        ("t/a.md", "---\n" + "a: &x [*x]\n" * 2000 + "---\n", "t/a.md:3: invalid YAML"),
        ("t/a.md", "a\0b", "t/a.md: not a text"),
        ("t/a.md", "x" * 1_000_001, "t/a.md: "),
        ("t/a b.md", "x", "t/a b.md:1: 'a b' can't be the name of a tool"),
        ("t\x1b[31m/a.md", "x", None),
        ("t/_tools.json", "{", "t/_tools.json:1:2: invalid JSON"),
        ("t/_tools.json", '[{"name": 5}]', "t/_tools.json:1: [0].name: "),
        ("t/_tools.json", '[{"name": "a/../b"}]', "t/_tools.json:1: 'a/../b' can't be"),
    ],
)
def test_bad_input_is_one_message(
    tmp_path: Path, path: str, text: str, message: str | None
) -> None:
    told = problem(tmp_path, {path: text})
    assert "\x1b" not in told
    assert told.startswith(message or "t")


def test_nothing_outside_of_the_skill_is_read(tmp_path: Path) -> None:
    skill, secret = tmp_path / "skill", tmp_path / "secret.md"
    secret.write_text("secret")
    write_files(
        skill,
        {"evals/mocks/t/a.md": "a", "evals/mocks/t/fixtures/credentials.json": "k"},
    )
    assert "may hold secrets" in problem(skill, {})
    (skill / "evals/mocks/t/fixtures/credentials.json").unlink()
    (skill / "evals/mocks/t/b.md").symlink_to(secret)
    assert "is outside of" in problem(skill, {})
    (skill / "evals/mocks/t/b.md").unlink()
    (skill / "evals/mocks/u").symlink_to(tmp_path)
    assert "a link to a folder" in problem(skill, {})
    (skill / "evals/mocks/u").unlink()
    assert list(McpMocks(skill).with_folder("").servers) == ["t"]


def test_server_has_a_limited_size(tmp_path: Path) -> None:
    large = {f"t/fixtures/{number}": "x" * 900_000 for number in range(6)}
    assert "more than 5 MB" in problem(tmp_path / "bytes", {"t/a.md": "a", **large})


def test_the_mock_in_the_docs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/agents.md").read_text(encoding="utf-8")
    mock = page.partition("```markdown\n")[2].partition("```")[0]
    server = content(read(tmp_path, {"tracker/create_issue.md": mock}))
    lamp, chair = ({"title": title, "priority": "low"} for title in ("Lamp", "Chair"))
    assert answered(server, "create_issue", lamp) == ("There is one already.", True)
    assert answered(server, "create_issue", chair) == (
        "Created issue #4821: Chair",
        False,
    )
    assert answered(server, "create_issue", {"title": "x", "priority": "mid"})[1]
