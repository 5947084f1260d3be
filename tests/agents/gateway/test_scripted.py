"""A model without a server, such as a script, for agents that speak any protocol."""

import asyncio
import json
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from pytest_upskill.agents.gateway.endpoint import PROTOCOLS
from pytest_upskill.agents.gateway.protocol import question_of
from pytest_upskill.models.model import ModelName
from pytest_upskill.models.providers import resolve
from pytest_upskill.trials.transcript import Step, ToolCall, ToolResult
from support.endpoints import QUESTION, Opened, open_endpoint

CHAT = PROTOCOLS["chat"]
MESSAGES = PROTOCOLS["messages"]
RESPONSES = PROTOCOLS["responses"]

RULES = [
    {"question": "gate", "calls": [{"tool": "bash", "arguments": {"command": "ls"}}]},
    {"question": "gate", "after": "latch.txt", "answer": "It has a latch."},
]
SCHEMA: Any = {"type": "object", "properties": {"command": {"type": "string"}}}


async def messages(client: Any, model: str, streamed: bool) -> str:
    said: list[Any] = [{"role": "user", "content": "Look at the gate."}]
    while True:
        body: Any = {"model": model, "max_tokens": 99, "messages": said}
        body["tools"] = [{"name": "bash", "description": "", "input_schema": SCHEMA}]
        if streamed:
            async with client.messages.stream(**body) as stream:
                reply = await stream.get_final_message()
        else:
            reply = await client.messages.create(**body)
        call = reply.content[-1]
        if call.type == "text":
            assert reply.stop_reason == "end_turn"
            return str(call.text)
        assert (reply.stop_reason, call.input) == ("tool_use", {"command": "ls"})
        said.append({"role": "assistant", "content": reply.content})
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "latch.txt"}
        said.append(
            {"role": "user", "content": [result, {"type": "text", "text": "Go on."}]}
        )


async def chat(client: Any, model: str, streamed: bool) -> str:
    said: list[Any] = [{"role": "user", "content": "Look at the gate."}]
    function = {"name": "bash", "description": "", "parameters": SCHEMA}
    while True:
        body: Any = {"model": model, "messages": said}
        body["tools"] = [{"type": "function", "function": function}]
        if streamed:
            async with client.chat.completions.stream(**body) as stream:
                reply = (await stream.get_final_completion()).choices[0]
        else:
            reply = (await client.chat.completions.create(**body)).choices[0]
        if not reply.message.tool_calls:
            assert reply.finish_reason == "stop"
            return str(reply.message.content)
        (call,) = reply.message.tool_calls
        assert json.loads(call.function.arguments) == {"command": "ls"}
        made = {"name": call.function.name, "arguments": call.function.arguments}
        made = {"id": call.id, "type": "function", "function": made}
        said.append({"role": "assistant", "content": None, "tool_calls": [made]})
        said.append({"role": "tool", "tool_call_id": call.id, "content": "latch.txt"})


async def responses(client: Any, model: str, streamed: bool) -> str:
    said: list[Any] = [{"role": "user", "content": "Look at the gate."}]
    while True:
        body: Any = {"model": model, "input": said}
        body["tools"] = [
            {"type": "function", "name": "bash", "parameters": SCHEMA, "strict": None}
        ]
        if streamed:
            async with client.responses.stream(**body) as stream:
                reply = await stream.get_final_response()
        else:
            reply = await client.responses.create(**body)
        call = reply.output[-1]
        if call.type == "message":
            return str(reply.output_text)
        made = {"type": "function_call", "call_id": call.call_id, "name": call.name}
        said.append({**made, "arguments": call.arguments})
        done = {"type": "function_call_output", "call_id": call.call_id}
        said.append({**done, "output": "latch.txt"})


def client_of(way: str, opened: Opened) -> Any:
    if way == "messages":
        return anthropic.AsyncAnthropic(base_url=opened.url, api_key=opened.token)
    return openai.AsyncOpenAI(base_url=f"{opened.url}/v1", api_key=opened.token)


WAYS = {"messages": messages, "chat": chat, "responses": responses}


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
def test_a_script_answers_an_agent(tmp_path: Path, way: str, streamed: bool) -> None:
    (tmp_path / "rules.json").write_text(json.dumps(RULES))
    spec = resolve(ModelName("scripted:rules.json", folder=tmp_path), {})

    async def run() -> None:
        async with open_endpoint(spec) as opened:
            async with client_of(way, opened) as client:
                said = await WAYS[way](client, opened.endpoint.model, streamed)
            assert said == "It has a latch."
            answer = opened.answer()
        assert answer.text == "It has a latch."
        assert [turn.kind for turn in answer.transcript if turn.kind != "user"] == [
            *("call", "result", "assistant")
        ]
        assert answer.usage.input
        assert answer.usage.output

    asyncio.run(run())


def test_requests_of_all_protocols_are_the_same_question() -> None:
    steps = (
        Step(
            "Let me look.",
            (ToolCall("1", "bash", '{"a": 1}'),),
            (ToolResult("1", "b"),),
        ),
        Step("", (ToolCall("2", "bash", "{}"),), (ToolResult("2", "c"),)),
    )
    head: Any = {"model": "m"}
    of_messages: list[Any] = [{"role": "user", "content": "Go."}]
    of_chat: list[Any] = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Go."},
    ]
    of_responses: list[Any] = [{"role": "user", "content": [{"text": "Go."}]}]
    for step in steps:
        (call,), (result,) = step.calls, step.results
        use = {"type": "tool_use", "id": call.id, "name": call.name}
        text: list[Any] = [{"type": "text", "text": step.text}] if step.text else []
        made = [*text, {**use, "input": json.loads(call.arguments)}]
        told = {"type": "tool_result", "tool_use_id": call.id, "content": result.text}
        of_messages += (
            {"role": "assistant", "content": made},
            {"role": "user", "content": [told]},
        )
        function = {"name": call.name, "arguments": call.arguments}
        calls = [{"id": call.id, "type": "function", "function": function}]
        of_chat.append({"role": "assistant", "content": step.text, "tool_calls": calls})
        of_chat.append(
            {"role": "tool", "tool_call_id": call.id, "content": result.text}
        )
        if step.text:
            of_responses.append({"role": "assistant", "content": step.text})
        of_responses.append({"type": "function_call", "call_id": call.id, **function})
        done = {"type": "function_call_output", "call_id": call.id}
        of_responses.append({**done, "output": result.text})
    questions = [
        question_of(
            MESSAGES.parse_request({**head, "system": "S", "messages": of_messages}),
            QUESTION,
        ),
        question_of(CHAT.parse_request({**head, "messages": of_chat}), QUESTION),
        question_of(
            RESPONSES.parse_request(
                {**head, "instructions": "S", "input": of_responses}
            ),
            QUESTION,
        ),
    ]
    for question in questions:
        assert (question.system, question.messages) == ("S", (("user", "Go."),))
        assert question.steps == steps
