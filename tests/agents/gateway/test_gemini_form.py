"""Google's form of requests and replies, read and written without a server."""

import json
from typing import Any

import pytest

from pytest_upskill.agents.gateway.endpoint import PROTOCOLS
from pytest_upskill.agents.gateway.protocol import question_of
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.transcript import Step, ToolCall, ToolResult
from support.endpoints import QUESTION

GEMINI = PROTOCOLS["gemini"]

ASKED = {"contents": [{"role": "user", "parts": [{"text": "Open the gate."}]}]}


def test_a_request_is_a_question() -> None:
    call = {
        "functionCall": {"id": "1", "name": "bash", "args": {"a": 1}},
        "thoughtSignature": "x",
    }
    failed = {
        "functionResponse": {"id": "1", "name": "bash", "response": {"error": "no"}}
    }
    body = {
        "system_instruction": {"parts": [{"text": "S"}, {"text": "T"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Go."}]},
            {
                "role": "model",
                "parts": [{"text": "Hm.", "thought": True}, {"text": "Look."}, call],
            },
            {"role": "user", "parts": [failed]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "bash", "parametersJsonSchema": {"type": "object"}}
                ]
            }
        ],
        "generation_config": {"max_output_tokens": 9},
    }
    question = question_of(GEMINI.parse_request(body), QUESTION)
    assert (question.system, question.messages) == ("S\n\nT", (("user", "Go."),))
    (step,) = question.steps
    (made,) = step.calls
    assert (made.name, made.arguments) == ("bash", '{"a": 1}')
    assert step == Step("Look.", (made,), (ToolResult(made.id, "no", failed=True),))
    assert [tool.name for tool in question.tools] == ["bash"]
    assert question.max_output == 9


def test_what_is_said_before_a_result_follows_it() -> None:
    """Some agents load a skill so."""
    call = {"functionCall": {"name": "skill", "args": {}}}
    result = {"functionResponse": {"name": "skill", "response": {"output": "loaded"}}}
    contents = [
        {"role": "user", "parts": [{"text": "Go."}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [{"text": "Push the gate."}, result]},
    ]
    (step,) = question_of(GEMINI.parse_request({"contents": contents}), QUESTION).steps
    assert [one.text for one in step.results] == ["loaded\nPush the gate."]


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize(
    "answer",
    [
        Answer("Done.", Usage(7, 3, 2)),
        Answer(
            "", Usage(7, 3, 0), "tools", calls=(ToolCall("c1", "bash", '{"a": "ü"}'),)
        ),
        Answer("Hm.", Usage(7, 3, 0), "length"),
        Answer("No.", Usage(7, 3, 0), "refusal"),
        Answer("", Usage(7, 0, 0)),
    ],
)
def test_what_is_written_reads_the_same(answer: Answer, streamed: bool) -> None:
    body = GEMINI.reply_body(answer, GEMINI.parse_request(ASKED))
    if streamed:
        reading = GEMINI.stream()
        for event in GEMINI.events(body):
            assert not reading.ended
            reading.add(event)
        assert reading.ended
        body = reading.body()
    said = GEMINI.parse_reply(body)
    assert (said.text, said.usage, said.stop) == (
        answer.text,
        answer.usage,
        answer.stop,
    )
    assert [(one.name, json.loads(one.arguments)) for one in said.calls] == [
        (one.name, json.loads(one.arguments)) for one in answer.calls
    ]


@pytest.mark.parametrize(
    ("body", "stop"),
    [
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "refusal"),
        ({"candidates": [{"finishReason": "RECITATION"}]}, "refusal"),
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, "length"),
        (
            {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]},
            "MALFORMED_FUNCTION_CALL",
        ),
        ({"candidates": [{"content": {"parts": [{"text": "a"}]}}]}, "end"),
        ({}, "end"),
    ],
)
def test_why_a_reply_ended(body: dict[str, Any], stop: str) -> None:
    assert GEMINI.parse_reply(body).stop == stop
    reading = GEMINI.stream()
    reading.add(body)
    assert GEMINI.parse_reply(reading.body()).stop == stop
    assert reading.ended == (stop != "end")


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"promptTokenCount": 9, "totalTokenCount": 9}, Usage(9, 0, 0)),
        (
            {"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 5},
            Usage(9, 7, 0),
        ),
        ({"promptTokenCount": 9, "toolUsePromptTokenCount": 3}, Usage(12, None, 0)),
        ({"promptTokenCount": 9, "cachedContentTokenCount": 4}, Usage(9, None, 4)),
        ({"promptTokenCount": -1, "candidatesTokenCount": "2"}, Usage(None, None, 0)),
        (None, Usage()),
        ([], Usage()),
    ],
)
def test_the_usage_of_a_reply(told: Any, usage: Usage) -> None:
    assert GEMINI.parse_reply({"usageMetadata": told}).usage == usage
