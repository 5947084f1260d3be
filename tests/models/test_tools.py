"""Tools, calls and results through the real SDKs, against a real server on loopback."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.errors import ModelError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.hosted import MessagesProvider
from pytest_upskill.models.tool_support import hint_without_tools
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.tools import Step, Tool, ToolCall, ToolResult
from pytest_upskill.trials.trial import Question
from support.adapters import answers_of, spec_of
from support.loopback import Asked, Fault, LoopbackServer, Reply

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
BASH = Tool("bash", "Run a command.", json.dumps(SCHEMA))
QUESTION = Question("m", "Be brief.", (("user", "What is here?"),), 64, 1, tools=(BASH,))
TURN = replace(QUESTION, shared=("system", "steps"))  # as the engine asks for an agent
LS = ("bash", {"command": "ls"})
Script = Callable[[Asked], Reply | Fault]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sk-secret-0123456789")


@pytest.fixture(params=["anthropic", "openai"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def answer_to(provider: str, script: Script, question: Question = QUESTION) -> Answer:
    with LoopbackServer(script) as server:
        return answers_of(spec_of(provider, server.url), question)[0]


def after(question: Question, answer: Answer, *texts: str) -> Question:
    """The next turn, with the results of the calls."""
    results = [ToolResult(call.id, text) for call, text in zip(answer.calls, texts, strict=True)]
    step = Step(answer.text, answer.calls, tuple(results), answer.raw)
    return replace(question, steps=(*question.steps, step))


def talk(provider: str, script: Script, *results: str) -> tuple[list[Answer], list[Asked]]:
    """Ask until there are no more calls; each turn has one call, which gets the next result."""

    async def run(spec: ModelSpec) -> list[Answer]:
        model = await spec.provider.open(spec, 20)
        question = TURN if provider == "anthropic" else QUESTION
        answers = [await model.ask(question)]
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
            {"role": "user", "content": [{"type": "text", "text": "What is here?", **CACHED}]},
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
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message",
    "An assistant message with 'tool_calls' must be followed by tool messages",
    "tools[0].function.parameters: unsupported keyword",
    "Invalid schema for function 'bash': additionalProperties is not supported",
    "Failed to parse tool call arguments as JSON",
    "This model does not support assistant message prefill.",
    "system: Extra inputs are not permitted",
]


def test_many_words_say_that_there_are_no_tools() -> None:
    assert [said for said in OTHER_WORDS if not hint_without_tools(400, said)] == []
    assert [said for said in NOT_ABOUT_TOOLS if hint_without_tools(400, said)] == []


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


def sent_back(provider: str, step: Step) -> list[dict[str, Any]]:
    """The turn of a step as it goes out: the calls, behind anything else."""
    with LoopbackServer(lambda _: Reply("Fine.")) as server:
        answers_of(spec_of(provider, server.url), replace(QUESTION, steps=(step,)))
    turn = next(one for one in server.asked[0].body["messages"] if one["role"] == "assistant")
    if provider == "anthropic":
        return [*turn["content"]]
    return [{"text": turn["content"]}, *turn["tool_calls"]]


CALL = ToolCall("call-1", "bash", '{"command": "ls"}')
RESULTS = (ToolResult("call-1", "a.txt"),)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "no JSON",
        "7",
        "[]",
        "{}",
        "[7, null]",
        '{"role": "assistant", "content": "", "tool_calls": null}',
        '[{"type": "tool_use", "id": "another", "name": "bash", "input": {}}]',
        '{"role": "assistant", "tool_calls": [{"id": "another"}]}',
        "[" * 100_000,
    ],
    ids=lambda raw: raw[:24],
)
def test_a_turn_of_another_protocol_is_made_of_text_and_calls(provider: str, raw: str) -> None:
    text, call = sent_back(provider, Step("I look.", (CALL,), RESULTS, raw))
    assert text["text"] == "I look."
    if provider == "anthropic":
        assert call == {"type": "tool_use", "id": "call-1", "name": "bash", "input": LS[1]}
    else:
        function = {"name": "bash", "arguments": '{"command": "ls"}'}
        assert call == {"id": "call-1", "type": "function", "function": function}


@pytest.mark.parametrize("arguments", ['{"command": ', "[1]", '"ls"', "7", "[" * 100_000, "null"])
def test_broken_arguments_go_back_as_an_object(provider: str, arguments: str) -> None:
    call = sent_back(provider, Step("", (replace(CALL, arguments=arguments),), RESULTS))[-1]
    given = call["input"] if provider == "anthropic" else json.loads(call["function"]["arguments"])
    assert given == {"unreadable_arguments": arguments}


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("functions.bash", "functions_bash"),
        ("", "unknown"),
        ("<script>", "_script_"),
        ("x" * 999, "x" * 64),
    ],
)
def test_a_name_that_no_server_takes_goes_back_as_one_that_it_does(
    provider: str, name: str, sent: str
) -> None:
    call = sent_back(provider, Step("", (replace(CALL, name=name),), RESULTS))[-1]
    assert (call if provider == "anthropic" else call["function"])["name"] == sent


def test_arguments_stay_as_the_model_wrote_them() -> None:
    written = '{ "command":"ls",  "command": "pwd" }'
    answer = answer_to("openai", lambda _: Reply(calls=(("bash", written),)))
    assert answer.calls[0].arguments == written
    assert json.loads(answer.raw)["tool_calls"][0]["function"]["arguments"] == written


def with_calls(provider: str, *calls: Any, text: str = "") -> Reply:
    """A reply with calls in any form: id, name and arguments, or anything else."""
    if provider == "anthropic":
        blocks = [
            {"type": "tool_use", "id": one[0], "name": one[1], "input": one[2]}
            if isinstance(one, tuple)
            else one
            for one in calls
        ]
        said = [{"type": "text", "text": text}] if text else []
        return Reply(raw={"content": [*said, *blocks], "stop_reason": "tool_use"})
    made = [
        {"id": one[0], "type": "function", "function": {"name": one[1], "arguments": one[2]}}
        if isinstance(one, tuple)
        else one
        for one in calls
    ]
    message = {"role": "assistant", "content": text or None, "tool_calls": made}
    return Reply(raw={"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


def test_missing_and_repeated_ids_are_made_up(provider: str) -> None:
    ids = ["same", "same", "", None, 7, {"id": 1}, "a b", "x" * 10_000, "call_3"]
    reply = with_calls(provider, *((one, "bash", "{}") for one in ids))
    answers, asked = talk_all(provider, reply)
    made = [call.id for call in answers[0].calls]
    assert len(set(made)) == len(made) == len(ids)
    assert made[0] == "same"
    assert all(0 < len(one) <= 256 for one in made)
    # The server gives the same ids again in its next turn.
    again = [call.id for call in answers[1].calls]
    assert not set(made) & set(again)
    turns = [one for one in asked[-1].body["messages"] if one["role"] == "assistant"]
    for turn, wanted in zip(turns, (made, again), strict=True):
        blocks = turn["content"] if provider == "anthropic" else turn["tool_calls"]
        assert [block["id"] for block in blocks] == wanted


def talk_all(provider: str, *replies: Reply) -> tuple[list[Answer], list[Asked]]:
    """Two turns with the same reply, all of whose calls get a result, and a last one."""

    async def run(spec: ModelSpec) -> list[Answer]:
        model = await spec.provider.open(spec, 20)
        question, answers = QUESTION, list[Answer]()
        try:
            while not answers or answers[-1].calls:
                answers.append(await model.ask(question))
                question = after(question, answers[-1], *("done" for _ in answers[-1].calls))
        finally:
            await model.close()
        return answers

    def script(_: Asked) -> Reply:
        return replies[0] if len(server.asked) < 3 else Reply("Done.")

    with LoopbackServer(script) as server:
        return asyncio.run(run(spec_of(provider, server.url))), server.asked


ODD_CALLS: list[Any] = [
    ("a", "bash", None),
    ("a", "bash", 7),
    ("a", "bash", [1, 2]),
    ("a", "bash", {"command": {"a": [None, True]}}),
    ("a", "bash", "\ud800 half"),
    ("a", "\udc00", "{}"),
    ("a", None, "{}"),
    ("a", {"name": "bash"}, "{}"),
    ("a", "x" * 1_000_000, "{}"),
    ("a", "bash", "x" * 300_000),
    {"type": "tool_use"},
    {"type": "function"},
    {"type": "function", "function": 7},
    {"type": "function", "function": None, "id": []},
    {"type": "custom", "id": "c", "custom": {"name": "bash", "input": "x"}},
    {"type": ["tool_use"]},
    {"type": 7},
    {},
    7,
    "bash",
    None,
    [],
]


@pytest.mark.parametrize("call", ODD_CALLS, ids=lambda call: repr(call)[:30])
def test_an_odd_call_is_a_call_or_none_and_goes_back(provider: str, call: Any) -> None:
    """A server may send anything: the next turn works all the same, or there is a ModelError."""
    try:
        answers, asked = talk_all(provider, with_calls(provider, call, text="Hm."))
    except ModelError:
        return
    for made in answers[0].calls:
        assert (made.id, made.arguments) != ("", "")
        assert len(made.name) <= 128
        json.dumps([made.name, made.arguments]).encode()
        (made.name + made.arguments + answers[0].raw).encode()
    assert len(asked[-1].results) == 2 * len(answers[0].calls)
    assert answers[-1].text == ("Done." if answers[0].calls else "Hm.")


@pytest.mark.parametrize("odd", [7, "bash", {"a": 1}, [[]], [None], {}, [], "", 0, None])
def test_odd_lists_of_calls_are_none(odd: object) -> None:
    message = {"role": "assistant", "content": "Hm.", "tool_calls": odd}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    answer = answer_to("openai", lambda _: Reply(raw={"choices": choices}))
    assert (answer.text, answer.calls, answer.stop) == ("Hm.", (), "end")


def test_ten_thousand_calls_are_an_error(provider: str) -> None:
    many = with_calls(provider, *((f"id-{n}", "bash", "{}") for n in range(10_000)))
    with pytest.raises(ModelError, match="too large"):
        answer_to(provider, lambda _: many)


def test_a_refusal_calls_nothing() -> None:
    reply = with_calls("anthropic", ("a", "bash", {}), text="No.")
    raw = {**reply.raw, "stop_reason": "refusal"}
    answer = answer_to("anthropic", lambda _: Reply(raw=raw))
    assert (answer.refused, answer.calls, answer.text) == (True, (), "No.")


def test_a_turn_cut_off_within_a_call_says_so(provider: str) -> None:
    answer = answer_to(provider, lambda _: Reply("I", "length", calls=(LS,)))
    assert (answer.stop, len(answer.calls)) == ("length", 1)


def test_all_blocks_go_back_as_they_came_and_in_order() -> None:
    content: list[dict[str, object]] = [
        {"type": "thinking", "thinking": "First.", "signature": "c2lnMQ=="},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "text", "text": "I look. ", "citations": None},
        {"type": "text", "text": " \n"},
        {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"b": 1, "a": 1.0}},
        {"type": "thinking", "thinking": "Ünd then…", "signature": "c2lnMg=="},
        {"type": "tool_use", "id": "toolu_2", "name": "bash", "input": {}, "caller": {"x": 1}},
        {"type": "of_tomorrow", "field": [1, {"two": None}]},
    ]
    reply = Reply(raw={"content": content, "stop_reason": "tool_use"})
    answers, asked = talk_all("anthropic", reply)
    assert answers[0].thinking == "First.\n\nÜnd then…"
    assert answers[0].text == "I look.  \n"
    turn = asked[1].body["messages"][1]["content"]
    kept = [block for block in content if block.get("text") != " \n"]  # no server takes it back
    assert turn == kept
    assert list(turn[3]["input"]) == ["b", "a"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_what_compatible_servers_call_thinking_goes_back(field: str) -> None:
    details = [{"type": "reasoning.encrypted", "data": "abc", "index": 0}]
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    signed = {**call, "extra_content": {"google": {"thought_signature": "c2ln"}}}
    message = {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": [],
        "audio": None,
        field: "I think.",
        "reasoning_details": details,
        "tool_calls": [signed],
    }
    raw = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    answers, asked = talk_all("openai", Reply(raw=raw))
    assert answers[0].thinking == "I think."
    assert asked[1].body["messages"][2] == {
        "role": "assistant",
        "content": None,
        field: "I think.",
        "reasoning_details": details,
        "tool_calls": [signed],
    }


def test_a_content_in_parts_is_read_and_goes_back() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Which files?"}]},
        {"type": "text", "text": "I look."},
    ]
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    message = {"role": "assistant", "content": parts, "tool_calls": [call]}
    raw = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    answers, asked = talk_all("openai", Reply(raw=raw))
    assert (answers[0].text, answers[0].thinking) == ("I look.", "Which files?")
    assert asked[1].body["messages"][2]["content"] == parts


def thinking_in(asked: Asked) -> list[object]:
    turns = [one for one in asked.body["messages"] if one["role"] == "assistant"]
    return [turn.get("reasoning_content") for turn in turns]


@pytest.mark.parametrize(
    "message",
    [
        "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : "
        "property 'reasoning_content' is unsupported)]",
        "messages.2.assistant.reasoning_content: property is unsupported",
    ],
)
def test_a_server_that_refuses_thinking_gets_none_from_then_on(message: str) -> None:
    def script(asked: Asked) -> Reply | Fault:
        if any(thinking_in(asked)):
            return Fault("status", 400, message=message)
        return Reply(calls=(LS,), thinking="Hm.") if len(asked.results) < 3 else Reply("Done.")

    answers, asked = talk("openai", script, "a", "b", "c")
    assert answers[-1].text == "Done."
    assert [thinking_in(one) for one in asked] == [
        [],
        ["Hm."],
        [None],
        [None, None],
        [None, None, None],
    ]


def test_a_server_that_misses_thinking_gets_it_in_every_turn() -> None:
    def script(asked: Asked) -> Reply | Fault:
        if None in thinking_in(asked):
            missing = "The `reasoning_content` in the thinking mode must be passed back to the API."
            return Fault("status", 400, message=missing)
        return Reply(calls=(LS,)) if len(asked.results) < 2 else Reply("Done.")

    answers, asked = talk("openai", script, "a", "b")
    assert answers[-1].text == "Done."
    assert [thinking_in(one) for one in asked] == [[], [None], [""], ["", ""]]


def marks_in(body: object) -> int:
    return json.dumps(body).count("cache_control")


def test_only_what_is_shared_is_marked_for_the_cache() -> None:
    with LoopbackServer(lambda _: Reply("Hello.")) as server:
        answers_of(spec_of("anthropic", server.url), QUESTION, TURN, replace(TURN, system=""))
    assert [marks_in(asked.body) for asked in server.asked] == [0, 2, 2]
    _, turn, without_system = (asked.body for asked in server.asked)
    assert turn["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "What is here?", **CACHED}]}
    ]
    assert without_system["system"] == ""
    assert marks_in(without_system["tools"]) == 1


def test_the_end_of_the_turn_before_is_marked_too() -> None:
    def script(asked: Asked) -> Reply:
        return Reply(calls=(LS,)) if len(asked.results) < 3 else Reply("Done.")

    _, asked = talk("anthropic", script, "a", "b", "c")
    marked = [
        [number for number, one in enumerate(turn.body["messages"]) if marks_in(one)]
        for turn in asked
    ]
    assert marked == [[0], [0, 2], [2, 4], [4, 6]]
    assert max(marks_in(turn.body) for turn in asked) == 3  # four are allowed


def test_other_servers_get_no_marks() -> None:
    other = MessagesProvider("mine", "mine:a", key_envs=("MINE_KEY",))
    with LoopbackServer(lambda _: Reply("Hello.")) as server:
        answers_of(spec_of("openai", server.url), TURN)
    assert [marks_in(asked.body) for asked in server.asked] == [0]
    assert other.caches_from(ModelSpec("m", other, "m")) is None
    assert other.caches_from(ModelSpec("m", other, "claude-opus-4-6")) == 4096


@pytest.mark.parametrize(
    ("status", "message"),
    [(400, "system.0.cache_control: Extra inputs are not permitted"), (422, "Bad request")],
)
def test_a_server_that_refuses_marks_gets_none_from_then_on(status: int, message: str) -> None:
    refusal = Fault("status", status, message=message)
    with LoopbackServer(lambda one: refusal if marks_in(one.body) else Reply("Hello.")) as server:
        answers = answers_of(spec_of("anthropic", server.url), TURN, TURN)
    assert [answer.text for answer in answers] == ["Hello.", "Hello."]
    assert [marks_in(asked.body) for asked in server.asked] == [2, 0, 0]


def test_marks_are_not_blamed_for_other_refusals() -> None:
    refusals = [Fault("status", 400, message="no")] * 2
    spec = spec_of("anthropic", "")

    async def ask_twice(spec: ModelSpec) -> None:
        model = await spec.provider.open(spec, 20)
        with pytest.raises(ModelError, match=r"400 from .*: no"):
            await model.ask(TURN)
        await model.ask(TURN)
        await model.close()

    with LoopbackServer(lambda _: refusals.pop() if refusals else Reply("Hello.")) as server:
        asyncio.run(ask_twice(replace(spec, base_url=server.url)))
    assert [marks_in(asked.body) for asked in server.asked] == [2, 0, 2]
