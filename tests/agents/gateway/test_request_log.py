"""What counts as the conversation, and what is beside it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.agents.gateway.door import UnlistedContent
from pytest_upskill.agents.gateway.endpoint import PROTOCOLS
from pytest_upskill.agents.gateway.protocol import AgentRequest, Item
from pytest_upskill.agents.gateway.request_log import RequestLog
from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.transcript import Tool, ToolCall
from pytest_upskill.trials.trial import Question

CHAT = PROTOCOLS["chat"]
MESSAGES = PROTOCOLS["messages"]
RESPONSES = PROTOCOLS["responses"]

BASH = (Tool("bash", "", "{}"),)
QUESTION = Question("m", "", (("user", "Open the gate."),), 1000, 1)
SUMMARY = (
    "So far: the gate was pushed, its latch has clicked, and now it must be pulled."
)


def ask(*said: Item, tools: Sequence[Tool] = BASH, system: str = "S") -> AgentRequest:
    return AgentRequest("m", system, said, tuple(tools), 100, stream=False)


def user(text: str) -> Item:
    return Item("user", text)


def called(call: str, text: str = "{}") -> Item:
    return Item("call", text, call)


def result(call: str, text: str) -> Item:
    return Item("result", text, call)


def calls(*ids: str) -> Answer:
    return Answer(
        "", Usage(10, 1, 0), calls=tuple(ToolCall(one, "bash", "{}") for one in ids)
    )


def says(text: str) -> Answer:
    return Answer(text, Usage(10, 1, 0))


def kept(
    *exchanges: tuple[AgentRequest, Answer | None],
) -> tuple[Answer, list[str]]:
    """The answer of a trial with these exchanges, and its turns in short."""
    record, recorder = RequestLog(), Recorder(QUESTION)
    for second, (asked, said) in enumerate(exchanges):
        record.end(record.begin(asked, second), said, 0.5, second + 0.5)
    answer = recorder.answer("end", record.write_to(recorder))
    return answer, [f"{turn.kind}: {turn.text}" for turn in answer.transcript]


def test_a_conversation_is_told_once_though_each_request_repeats_it() -> None:
    go = user("Go.")
    answer, turns = kept(
        (ask(go), calls("1", "2")),
        (
            ask(go, called("1"), called("2"), result("1", "a"), result("2", "b")),
            calls("3"),
        ),
        (
            ask(
                *(go, called("1"), called("2"), result("1", "a"), result("2", "b")),
                *(called("3"), result("3", "c"), user("Hurry.")),
            ),
            says("Done."),
        ),
    )
    assert turns == [
        *("system: S", "user: Go.", "call: {}", "result: a", "call: {}", "result: b"),
        *("call: {}", "result: c", "user: Hurry.", "assistant: Done."),
    ]
    assert answer.text == "Done."
    assert answer.usage == Usage(30, 3, 0)
    seconds = [turn.seconds for turn in answer.transcript if turn.kind == "result"]
    assert seconds == [None, None, 0.5]  # of two at once nobody knows


def test_calls_keep_their_results_though_the_agent_gives_them_other_ids() -> None:
    go = user("Go.")
    answer, turns = kept(
        (ask(go), calls("1", "2")),
        (
            ask(go, called("x1"), called("x2"), result("x2", "b"), result("x1", "a")),
            calls("1"),
        ),
        (
            ask(
                *(go, called("x1"), called("x2"), result("x2", "b"), result("x1", "a")),
                *(called("x3"), result("x3", "c")),
            ),
            says("Done."),
        ),
    )
    assert turns == [
        *("system: S", "user: Go.", "call: {}", "result: a", "call: {}", "result: b"),
        *("call: {}", "result: c", "assistant: Done."),
    ]
    assert {turn.tool for turn in answer.transcript if turn.kind == "result"} == {
        "bash"
    }


def test_a_system_text_that_changes_is_told_once() -> None:
    _, turns = kept(
        (ask(user("Go."), system="It is 10:00."), calls("1")),
        (
            ask(user("Go."), called("1"), result("1", "a"), system="It is 10:01."),
            says("Done."),
        ),
    )
    assert turns[0] == "system: It is 10:00."
    assert [turn for turn in turns if turn.startswith("system")] == turns[:1]


@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
def test_a_title_is_beside_the_conversation(before: bool) -> None:
    title = (ask(user("Go."), tools=(), system="Write a title."), says("A gate"))
    work = (ask(user("Go.")), says("Done."))
    answer, turns = kept(*((title, work) if before else (work, title)))
    assert turns == ["system: S", "user: Go.", "assistant: Done."]
    assert answer.text == "Done."
    assert answer.usage == Usage(20, 2, 0)
    assert answer.activity is not None
    assert answer.activity.turns == 1
    assert answer.activity.findings == (
        "model calls beside the conversation: 1 (11 tokens)",
    )


def test_an_agent_without_tools_has_a_conversation_too() -> None:
    said = Item("assistant", "What for?")
    answer, turns = kept(
        (ask(user("Go."), tools=()), says("What for?")),
        (ask(user("Go."), said, user("For me."), tools=()), says("Done.")),
    )
    assert turns == [
        *(
            "system: S",
            "user: Go.",
            "assistant: What for?",
            "user: For me.",
            "assistant: Done.",
        )
    ]
    assert answer.text == "Done."


def test_a_last_turn_without_tools_belongs_to_the_conversation() -> None:
    """Some agents take the tools away at their limit."""
    answer, _ = kept(
        (ask(user("Go.")), calls("1")),
        (
            ask(user("Go."), called("1"), result("1", "a"), tools=()),
            says("That is all."),
        ),
    )
    assert answer.text == "That is all."


def test_an_agent_of_an_agent_has_turns_but_not_the_answer() -> None:
    answer, turns = kept(
        (ask(user("Go.")), calls("1")),
        (ask(user("Look for the latch."), system="You help."), calls("2")),
        (
            ask(user("Look for the latch."), called("2"), result("2", "left")),
            says("It is left."),
        ),
        (ask(user("Go."), called("1"), result("1", "It is left.")), says("Done.")),
        (ask(user("Look again."), system="You help."), says("Nothing new.")),
    )
    assert answer.text == "Done."
    assert "user: Look for the latch." in turns
    assert "result: left" in turns
    assert answer.activity is not None
    assert answer.activity.turns == 5


def test_what_every_agent_of_an_agent_is_told_first_does_not_make_them_one() -> None:
    """An agent may say in one text where it is, and then what to do."""
    head = (
        "<system-reminder>\n" + "This is the workspace, and these are its files.\n" * 40
    )
    answer, turns = kept(
        (ask(user(f"{head}Go.")), calls("1")),
        (
            ask(user(f"{head}Look for the latch."), system="You help."),
            says("It is left."),
        ),
        (ask(user(f"{head}Go."), called("1"), result("1", "at work")), says("Done.")),
        (
            ask(user(f"{head}Look for the key."), system="You help."),
            says("It is lost."),
        ),
    )
    assert answer.text == "Done."
    assert "system: You help." in turns


def test_a_summary_is_beside_the_conversation_that_goes_on_from_it() -> None:
    answer, turns = kept(
        (ask(user("Go.")), calls("1")),
        (
            ask(user("Go."), called("1"), result("1", "a"), user("Sum it up.")),
            says(SUMMARY),
        ),
        (ask(user(f"<summary>{SUMMARY}</summary> Go on.")), calls("2")),
        (
            ask(
                user(f"<summary>{SUMMARY}</summary> Go on."),
                called("2"),
                result("2", "b"),
            ),
            says("!"),
        ),
    )
    assert answer.text == "!"
    assert answer.activity is not None
    assert answer.activity.turns == 3
    assert (
        "model calls beside the conversation: 1 (11 tokens)" in answer.activity.findings
    )
    assert not [turn for turn in turns if turn.startswith("assistant: So far")]


REMINDER = user(
    f"<system-reminder>{'Skills are listed here. ' * 100}</system-reminder>"
)


def test_agents_of_an_agent_are_told_apart_by_what_follows_their_reminders() -> None:
    """As Claude Code asks: the same reminders come first in all of its
    conversations.
    """
    go, look = (REMINDER, user("Go.")), (REMINDER, user("Look for the latch."))
    answer, _ = kept(
        (ask(*go), calls("1")),
        (ask(*look), calls("2")),
        (ask(*look, called("2"), result("2", "left")), says("It is left.")),
        (ask(*go, called("1"), result("1", "Done, it says.")), says("Done.")),
        (ask(*look, called("2"), result("2", "left")), says("It is still left.")),
    )
    assert answer.text == "Done."


def test_calls_that_are_counted_anew_in_each_conversation() -> None:
    """Small servers give the first call of each the same id."""
    go, look = user("Go."), user("Look for the latch.")
    answer, turns = kept(
        (ask(go), calls("1")),
        (ask(look, system="H"), calls("1")),
        (ask(look, called("1"), result("1", "left"), system="H"), says("It is left.")),
        (ask(go, called("1"), result("1", "It is left.")), says("Done.")),
    )
    assert answer.text == "Done."
    assert turns == [
        *("system: S", "user: Go.", "call: {}", "result: It is left."),
        *("system: H", "user: Look for the latch.", "call: {}", "result: left"),
        *("assistant: It is left.", "assistant: Done."),
    ]


def test_a_summary_in_tags_is_gone_on_from_and_what_it_was_told_is_kept() -> None:
    """As Claude Code does it: the model thinks first,
    and only what it sums up is passed on.
    """
    reply = f"<analysis>What was said?</analysis>\n<summary>\n{SUMMARY}\n</summary>"
    goes_on = (REMINDER, user(f"This session is being continued.\n{SUMMARY}\n"))
    answer, turns = kept(
        (ask(REMINDER, user("Go.")), calls("1")),
        (
            ask(
                REMINDER, user("Go."), called("1"), result("1", "a"), user("Sum it up.")
            ),
            says(reply),
        ),
        (ask(*goes_on), calls("2")),
        (ask(*goes_on, called("2"), result("2", "b")), says("Done.")),
    )
    assert answer.text == "Done."
    assert answer.activity is not None
    assert answer.activity.turns == 3
    assert [turn for turn in turns if turn.startswith("result")] == [
        "result: a",
        "result: b",
    ]
    assert not [turn for turn in turns if "Sum it up" in turn or "analysis" in turn]


def test_a_reply_of_tags_that_never_end_keeps_nobody_waiting() -> None:
    """All trials share one loop: such a reply once took half a minute of it."""
    text = "<summary>" * 20_000
    answer, _ = kept(
        (ask(user("Go.")), says(text)),
        (ask(user("Go."), Item("assistant", text), user("Go on.")), says("Done.")),
    )
    assert answer.text == "Done."


def chat(*messages: dict[str, Any], tools: bool = True, **more: Any) -> AgentRequest:
    """A request of a real agent, without most of its texts."""
    offered = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
    body = {
        "model": "m",
        "messages": [*messages],
        **({"tools": offered} if tools else {}),
        **more,
    }
    return CHAT.parse_request(body)


def said_by(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def ran(call: str, told: str) -> list[dict[str, Any]]:
    function = {"name": "bash", "arguments": "{}"}
    made = {"id": call, "type": "function", "function": function}
    answered = {"role": "tool", "tool_call_id": call, "content": told}
    return [{"role": "assistant", "content": "", "tool_calls": [made]}, answered]


def test_a_summary_of_opencode_comes_back_as_if_the_model_had_said_it() -> None:
    system = said_by("system", "You are opencode, an interactive CLI tool.")
    summarizes = said_by("system", "You are a context summarization agent.")
    conversation = "Here is the conversation so far:\n\n<conversation>\n[User]: Go."
    again = [
        *(
            system,
            said_by("user", "What did we do so far?"),
            said_by("assistant", SUMMARY),
        ),
        said_by("user", "Continue if you have next steps."),
    ]
    answer, turns = kept(
        (chat(system, said_by("user", "Go."), tool_choice="auto"), calls("1")),
        (
            chat(summarizes, said_by("user", conversation), tools=False),
            says(f"{SUMMARY}\n"),
        ),
        (chat(*again, tool_choice="auto"), calls("2")),
        (chat(*again, *ran("2", "b"), tool_choice="auto"), says("Done.")),
    )
    assert answer.text == "Done."
    assert answer.activity is not None
    assert answer.activity.turns == 3
    assert turns[-3:] == ["call: {}", "result: b", "assistant: Done."]


def test_a_summary_may_keep_the_last_call_beside_it() -> None:
    begun = [
        said_by("system", "You are an agent."),
        said_by("user", "<system-reminder>\nGo."),
    ]
    wish = said_by("user", "First, reason in your <analysis> block.")
    snapshot = f"<state_snapshot>{SUMMARY}</state_snapshot>"
    again = [
        *(begun[0], said_by("user", f"{snapshot}\n\nResume the prior task.")),
        *(said_by("assistant", "Got it."), *ran("1", "a")[1:]),
    ]
    answer, turns = kept(
        (chat(*begun), calls("1")),
        (
            chat(*begun, *ran("1", "a"), wish, tools=False),
            says(f"<analysis/>{snapshot}"),
        ),
        (chat(*again), calls("2")),
        (chat(*again, *ran("2", "b")), says("Done.")),
    )
    assert answer.text == "Done."
    assert answer.activity is not None
    assert answer.activity.turns == 3
    assert turns[2:] == [
        "call: {}",
        "result: a",
        "call: {}",
        "result: b",
        "assistant: Done.",
    ]


@pytest.mark.parametrize("late", [True, False])
def test_a_summary_of_copilot_is_made_while_the_conversation_goes_on(
    late: bool,
) -> None:
    begun = [
        said_by("system", "You are the GitHub Copilot CLI."),
        said_by("user", "Go."),
    ]
    wish = said_by(
        "user", "Please create a detailed summary of the conversation so far."
    )
    summary = (chat(*begun, *ran("1", "a"), wish, tool_choice="none"), says(SUMMARY))
    final = (chat(*begun, *ran("1", "a")), says("Done."))
    answer, turns = kept(
        (chat(*begun), calls("1")), *((final, summary) if late else (summary, final))
    )
    assert answer.text == "Done."
    assert answer.activity is not None
    assert answer.activity.turns == 2
    assert turns[2:] == ["call: {}", "result: a", "assistant: Done."]


@pytest.mark.parametrize(
    ("protocol", "body", "choice"),
    [
        (CHAT, {"messages": []}, "none"),
        (MESSAGES, {"messages": []}, {"type": "none"}),
        (RESPONSES, {"input": []}, "none"),
    ],
)
def test_a_last_turn_that_forbids_tools_is_the_answer(
    protocol: Any, body: dict[str, Any], choice: object
) -> None:
    assert protocol.parse_request(
        {"model": "m", **body, "tool_choice": choice}
    ).forbids_tools
    assert not protocol.parse_request({"model": "m", **body}).forbids_tools
    go = (user("Go."), called("1"), result("1", "a"))
    last = replace(ask(*go, user("No more tools: answer.")), forbids_tools=True)
    answer, turns = kept((ask(go[0]), calls("1")), (last, says("Done.")))
    assert answer.text == "Done."
    assert turns[-2:] == ["user: No more tools: answer.", "assistant: Done."]


def test_what_was_asked_again_is_told_once() -> None:
    answer, turns = kept((ask(user("Go.")), None), (ask(user("Go.")), says("Done.")))
    assert turns == ["system: S", "user: Go.", "assistant: Done."]
    assert answer.activity is not None
    assert answer.activity.turns == 1


def test_a_record_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pytest_upskill.agents.gateway.request_log._MOST_CHARACTERS", 10_000
    )
    record = RequestLog()
    for number in range(50):
        asked = ask(user("Go."), called(str(number)), result(str(number), "x" * 8_000))
        record.end(record.begin(asked, 0), calls(str(number + 1)), 0, 0)
    assert (
        sum(len(item.text) for logged in record.requests for item in logged.new_items)
        < 150_000
    )


ODD: list[Any] = [
    None,
    5,
    "a",
    [],
    {},
    [[]],
    [{}],
    [None],
    {"a": []},
    [{"type": []}],
    True,
]


@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize("protocol", [MESSAGES, CHAT, RESPONSES])
def test_nothing_that_a_server_sends_breaks_the_record(protocol: Any, odd: Any) -> None:
    names = (
        "content",
        "choices",
        "output",
        "usage",
        "id",
        "stop_reason",
        "incomplete_details",
    )
    for name in names:
        assert isinstance(protocol.parse_reply({name: odd}), Answer)
    for inner in (
        "message",
        "tool_calls",
        "content",
        "function",
        "summary",
        "input",
        "delta",
    ):
        for outer in ("content", "choices", "output"):
            kinds = ("tool_use", "message", "reasoning", "function_call")
            for kind in kinds:
                body = {
                    outer: [
                        {
                            "type": kind,
                            "call_id": "1",
                            inner: odd,
                            "message": {inner: odd},
                        }
                    ]
                }
                assert isinstance(protocol.parse_reply(body), Answer)


@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize("protocol", [MESSAGES, CHAT, RESPONSES])
def test_nothing_that_a_stream_holds_breaks_the_record(protocol: Any, odd: Any) -> None:
    kinds = (
        *(
            "message_start",
            "content_block_start",
            "content_block_delta",
            "message_delta",
            None,
        ),
        *(
            "response.completed",
            "response.output_item.done",
            "response.output_text.delta",
        ),
    )
    names = (
        "message",
        "delta",
        "index",
        "content_block",
        "usage",
        "choices",
        "response",
        "item",
    )
    reading = protocol.stream()
    for kind in kinds:
        for name in names:
            reading.add({"type": kind, "index": 0, name: odd})
            reading.add(
                {"type": kind, "index": 0, "choices": [{"delta": {"tool_calls": odd}}]}
            )
            reading.add(
                {
                    "choices": [
                        {"delta": {"tool_calls": [{"index": odd, "function": odd}]}}
                    ]
                }
            )
            assert isinstance(protocol.parse_reply(reading.body()), Answer)


@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize("protocol", [MESSAGES, CHAT, RESPONSES])
def test_nothing_that_an_agent_asks_breaks_the_record(protocol: Any, odd: Any) -> None:
    roles = ("user", "assistant", "tool", "system", odd)
    for role in roles:
        for kind in (
            "text",
            "tool_use",
            "tool_result",
            "function_call",
            "x_call_output",
            odd,
        ):
            block = {
                "type": kind,
                "text": odd,
                "content": odd,
                "input": odd,
                "output": odd,
            }
            said = [{"role": role, "type": kind, "content": [block], **block}, odd]
            said += [{"role": role, "content": odd, "tool_calls": odd}]
            body = {"messages": said, "input": said, "tools": [odd, {"function": odd}]}
            body |= {"system": odd, "instructions": odd, "max_tokens": odd}
            asked = protocol.parse_request(body)
            RequestLog().begin(asked, 0)
            with suppress(UnlistedContent):
                protocol.pass_on({**body, "tool_choice": odd}, network=False)


def test_what_an_agent_says_before_each_question_tells_no_conversations_apart() -> None:
    """An agent may begin with the time."""
    time = user("<info-msg>\nIt is currently 10:00\n</info-msg>")
    answer, _ = kept(
        (ask(time, user("Go.")), calls("1")),
        (ask(time, user("Go."), called("1"), result("1", "started")), says("Done.")),
        (ask(time, user("Count the sheep.")), says("There are 41.")),
    )
    assert answer.text == "Done."
