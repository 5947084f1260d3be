"""Tools, calls and results through the real SDKs, and servers that take no tools."""

import hashlib
import json
from dataclasses import replace

import pytest

from pytest_upskill.errors import ModelError
from pytest_upskill.models.sdk_errors import no_tools_hint
from pytest_upskill.trials.transcript import Step, ToolCall, ToolResult
from support.adapters import answers_of, spec_of
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.tool_talks import CACHED, LS, QUESTION, SCHEMA, answer_to, talk

pytestmark = pytest.mark.usefixtures("keys")


def list_then_tell(asked: Asked) -> Reply:
    if not asked.results:
        return Reply("I look.", calls=(LS,), thinking="Which files are there?")
    return Reply(f"There is {asked.results[-1]}.")


def test_a_call_comes_back_and_its_result_goes_out(provider: str) -> None:
    (first, last), asked = talk(provider, list_then_tell, "a.txt")
    [call] = first.calls
    assert (call.name, json.loads(call.arguments)) == LS
    assert (first.text, first.stop, first.thinking) == (
        "I look.",
        "tools",
        "Which files are there?",
    )
    assert (last.text, last.stop, last.calls) == ("There is a.txt.", "end", ())
    assert [one.tools for one in asked] == [("bash",), ("bash",)]
    assert [one.results for one in asked] == [(), ("a.txt",)]


def test_what_goes_to_anthropic_byte_for_byte() -> None:
    (first, _), (_, asked) = talk("anthropic", list_then_tell, "a.txt")
    thought = "Which files are there?"
    signature = hashlib.sha256(thought.encode()).hexdigest()
    [call] = first.calls
    assert asked.body == {
        "model": "model-1",
        "max_tokens": 64,
        "system": [{"type": "text", "text": "Be brief.", **CACHED}],
        "tools": [
            {"name": "bash", "description": "Run a command.", "input_schema": SCHEMA}
        ],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "What is here?", **CACHED}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": thought, "signature": signature},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": call.id, "name": "bash", "input": LS[1]},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": call.id,
                        "content": "a.txt",
                        **CACHED,
                    }
                ],
            },
        ],
    }


def test_what_goes_to_openai_byte_for_byte() -> None:
    (first, _), (_, asked) = talk("openai", list_then_tell, "a.txt")
    [call] = first.calls
    function = {"name": "bash", "arguments": json.dumps(LS[1])}
    assert asked.body == {
        "model": "model-1",
        "max_tokens": 64,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "bash",
                    "description": "Run a command.",
                    "parameters": SCHEMA,
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is here?"},
            {
                "role": "assistant",
                "content": "I look.",
                "reasoning_content": "Which files are there?",
                "tool_calls": [
                    {"id": call.id, "type": "function", "function": function}
                ],
            },
            {"role": "tool", "tool_call_id": call.id, "content": "a.txt"},
        ],
    }


def test_a_turn_with_calls_and_no_text_is_not_empty(provider: str) -> None:
    answer = answer_to(provider, lambda _: Reply(calls=(LS, LS)))
    assert answer.text == ""
    assert [call.name for call in answer.calls] == ["bash", "bash"]


def test_no_calls_are_read_if_no_tools_were_offered(provider: str) -> None:
    plain = replace(QUESTION, tools=())
    answer = answer_to(provider, lambda _: Reply("Hello.", calls=(LS,)), plain)
    assert (answer.text, answer.calls, answer.stop) == ("Hello.", (), "end")
    assert answer_to(provider, lambda _: Reply(calls=(LS,)), plain).is_empty


