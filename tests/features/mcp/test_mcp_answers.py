"""What MCP servers answer: whatever is sent to their stand-in gets an answer."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.agents.sandboxes.sandbox import CommandResult, SandboxSpec
from pytest_upskill.agents.sandboxes.unconfined import Unconfined
from pytest_upskill.features.mcp.answers import (
    PROTOCOLS,
    answer_call,
    respond,
    why_refused,
)
from pytest_upskill.features.mcp.part import McpServers
from pytest_upskill.features.mcp.server import McpServer
from support.sandboxes import needs_bwrap, opened

CONTENT: dict[str, Any] = {
    "tools": [
        {"name": "create", "inputSchema": {"type": "object"}},
        {"name": "close", "inputSchema": {}},
    ],
    "mocks": {
        "create": {
            "expect": {"title": {"type": "string"}},
            "answers": [
                {"when": {"kind": {"choices": ["bug"]}}, "text": "Bug.", "error": True},
                {
                    "when": {},
                    "text": "Made {{input.title}} {{ input.of.0.x }}.",
                    "error": False,
                },
            ],
        },
        "get": {
            "expect": {},
            "answers": [
                {
                    "when": {},
                    "text": "<{{file:fixtures/{input.id}.json}}>",
                    "error": False,
                }
            ],
        },
        "only": {
            "expect": {},
            "answers": [
                {"when": {"n": {"choices": [1]}}, "text": "one", "error": False}
            ],
        },
    },
    "files": {"fixtures/7.json": '{"title": "{{input.id}}"}'},
}


SERVER = McpServer("tracker", json.dumps(CONTENT))


def request(method: str, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return json.dumps(message).encode()


def talk(lines: Sequence[bytes]) -> list[Any]:
    """What the stand-in in a sandbox answers to lines."""

    async def main() -> CommandResult:
        sandbox = await Unconfined().open(SandboxSpec())
        try:
            async with McpServers((SERVER,)).around(sandbox) as prepared:
                (program,) = prepared.servers
                words = [program.command, *program.arguments]
                stdin = b"\n".join([*lines, b""])
                return await sandbox.run(words, timeout=60, stdin=stdin)
        finally:
            await sandbox.close()

    ran = asyncio.run(main())
    assert ran.exit == 0
    return [json.loads(line) for line in ran.output.splitlines()]


def test_session() -> None:
    initialized = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'
    started = request("initialize", protocolVersion="2025-06-18", capabilities={})
    called = request("tools/call", name="create", arguments={"title": "Lamp"})
    pinged = request("ping")
    replies = talk([started, initialized, b"", pinged, request("tools/list"), called])
    assert replies[0]["result"]["protocolVersion"] == "2025-06-18"
    assert replies[0]["result"]["serverInfo"]["name"] == "tracker"
    assert replies[1] == {"jsonrpc": "2.0", "id": 7, "result": {}}
    tools = replies[2]["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["create", "close"]
    assert replies[3]["result"] == {
        "content": [{"type": "text", "text": "Made Lamp ."}],
        "isError": False,
    }


BAD_LINES = {
    b"hello": -32700,
    b"\xff\xfe\x00": -32700,
    b"[" * 100_000: -32700,
    b"9" * 10_000: -32700,
    b"[]": -32600,
    b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]': -32600,
    b"7": -32600,
    b'{"id": 1}': -32600,
    b'{"id": null, "jsonrpc": "2.0", "method": "ping"}': -32600,
    b'{"id": 1, "jsonrpc": "2.0", "method": {}}': -32600,
    b'{"id": 1, "jsonrpc": "2.0", "method": "ping", "params": []}': -32600,
    b'{"id": 1, "jsonrpc": "2.0", "method": "tools/call", "params": {}}': -32600,
    b'{"id": 1, "jsonrpc": "2.0", "method": "resources/list"}': -32601,
}


def test_nothing_that_is_sent_ends_it() -> None:
    replies = talk([*BAD_LINES, request("ping")])
    codes = [reply.get("error", {}).get("code") for reply in replies]
    assert codes == [*BAD_LINES.values(), None]


@needs_bwrap
def test_mocks_are_nowhere_in_the_sandbox() -> None:
    async def main() -> bytes:
        async with (
            opened() as sandbox,
            McpServers((SERVER,)).around(sandbox) as prepared,
        ):
            (program,) = prepared.servers
            line = request("tools/call", name="only", arguments={"n": 1})
            words = [program.command, *program.arguments]
            asked = await sandbox.run(words, timeout=60, stdin=line)
            assert b'"text": "one"' in asked.output
            hunt = "grep -rIls 'input[.]title\\|{{file:fixture[s]' / --exclude-dir=sys"
            return (await sandbox.run(hunt, timeout=60)).output

    assert asyncio.run(main()) == b""


@given(st.binary(max_size=200) | st.builds(lambda v: json.dumps(v).encode(), st.text()))
@settings(max_examples=200)
def test_any_line_has_a_response_that_is_json(line: bytes) -> None:
    json.loads(json.dumps(respond(SERVER, line)))


@pytest.mark.parametrize(
    ("tool", "arguments", "text", "failed"),
    [
        ("create", {"title": "a", "kind": "bug"}, "Bug.", True),
        ("create", {"title": "{{input.kind}}", "of": [{"x": {"y": 1}}]}, None, False),
        ("get", {"id": "7"}, '<{"title": "{{input.id}}"}>', False),
        ("get", {"id": 7}, '<{"title": "{{input.id}}"}>', False),
        ("only", {"n": 1}, "one", False),
        ("only", {"n": 1.0}, "one", False),
    ],
)
def test_answers(
    tool: str, arguments: dict[str, Any], text: str | None, failed: bool
) -> None:
    expected = text or 'Made {{input.kind}} {"y": 1}.'
    assert answer_call(SERVER, tool, arguments) == (expected, failed)


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("close", {}, "tracker/close"),
        ("../x", {}, "../x"),
        ("get", {"id": "../../../etc/passwd"}, "fixtures/../../../etc/passwd.json"),
        ("get", {}, "fixtures/.json"),
        ("only", {"n": True}, "tracker/only"),
        ("create", {"title": 5}, "title"),
        ("create", {}, "title is missing"),
    ],
)
def test_a_call_without_a_mock_fails_and_says_why(
    tool: str, arguments: dict[str, Any], named: str
) -> None:
    text, failed = answer_call(SERVER, tool, arguments)
    assert failed
    assert named in text


def test_a_long_answer_is_cut() -> None:
    text, _ = answer_call(SERVER, "create", {"title": "ü" * 300_000})
    assert 99_000 < len(text.encode()) < 101_000


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ({"type": "string"}, "a", 1),
        ({"type": "number"}, 1.5, True),
        ({"type": "boolean"}, False, 0),
        ({"type": "array"}, [], {}),
        ({"type": "object"}, {}, []),
        ({"pattern": "^a", "flags": "i"}, "Abc", "bA"),
        ({"pattern": "^1", "flags": ""}, 12, 21),
        ({"choices": ["a", None, 1]}, None, "b"),
        ({"choices": [1]}, 1, True),
    ],
)
def test_rules(rule: dict[str, Any], good: object, bad: object) -> None:
    rules = {"a.b": rule}
    assert why_refused(rules, {"a": {"b": good}}) == ""
    assert why_refused(rules, {"a": {"b": bad}}).startswith("a.b must")
    assert why_refused(rules, {"a": []}) == "a.b is missing"


def test_an_unknown_protocol_gets_the_newest() -> None:
    for asked in ("1999-01-01", 5, None, ["2025-06-18"]):
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
        line = json.dumps({**request, "params": {"protocolVersion": asked}}).encode()
        reply: Any = respond(SERVER, line)
        assert reply["result"]["protocolVersion"] == PROTOCOLS[0]
