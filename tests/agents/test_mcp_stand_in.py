"""The stand-in for an MCP server: a process that whatever is sent
to it gets an answer from.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.agents import mcp_stand_in
from pytest_upskill.agents.mcp_stand_in import (
    PROTOCOLS,
    answered,
    response,
    why_refused,
)

SERVER: dict[str, Any] = {
    "name": "tracker",
    "tools": [{"name": "create", "inputSchema": {"type": "object"}}, {"name": "close"}],
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


class Talk:
    """A running stand-in."""

    def __init__(self, folder: Path) -> None:
        file = folder / "server.json"
        file.write_text(json.dumps(SERVER))
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", mcp_stand_in.__file__, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def send(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def reply(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, **params: Any) -> Any:
        request = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        self.send(json.dumps(request).encode() + b"\n")
        return self.reply()

    def end(self) -> int:
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    talking = Talk(tmp_path)
    with talking.process:
        yield talking
        talking.process.kill()


def test_a_session(talk: Talk) -> None:
    started = talk.ask("initialize", protocolVersion="2025-06-18", capabilities={})
    assert started["result"]["protocolVersion"] == "2025-06-18"
    assert started["result"]["serverInfo"]["name"] == "tracker"
    talk.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n\n')
    assert talk.ask("ping") == {"jsonrpc": "2.0", "id": 7, "result": {}}
    tools = talk.ask("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["create", "close"]
    made = talk.ask("tools/call", name="create", arguments={"title": "Lamp"})
    assert made["result"] == {
        "content": [{"type": "text", "text": "Made Lamp ."}],
        "isError": False,
    }
    assert talk.end() == 0


def test_nothing_that_is_sent_ends_it(talk: Talk) -> None:
    for line, code in [
        (b"hello", -32700),
        (b"\xff\xfe\x00", -32700),
        (b"[" * 100_000, -32700),
        (b"9" * 10_000, -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b'{"id": 1}', -32600),
        (b'{"id": null, "jsonrpc": "2.0", "method": "ping"}', -32600),
        (b'{"id": 1, "jsonrpc": "2.0", "method": {}}', -32600),
        (b'{"id": 1, "jsonrpc": "2.0", "method": "ping", "params": []}', -32602),
        (b'{"id": 1, "jsonrpc": "2.0", "method": "tools/call", "params": {}}', -32602),
        (b'{"id": 1, "jsonrpc": "2.0", "method": "resources/list"}', -32601),
        (b'{"a": "' + b"x" * 5 * 2**20 + b'"}', -32700),
    ]:
        talk.send(line + b"\n")
        assert talk.reply()["error"]["code"] == code
    talk.send(
        b'[{"jsonrpc": "2.0", "id": "a", "method": "ping"}, 3, {"method": "x"}]\n'
    )
    assert [one.get("id") for one in talk.reply()] == ["a", None]
    assert talk.ask("ping")["result"] == {}


def test_a_client_that_is_gone_leaves_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(json.dumps(SERVER))
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    script = (
        f"yes '{ping}' | head -n 20000 | '{sys.executable}' '{mcp_stand_in.__file__}' "
    )
    script += "server.json | head -n 1"
    ran = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, timeout=60
    )
    assert (ran.stderr, len(ran.stdout.splitlines())) == (b"", 1)


@given(st.binary(max_size=200) | st.builds(lambda v: json.dumps(v).encode(), st.text()))
@settings(max_examples=200)
def test_any_line_has_a_response_that_is_json(line: bytes) -> None:
    json.loads(json.dumps(response(SERVER, line)))


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
    assert answered(SERVER, tool, arguments) == (expected, failed)


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
    text, failed = answered(SERVER, tool, arguments)
    assert failed
    assert named in text


def test_a_long_answer_is_cut() -> None:
    text, _ = answered(SERVER, "create", {"title": "ü" * 300_000})
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
        reply: Any = response(SERVER, line)
        assert reply["result"]["protocolVersion"] == PROTOCOLS[0]