REFUSALS = [
    (
        400,
        "registry.ollama.ai/library/smollm2:135m does not support tools",
        "another one",
    ),
    (
        404,
        'No endpoints found that support tool use. Try disabling "bash".',
        "another one",
    ),
    (500, "tools param requires --jinja flag", "--jinja"),
    (
        400,
        (
            '"auto" tool choice requires --enable-auto-tool-choice and'
            " --tool-call-parser to be set"
        ),
        "Start vLLM with --enable-auto-tool-choice",
    ),
    (
        400,
        "tools is not supported in this model. For a list of supported models, see",
        "another",
    ),
    (
        400,
        "InternalError.Algo.InvalidParameter: The tool call is not supported.",
        "another",
    ),
    (400, "This model doesn't support tool use.", "another"),
    (422, "body.tools: Extra inputs are not permitted", "another"),
    (400, "`tool calling` is not supported with this model", "another"),
    (400, "Function calling is not enabled for models/gemma-3-27b-it", "another"),
    (
        400,
        "Unsupported parameter: 'tools' is not supported with this model.",
        "another",
    ),
]
OTHER_WORDS = [
    "deepseek-reasoner does not support Function Calling",
    "Unrecognized request argument supplied: tools",
    "unknown field `tools`, expected one of `messages`",
    "Invalid parameter: tools",
    "Tool calling is disabled for this model",
    "this model cannot use tools",
    "Model lacks tool support",
    "property 'tools' is unsupported",
    "Input validation error: tools are not supported by this chat template",
]
NOT_ABOUT_TOOLS = [
    "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks",
    (
        "Invalid parameter: messages with role 'tool' must be a response to a"
        " preceeding message"
    ),
    "An assistant message with 'tool_calls' must be followed by tool messages",
    "tools[0].function.parameters: unsupported keyword",
    "Invalid schema for function 'bash': additionalProperties is not supported",
    "Failed to parse tool call arguments as JSON",
    "This model does not support assistant message prefill.",
    "system: Extra inputs are not permitted",
]


def test_many_words_say_that_there_are_no_tools() -> None:
    assert [said for said in OTHER_WORDS if not no_tools_hint(400, said)] == []
    assert [said for said in NOT_ABOUT_TOOLS if no_tools_hint(400, said)] == []


@pytest.mark.parametrize(("status", "message", "hint"), REFUSALS)
def test_a_model_without_tools_says_so(
    provider: str, status: int, message: str, hint: str
) -> None:
    with pytest.raises(ModelError, match="the model takes no tools") as caught:
        answer_to(provider, lambda _: Fault("status", status, message=message))
    assert caught.value.fatal
    assert not caught.value.transient
    assert hint in caught.value.hint
    assert message[:20] in caught.value.problem


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "tools.0.custom.input_schema: `oneOf` is not supported"),
        (400, "messages.2: `tool_use` ids were found without `tool_result` blocks"),
        (429, "tools are not supported at this rate"),
        (500, "internal error"),
    ],
)
def test_other_errors_are_not_blamed_on_tools(
    provider: str, status: int, message: str
) -> None:
    with pytest.raises(ModelError) as caught:
        answer_to(provider, lambda _: Fault("status", status, message=message))
    assert "takes no tools" not in caught.value.problem
    assert not caught.value.fatal


def test_a_failed_result_says_so_and_several_go_in_one_message() -> None:
    calls = (ToolCall("a", "bash", "{}"), ToolCall("b", "bash", "{}"))
    results = (ToolResult("a", "no such command", failed=True), ToolResult("b", ""))
    question = replace(QUESTION, steps=(Step("", calls, results),))
    with LoopbackServer(lambda _: Reply("So be it.")) as server:
        answers_of(spec_of("anthropic", server.url), question)
        answers_of(spec_of("openai", server.url), question)
    of_anthropic, of_openai = (asked.body["messages"] for asked in server.asked)
    failed, empty = of_anthropic[-1]["content"]
    assert failed == {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": "no such command",
        "is_error": True,
    }
    assert (empty["tool_use_id"], "is_error" in empty) == ("b", False)
    assert of_openai[-2:] == [
        {"role": "tool", "tool_call_id": "a", "content": "no such command"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
    ]
