"""Turns with calls as they come, however odd, and as they go back."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.errors import ModelError
from pytest_upskill.trials.transcript import Step, ToolCall, ToolResult
from support.adapters import answers_of, spec_of
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.tool_talks import LS, QUESTION, answer_to, talk, talk_all

pytestmark = pytest.mark.usefixtures("keys")


def with_calls(provider: str, *calls: Any, text: str = "") -> Reply:
    """A reply with calls in any form: id, name and arguments, or anything else."""
    if provider == "anthropic":
        blocks = [
            (
                {"type": "tool_use", "id": one[0], "name": one[1], "input": one[2]}
                if isinstance(one, tuple)
                else one
            )
            for one in calls
        ]
        said = [{"type": "text", "text": text}] if text else []
        return Reply(raw={"content": [*said, *blocks], "stop_reason": "tool_use"})
    made = [
        (
            {
                "id": one[0],
                "type": "function",
                "function": {"name": one[1], "arguments": one[2]},
            }
            if isinstance(one, tuple)
            else one
        )
        for one in calls
    ]
    message = {"role": "assistant", "content": text or None, "tool_calls": made}
    return Reply(
        raw={"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    )


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
    """A server may send anything: the next turn works all the same,
    or there is a ModelError.
    """
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


@pytest.mark.parametrize(
    "odd", [7, "bash", {"a": 1}, [[]], [None], {}, [], "", 0, None]
)
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
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "bash",
            "input": {"b": 1, "a": 1.0},
        },
        {"type": "thinking", "thinking": "Ünd then…", "signature": "c2lnMg=="},
        {
            "type": "tool_use",
            "id": "toolu_2",
            "name": "bash",
            "input": {},
            "caller": {"x": 1},
        },
        {"type": "of_tomorrow", "field": [1, {"two": None}]},
    ]
    reply = Reply(raw={"content": content, "stop_reason": "tool_use"})
    answers, asked = talk_all("anthropic", reply)
    assert answers[0].thinking == "First.\n\nÜnd then…"
    assert answers[0].text == "I look.  \n"
    turn = asked[1].body["messages"][1]["content"]
    # No server takes it back
    kept = [block for block in content if block.get("text") != " \n"]
    assert turn == kept
    assert list(turn[3]["input"]) == ["b", "a"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_what_compatible_servers_call_thinking_goes_back(field: str) -> None:
    details = [{"type": "reasoning.encrypted", "data": "abc", "index": 0}]
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "bash", "arguments": "{}"},
    }
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
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "bash", "arguments": "{}"},
    }
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
        (
            "'messages.2' : for 'role:assistant' the following must be"
            " satisfied[('messages.2' : property 'reasoning_content' is unsupported)]"
        ),
        "messages.2.assistant.reasoning_content: property is unsupported",
    ],
)
def test_a_server_that_refuses_thinking_gets_none_from_then_on(message: str) -> None:
    def script(asked: Asked) -> Reply | Fault:
        if any(thinking_in(asked)):
            return Fault("status", 400, message=message)
        return (
            Reply(calls=(LS,), thinking="Hm.")
            if len(asked.results) < 3
            else Reply("Done.")
        )

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
            missing = (
                "The `reasoning_content` in the thinking mode must be passed back to"
                " the API."
            )
            return Fault("status", 400, message=missing)
        return Reply(calls=(LS,)) if len(asked.results) < 2 else Reply("Done.")

    answers, asked = talk("openai", script, "a", "b")
    assert answers[-1].text == "Done."
    assert [thinking_in(one) for one in asked] == [[], [None], [""], ["", ""]]


def sent_back(provider: str, step: Step) -> list[dict[str, Any]]:
    """The turn of a step as it goes out: the calls, behind anything else."""
    with LoopbackServer(lambda _: Reply("Fine.")) as server:
        answers_of(spec_of(provider, server.url), replace(QUESTION, steps=(step,)))
    turn = next(
        one for one in server.asked[0].body["messages"] if one["role"] == "assistant"
    )
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
def test_a_turn_of_another_protocol_is_made_of_text_and_calls(
    provider: str, raw: str
) -> None:
    text, call = sent_back(provider, Step("I look.", (CALL,), RESULTS, raw))
    assert text["text"] == "I look."
    if provider == "anthropic":
        assert call == {
            "type": "tool_use",
            "id": "call-1",
            "name": "bash",
            "input": LS[1],
        }
    else:
        function = {"name": "bash", "arguments": '{"command": "ls"}'}
        assert call == {"id": "call-1", "type": "function", "function": function}


@pytest.mark.parametrize(
    "arguments", ['{"command": ', "[1]", '"ls"', "7", "[" * 100_000, "null"]
)
def test_broken_arguments_go_back_as_an_object(provider: str, arguments: str) -> None:
    call = sent_back(
        provider, Step("", (replace(CALL, arguments=arguments),), RESULTS)
    )[-1]
    given = (
        call["input"]
        if provider == "anthropic"
        else json.loads(call["function"]["arguments"])
    )
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


@pytest.mark.parametrize("raw", ["", '[{"type": "text", "text": "Which?"}]'])
def test_a_user_answers_in_a_message(provider: str, raw: str) -> None:
    looked = Step("I look.", (CALL,), RESULTS)
    asked = Step("Which?", (), (), raw, answer="The red one.")
    with LoopbackServer(lambda _: Reply("Fine.")) as server:
        answers_of(
            spec_of(provider, server.url), replace(QUESTION, steps=(asked, looked))
        )
    turn, answer, *later = server.asked[0].body["messages"][-4:]
    assert answer == {"role": "user", "content": "The red one."}
    assert turn["content"] in ("Which?", [{"type": "text", "text": "Which?"}])
    assert "tool_calls" not in turn
    assert len(later) == 2
