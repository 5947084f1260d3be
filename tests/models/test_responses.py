"""Turns of agents on OpenAI's newer models, which take tools in Responses only."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.errors import ModelError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.providers import PROVIDERS
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.transcript import Step, Tool, ToolCall, ToolResult
from pytest_upskill.trials.trial import Question
from support.loopback import Asked, Fault, LoopbackServer, Reply

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
QUESTION = Question(
    "m",
    "Be brief.",
    (("user", "What is here?"),),
    64,
    1,
    tools=(Tool("bash", "Run a command.", json.dumps(SCHEMA)),),
)
LS = ("bash", {"command": "ls"})
ELSEWHERE = Fault(
    "status",
    400,
    message=(
        "Function tools with reasoning_effort are not supported for gpt-6-sol in"
        " /v1/chat/completions. To use function tools, use /v1/responses or set"
        " reasoning_effort to 'none'."
    ),
)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")


def only_responses(
    script: Callable[[Asked], Reply | Fault],
) -> Callable[[Asked], Reply | Fault]:
    """A server that takes tools in Responses only."""
    return lambda asked: (
        ELSEWHERE if asked.protocol == "openai" and asked.tools else script(asked)
    )


def talk(
    script: Callable[[Asked], Reply | Fault],
    first: Question = QUESTION,
    effort: str | None = None,
) -> tuple[list[Answer], list[Asked]]:
    """Ask until there are no more calls, each of which gets the result "a.txt"."""

    async def run(spec: ModelSpec) -> list[Answer]:
        model, question, answers = (
            await spec.provider.open(spec, 20),
            first,
            list[Answer](),
        )
        try:
            while not answers or answers[-1].calls:
                answers.append(await model.ask(question))
                results = tuple(
                    ToolResult(call.id, "a.txt") for call in answers[-1].calls
                )
                step = Step(
                    answers[-1].text, answers[-1].calls, results, answers[-1].raw
                )
                question = replace(question, steps=(*question.steps, step))
        finally:
            await model.close()
        return answers

    with LoopbackServer(only_responses(script)) as server:
        spec = ModelSpec(
            "m", PROVIDERS["openai"], "gpt-6-sol", f"{server.url}/v1", effort
        )
        return asyncio.run(run(spec)), server.asked


def list_then_tell(asked: Asked) -> Reply:
    return Reply("There is a.txt.") if asked.results else Reply("I look.", calls=(LS,))


def test_a_server_that_wants_tools_in_responses_gets_them_there_from_then_on() -> None:
    (first, last), asked = talk(list_then_tell)
    assert [one.protocol for one in asked] == ["openai", "responses", "responses"]
    [call] = first.calls
    assert (call.name, json.loads(call.arguments)) == LS
    assert (first.text, first.stop, first.usage) == (
        "I look.",
        "tools",
        Usage(10, 5, 0),
    )
    assert (last.text, last.stop, last.calls) == ("There is a.txt.", "end", ())


THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Which files?"}],
    "encrypted_content": "b3BhcXVl",
}
CALLED = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "bash",
    "arguments": '{"command":"ls"}',
    "status": "completed",
}


def with_output(*items: Any, **fields: Any) -> Callable[[Asked], Reply]:
    def script(asked: Asked) -> Reply:
        return (
            Reply("Done.")
            if asked.results
            else Reply(raw={"output": [*items], **fields})
        )

    return script


def test_what_goes_out_byte_for_byte() -> None:
    (first, _), (_, _, asked) = talk(with_output(THOUGHT, CALLED), effort="low")
    assert first.thinking == "Which files?"
    assert asked.body == {
        "model": "gpt-6-sol",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "What is here?"},
            THOUGHT,
            CALLED,
            {"type": "function_call_output", "call_id": "call_1", "output": "a.txt"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "bash",
                "description": "Run a command.",
                "parameters": SCHEMA,
                "strict": False,
            }
        ],
        "max_output_tokens": 64,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low"},
    }


def test_a_thought_that_the_server_alone_knows_does_not_go_back() -> None:
    thought = {
        key: value for key, value in THOUGHT.items() if key != "encrypted_content"
    }
    (first, _), (_, _, asked) = talk(with_output(thought, CALLED))
    assert first.thinking == "Which files?"
    assert asked.body["input"][1:2] == [CALLED]


def test_a_turn_of_another_protocol_is_made_of_text_and_calls() -> None:
    calls = (ToolCall("1", "bash", '{"command": '),)
    step = Step("I look.", calls, (ToolResult("1", "oh"),), '{"role": "assistant"}')
    _, asked = talk(lambda _: Reply("Done."), replace(QUESTION, steps=(step,)))
    said, call, result = asked[-1].body["input"][1:]
    assert said == {"role": "assistant", "content": "I look."}
    assert call == {
        "type": "function_call",
        "call_id": "1",
        "name": "bash",
        "arguments": '{"unreadable_arguments": "{\\"command\\": "}',
    }
    assert result == {"type": "function_call_output", "call_id": "1", "output": "oh"}


def test_a_user_answers_in_a_message() -> None:
    step = Step("Which?", (), (), answer="The red one.")
    _, asked = talk(lambda _: Reply("Done."), replace(QUESTION, steps=(step,)))
    assert asked[-1].body["input"][1:] == [
        {"role": "assistant", "content": "Which?"},
        {"role": "user", "content": "The red one."},
    ]


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_output_tokens", "length"), ("content_filter", "refusal")]
)
def test_a_reply_that_ends_early_says_why(reason: str, stop: str) -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "I"}]}
    early = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    [answer], _ = talk(with_output(message, **early))
    assert (answer.text, answer.stop) == ("I", stop)


def test_a_refusal_calls_nothing() -> None:
    message = {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}
    [answer], _ = talk(with_output(message, CALLED))
    assert (answer.text, answer.refused, answer.calls) == ("No.", True, ())


def test_a_server_that_failed_says_why() -> None:
    with pytest.raises(ModelError, match="the server failed: out of tea") as caught:
        talk(with_output(status="failed", error={"message": "out of tea"}))
    assert caught.value.transient
    assert caught.value.paid
    assert caught.value.paid[:4] == (10, 5, 0, 0)


@pytest.mark.parametrize(
    "item",
    [
        7,
        None,
        "text",
        [],
        {},
        {"type": []},
        {"type": "message", "content": 7},
        {"type": "message", "content": [{"text": 7}, {"type": "output_text"}]},
        {"type": "reasoning", "summary": "x"},
        {"type": "function_call"},
        {"type": "function_call", "call_id": 7, "name": None, "arguments": {"a": 1}},
        {
            "type": "function_call",
            "call_id": "a",
            "name": "\ud800",
            "arguments": "\ud800",
        },
    ],
    ids=repr,
)
def test_an_odd_output_does_no_harm(item: Any) -> None:
    answers, asked = talk(with_output(item, CALLED))
    assert answers[-1].text == "Done."
    assert len({call.id for call in answers[0].calls}) == len(answers[0].calls)
    assert len(asked[-1].results) == len(answers[0].calls)


@pytest.mark.parametrize("output", [None, 7, "text", {"a": 1}])
def test_a_reply_without_outputs_is_none(output: object) -> None:
    with pytest.raises(ModelError, match="invalid reply"):
        talk(lambda _: Reply(raw={"output": output}))


def test_questions_without_tools_stay_where_they_are() -> None:
    [answer], asked = talk(lambda _: Reply("Hello."), replace(QUESTION, tools=()))
    assert answer.text == "Hello."
    assert [one.protocol for one in asked] == ["openai"]


def test_turns_of_an_agent_have_a_key_for_the_cache_unless_the_server_refuses_it() -> (
    None
):
    turn = replace(QUESTION, shared=("system", "steps"))
    _, asked = talk(list_then_tell, turn)
    keys = {
        one.body["prompt_cache_key"] for one in asked if one.protocol == "responses"
    }
    assert len(keys) == 1
    assert not any("prompt_cache_key" in one.body for one in talk(list_then_tell)[1])

    def refuses(asked: Asked) -> Reply | Fault:
        if "prompt_cache_key" in asked.body:
            return Fault("status", 400, message="unknown parameter: prompt_cache_key")
        return list_then_tell(asked)

    answers, asked = talk(refuses, turn)
    assert [one.text for one in answers] == ["I look.", "There is a.txt."]
    assert ["prompt_cache_key" in one.body for one in asked[1:]] == [True, False, False]
