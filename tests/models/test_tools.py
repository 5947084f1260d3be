"""Tools, calls and results through the real SDKs, against a real server on loopback."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_upskill.errors import ModelError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.names import PROVIDERS
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.tools import Step, Tool, ToolResult
from pytest_upskill.trials.trial import Question
from support.loopback import Asked, Fault, LoopbackServer, Reply

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
BASH = Tool("bash", "Run a command.", json.dumps(SCHEMA))
QUESTION = Question("m", "Be brief.", (("user", "What is here?"),), 64, 1, tools=(BASH,))
LS = ("bash", {"command": "ls"})
Script = Callable[[Asked], Reply | Fault]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sk-secret-0123456789")


@pytest.fixture(params=["anthropic", "openai"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def spec_of(provider: str, url: str) -> ModelSpec:
    address = url if provider == "anthropic" else f"{url}/v1"
    return ModelSpec("m", PROVIDERS[provider], "model-1", address)


def ask(spec: ModelSpec, *questions: Question) -> list[Answer]:
    async def run() -> list[Answer]:
        model = await spec.provider.open(spec, 20)
        try:
            return [await model.ask(question) for question in questions]
        finally:
            await model.close()

    return asyncio.run(run())


def answer_to(provider: str, script: Script, question: Question = QUESTION) -> Answer:
    with LoopbackServer(script) as server:
        return ask(spec_of(provider, server.url), question)[0]


def after(question: Question, answer: Answer, *texts: str) -> Question:
    """The next turn, with the results of the calls."""
    results = [ToolResult(call.id, text) for call, text in zip(answer.calls, texts, strict=True)]
    step = Step(answer.text, answer.calls, tuple(results), answer.raw)
    return replace(question, steps=(*question.steps, step))


def talk(provider: str, script: Script, *results: str) -> tuple[list[Answer], list[Asked]]:
    """Ask until there are no more calls; each turn has one call, which gets the next result."""

    async def run(spec: ModelSpec) -> list[Answer]:
        model = await spec.provider.open(spec, 20)
        question, answers = QUESTION, [await model.ask(QUESTION)]
        for result in results:
            question = after(question, answers[-1], result)
            answers.append(await model.ask(question))
        await model.close()
        return answers

    with LoopbackServer(script) as server:
        return asyncio.run(run(spec_of(provider, server.url))), server.asked


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


CACHED = {"cache_control": {"type": "ephemeral"}}


def test_what_goes_to_anthropic_byte_for_byte() -> None:
    (first, _), (_, asked) = talk("anthropic", list_then_tell, "a.txt")
    thought = "Which files are there?"
    signature = hashlib.sha256(thought.encode()).hexdigest()
    [call] = first.calls
    assert asked.body == {
        "model": "model-1",
        "max_tokens": 64,
        "system": [{"type": "text", "text": "Be brief.", **CACHED}],
        "tools": [{"name": "bash", "description": "Run a command.", "input_schema": SCHEMA}],
        "messages": [
            {"role": "user", "content": "What is here?"},
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
                    {"type": "tool_result", "tool_use_id": call.id, "content": "a.txt", **CACHED}
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
                "tool_calls": [{"id": call.id, "type": "function", "function": function}],
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
    with pytest.raises(ModelError, match="empty reply"):
        answer_to(provider, lambda _: Reply(calls=(LS,)), plain)


REFUSALS = [
    (400, "registry.ollama.ai/library/smollm2:135m does not support tools", "another one"),
    (404, 'No endpoints found that support tool use. Try disabling "bash".', "another one"),
    (500, "tools param requires --jinja flag", "--jinja"),
    (
        400,
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "Start vLLM with --enable-auto-tool-choice",
    ),
    (400, "tools is not supported in this model. For a list of supported models, see", "another"),
    (400, "InternalError.Algo.InvalidParameter: The tool call is not supported.", "another"),
    (400, "This model doesn't support tool use.", "another"),
    (422, "body.tools: Extra inputs are not permitted", "another"),
    (400, "`tool calling` is not supported with this model", "another"),
    (400, "Function calling is not enabled for models/gemma-3-27b-it", "another"),
    (400, "Unsupported parameter: 'tools' is not supported with this model.", "another"),
]


@pytest.mark.parametrize(("status", "message", "hint"), REFUSALS)
def test_a_model_without_tools_says_so(provider: str, status: int, message: str, hint: str) -> None:
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
def test_other_errors_are_not_blamed_on_tools(provider: str, status: int, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        answer_to(provider, lambda _: Fault("status", status, message=message))
    assert "takes no tools" not in caught.value.problem
    assert not caught.value.fatal
