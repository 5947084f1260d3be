"""Requests as Codex 0.166 sends them, with shorter texts, and replies as it wants
them.
"""

import json
from typing import Any

import pytest

from pytest_upskill.agents.gateway.endpoint import PROTOCOLS
from pytest_upskill.agents.gateway.protocol import question_of
from pytest_upskill.agents.gateway.request_log import RequestLog
from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.transcript import ToolCall
from pytest_upskill.trials.trial import Question

RESPONSES = PROTOCOLS["responses"]

QUESTION = Question("m", "", (("user", "Open the gate."),), 1000, 1)
EXEC = {
    "type": "function",
    "name": "exec_command",
    "description": "Runs a command in a PTY.",
    "strict": False,
    "parameters": {"type": "object", "properties": {"cmd": {}}},
}
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "This is a FREEFORM tool.",
    "format": {
        "type": "grammar",
        "syntax": "lark",
        "definition": "start: begin_patch hunk+",
    },
}
SPAWN = {"type": "function", "name": "spawn_agent", "strict": False, "parameters": {}}
AGENTS = {
    "type": "namespace",
    "name": "multi_agent_v1",
    "description": "",
    "tools": [SPAWN],
}
SEARCH = {
    "type": "tool_search",
    "execution": "client",
    "description": "# Tool discovery",
}
CODE = {**PATCH, "name": "exec", "description": "Run JavaScript code"}
SUMMARY = (
    "Handoff: the gate was pushed, its latch has clicked, and now it must be pulled."
)


def message(role: str, text: str) -> dict[str, Any]:
    return {
        "type": "message",
        "role": role,
        "content": [{"type": "input_text", "text": text}],
    }


CONTEXT = message(
    "user", "<environment_context>\n  <cwd>/workspace</cwd>\n</environment_context>"
)
GO = message("user", "Open the gate.")


def called(call: str, cmd: str = "ls") -> dict[str, Any]:
    arguments = json.dumps({"cmd": cmd})
    made = {"type": "function_call", "status": "completed", "name": "exec_command"}
    return {**made, "arguments": arguments, "call_id": call}


def told(call: str, output: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call, "output": output}


def request(
    *items: dict[str, Any], thread: str = "one", **changed: Any
) -> dict[str, Any]:
    return {
        "model": "m",
        "stream": True,
        "input": [message("developer", "You are a coding agent."), CONTEXT, *items],
        "tools": [EXEC, PATCH, AGENTS, SEARCH],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"summary": "auto"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "one",
        "client_metadata": {"thread_id": thread, "session_id": "one"},
        **changed,
    }


def test_tools_have_the_names_that_calls_have() -> None:
    asked = RESPONSES.parse_request(request(GO))
    names = [tool.name for tool in asked.tools]
    assert names == [
        "exec_command",
        "apply_patch",
        "multi_agent_v1.spawn_agent",
        "tool_search",
    ]
    assert asked.free_form == {"apply_patch"}
    assert asked.system == "You are a coding agent."
    assert asked.stream


def test_tools_may_come_among_the_input() -> None:
    """As for models that Codex lets write programs."""
    functions = {
        "type": "namespace",
        "name": "functions",
        "description": "",
        "tools": [CODE],
    }
    more = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [functions, AGENTS],
    }
    body = request(more, GO)
    del body["tools"]
    asked = RESPONSES.parse_request(body)
    assert [tool.name for tool in asked.tools] == ["exec", "multi_agent_v1.spawn_agent"]
    assert asked.free_form == {"exec"}


def test_all_kinds_of_calls_and_results_are_read() -> None:
    asked = RESPONSES.parse_request(
        request(
            GO,
            {
                "type": "reasoning",
                "summary": [{"text": "Look."}],
                "encrypted_content": "x",
            },
            {
                "type": "custom_tool_call",
                "call_id": "1",
                "name": "exec",
                "input": "text(1)",
            },
            {
                "type": "custom_tool_call_output",
                "call_id": "1",
                "output": [{"text": "1"}],
            },
            {
                "type": "tool_search_call",
                "call_id": "2",
                "arguments": {"query": "agents"},
            },
            {"type": "tool_search_output", "call_id": "2", "tools": [AGENTS]},
            {**called("3"), "name": "spawn_agent", "namespace": "multi_agent_v1"},
            told("3", "started"),
        )
    )
    assert [(item.kind, item.call, item.tool) for item in asked.items[2:]] == [
        ("thinking", "", ""),
        ("call", "1", "exec"),
        ("result", "1", ""),
        ("call", "2", "tool_search"),
        ("result", "2", ""),
        ("call", "3", "multi_agent_v1.spawn_agent"),
        ("result", "3", ""),
    ]
    results = [item.text for item in asked.items if item.kind == "result"]
    assert results[0] == "1"
    assert "spawn_agent" in results[1]
    assert results[2] == "started"
    question = question_of(asked, QUESTION)
    assert [step.calls[0].arguments for step in question.steps][:2] == [
        "text(1)",
        '{"query": "agents"}',
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "written"),
    [
        (
            "exec_command",
            '{"cmd": "ls"}',
            {"type": "function_call", "name": "exec_command"},
        ),
        (
            "apply_patch",
            "*** Begin",
            {"type": "custom_tool_call", "input": "*** Begin"},
        ),
        (
            "multi_agent_v1.spawn_agent",
            "{}",
            {
                "type": "function_call",
                "namespace": "multi_agent_v1",
                "name": "spawn_agent",
            },
        ),
    ],
)
def test_calls_of_a_script_are_written_as_their_tools_want(
    name: str, arguments: str, written: dict[str, str]
) -> None:
    call = ToolCall("call_1", name, arguments)
    body = RESPONSES.reply_body(
        Answer("", calls=(call,)), RESPONSES.parse_request(request(GO))
    )
    (item,) = body["output"]
    assert {key: item[key] for key in written} == written
    assert RESPONSES.parse_reply(body).calls == (call,)
    reading = RESPONSES.stream()
    for event in RESPONSES.events(body):
        reading.add(event)
    assert reading.ended
    assert RESPONSES.parse_reply(reading.body()).calls == (call,)


def recorded(*exchanges: tuple[dict[str, Any], Answer]) -> Answer:
    record, recorder = RequestLog(), Recorder(QUESTION)
    for second, (body, answer) in enumerate(exchanges):
        asked = RESPONSES.parse_request(body)
        said = RESPONSES.parse_reply(RESPONSES.reply_body(answer, asked))
        record.end(record.begin(asked, second), said, 0.5, second + 0.5)
    return recorder.answer("end", record.write_to(recorder))


def calls(call: str) -> Answer:
    return Answer(
        "", Usage(1, 1, 0), calls=(ToolCall(call, "exec_command", '{"cmd": "ls"}'),)
    )


def says(text: str) -> Answer:
    return Answer(text, Usage(1, 1, 0))


@pytest.mark.parametrize("forked", [False, True])
def test_a_sub_agent_is_told_apart_by_its_thread(forked: bool) -> None:
    """It begins with the same context, and perhaps with all that was said."""
    count = message("user", "Count the sheep.")
    past = (GO, called("1"), told("1", "started")) if forked else ()
    answer = recorded(
        (request(GO), calls("1")),
        (request(*past, count, thread="two"), says("There are 41 sheep in the field.")),
        (request(GO, called("1"), told("1", "started")), says("Done.")),
        (request(*past, count, thread="two"), says("Or was it 42?")),
    )
    assert answer.text == "Done."
    assert answer.activity is not None
    assert answer.activity.turns == 4


def test_a_compaction_is_beside_the_conversation_but_its_results_are_told() -> None:
    ask = message("user", "You are performing a CONTEXT CHECKPOINT COMPACTION.")
    handed = message(
        "user", f"Another language model started to solve this problem. {SUMMARY}"
    )
    answer = recorded(
        (request(GO), calls("1")),
        (request(GO, called("1"), told("1", "click"), ask, tools=[]), says(SUMMARY)),
        (request(GO, handed), says("Done.")),
    )
    assert answer.text == "Done."
    assert answer.activity is not None
    assert answer.activity.turns == 2
    assert answer.activity.findings == (
        "model calls beside the conversation: 1 (2 tokens)",
    )
    assert [turn.text for turn in answer.transcript if turn.kind == "result"] == [
        "click"
    ]


def test_what_a_provider_would_do_itself_is_left_out_wherever_it_stands() -> None:
    web = {"type": "web_search", "external_web_access": True}
    nested = {**AGENTS, "tools": [SPAWN, {"type": "code_interpreter"}]}
    more = {"type": "additional_tools", "role": "developer", "tools": [web, CODE]}
    body = request(more, GO, tools=[EXEC, nested, web, {"type": "local_shell"}])
    passed, left_out = RESPONSES.pass_on(body, network=False)
    assert left_out == ["web_search", "code_interpreter", "web_search"]
    assert passed["tools"] == [EXEC, AGENTS, {"type": "local_shell"}]
    assert passed["input"][2]["tools"] == [CODE]


def test_what_codex_asks_goes_on_as_it_is() -> None:
    body = request(
        GO, {"type": "additional_tools", "role": "developer", "tools": [CODE]}
    )
    passed, left_out = RESPONSES.pass_on(body, network=False)
    assert not left_out
    RESPONSES.prepare(passed, body["model"], None)
    assert json.dumps(passed) == json.dumps(body)
