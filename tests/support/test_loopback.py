"""The loopback server as the real SDKs see it."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

import anthropic
import openai
import pytest

from support.loopback import Asked, Fault, Kind, LoopbackServer, Protocol, Reply, Stop

both = pytest.mark.parametrize("protocol", ["anthropic", "openai"])
Answer: TypeAlias = Any  # a message, a completion or, when the server is odd, a str
SDK: dict[str, Any] = {"anthropic": anthropic, "openai": openai}


async def ask(
    server: LoopbackServer,
    protocol: Protocol,
    *questions: str,
    system: str = "",
    timeout: float = 5.0,
    prefix: str = "",
) -> list[Answer]:
    """Asks all at once through one client."""
    messages: list[Any] = [{"role": "system", "content": system}] if system else []
    url = server.url + prefix
    if protocol == "openai":
        async with openai.AsyncOpenAI(
            base_url=url + "/v1", api_key="none", max_retries=0, timeout=timeout
        ) as client:
            calls: list[Any] = [
                client.chat.completions.create(
                    model="m",
                    messages=[*messages, {"role": "user", "content": question}],
                )
                for question in questions
            ]
            return await asyncio.gather(*calls)
    async with anthropic.AsyncAnthropic(
        base_url=url, api_key="none", max_retries=0, timeout=timeout
    ) as other:
        calls = [
            other.messages.create(
                model="m",
                max_tokens=9,
                system=system or anthropic.omit,
                messages=[{"role": "user", "content": question}],
            )
            for question in questions
        ]
        return await asyncio.gather(*calls)


def ask_once(
    server: LoopbackServer,
    protocol: Protocol,
    system: str = "",
    timeout: float = 5.0,
    prefix: str = "",
) -> Answer:
    answers = ask(
        server, protocol, "why?", system=system, timeout=timeout, prefix=prefix
    )
    return asyncio.run(answers)[0]


def raised_by(protocol: Protocol, action: Fault, timeout: float = 5.0) -> Exception:
    with LoopbackServer(lambda _: action) as server:
        try:
            ask_once(server, protocol, timeout=timeout)
        except Exception as error:
            return error
    pytest.fail("nothing was raised")


def test_anthropic_reply() -> None:
    reply = Reply(
        "hello", input_tokens=7, output_tokens=3, cache_read=20, cache_write=4
    )
    with LoopbackServer(lambda _: reply) as server:
        message = ask_once(server, "anthropic", system="be brief")
    assert isinstance(message, anthropic.types.Message)
    assert [block.model_dump()["text"] for block in message.content] == ["hello"]
    assert (message.usage.input_tokens, message.usage.output_tokens) == (7, 3)
    assert message.usage.cache_read_input_tokens == 20
    assert message.usage.cache_creation_input_tokens == 4
    asked = server.asked[0]
    seen = (asked.protocol, asked.model, asked.system, asked.question, asked.attempt)
    assert seen == (
        "anthropic", "m", "be brief", "why?", 1,
    )  # fmt: skip
    assert "anthropic-version" in asked.headers
    assert asked.body["max_tokens"] == 9


def test_openai_reply() -> None:
    reply = Reply(
        "hello", input_tokens=7, output_tokens=3, cache_read=20, cache_write=4
    )
    with LoopbackServer(lambda _: reply) as server:
        completion = ask_once(server, "openai", system="be brief")
    assert isinstance(completion, openai.types.chat.ChatCompletion)
    assert completion.choices[0].message.content == "hello"
    usage = completion.usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (
        31,
        3,
        34,
    )
    assert usage.prompt_tokens_details.cached_tokens == 20
    asked = server.asked[0]
    seen = (asked.protocol, asked.model, asked.system, asked.question, asked.attempt)
    assert seen == (
        "openai", "m", "be brief", "why?", 1,
    )  # fmt: skip
    assert asked.headers["authorization"] == "Bearer none"


@pytest.mark.parametrize(
    ("stop", "of_anthropic", "of_openai"),
    [
        ("end", "end_turn", "stop"),
        ("length", "max_tokens", "length"),
        ("refusal", "refusal", "stop"),
    ],
)
def test_stop_reasons(stop: Stop, of_anthropic: str, of_openai: str) -> None:
    with LoopbackServer(lambda _: Reply("no", stop=stop)) as server:
        message = ask_once(server, "anthropic")
        choice = ask_once(server, "openai").choices[0]
    assert message.stop_reason == of_anthropic
    assert choice.finish_reason == of_openai
    expected = (None, "no") if stop == "refusal" else ("no", None)
    assert (choice.message.content, choice.message.refusal) == expected


def test_text_in_blocks() -> None:
    blocks: list[Any] = [
        {"type": "text", "text": "one "},
        {"type": "text", "text": "two"},
    ]

    async def ask_in_blocks(server: LoopbackServer) -> None:
        async with anthropic.AsyncAnthropic(
            base_url=server.url, api_key="none"
        ) as client:
            turns: list[Any] = [
                {"role": "user", "content": "earlier"},
                {"role": "assistant", "content": "yes"},
                {"role": "user", "content": blocks},
            ]
            await client.messages.create(
                model="m", max_tokens=9, system=blocks, messages=turns
            )

    with LoopbackServer(lambda _: Reply("")) as server:
        asyncio.run(ask_in_blocks(server))
    assert (server.asked[0].system, server.asked[0].question) == ("one two", "one two")


@both
@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (404, "NotFoundError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
    ],
)
def test_status_fault(protocol: Protocol, status: int, name: str) -> None:
    fault = Fault(
        "status", status, retry_after="3", message="too bad", error_type="bad_luck"
    )
    error = raised_by(protocol, fault)
    assert type(error) is getattr(SDK[protocol], name)
    assert isinstance(error, anthropic.APIStatusError | openai.APIStatusError)
    assert error.response.headers["retry-after"] == "3"
    body = error.response.json()
    assert (body["error"]["type"], body["error"]["message"]) == ("bad_luck", "too bad")
    assert body.get("type") == ("error" if protocol == "anthropic" else None)


@both
def test_status_without_a_name(protocol: Protocol) -> None:
    error: Any = raised_by(
        protocol, Fault("status", 529, error_type="overloaded_error")
    )
    assert error.status_code == 529
    assert "retry-after" not in error.response.headers


@both
def test_reset(protocol: Protocol) -> None:
    error = raised_by(protocol, Fault("reset"))
    assert type(error) is SDK[protocol].APIConnectionError


def test_reset_ends_a_half_body_with_rst() -> None:
    request = (
        b'POST /v1/messages HTTP/1.1\r\ncontent-length: 16\r\n\r\n{"messages": []}'
    )
    received = bytearray()

    def receive(client: socket.socket) -> None:
        while chunk := client.recv(65536):
            received.extend(chunk)

    with (
        LoopbackServer(lambda _: Fault("reset")) as server,
        socket.create_connection(
            ("127.0.0.1", int(server.url.rpartition(":")[2]))
        ) as client,
    ):
        client.sendall(request)
        with pytest.raises(ConnectionResetError):
            receive(client)
    # How much arrives before the reset is up to the system, but it is never the whole.
    assert not received.endswith(b"}")


@both
@pytest.mark.parametrize("kind", ["hang", "trickle"])
def test_too_slow(protocol: Protocol, kind: Kind) -> None:
    error = raised_by(protocol, Fault(kind), timeout=0.2)
    assert type(error) is SDK[protocol].APITimeoutError


@both
@pytest.mark.parametrize("kind", ["garbage", "empty_body"])
def test_not_json(protocol: Protocol, kind: Kind) -> None:
    # Neither SDK wraps this in an error of its own.
    assert type(raised_by(protocol, Fault(kind))) is json.JSONDecodeError


@both
@pytest.mark.parametrize(
    ("kind", "part"), [("wrong_type", "plain words"), ("html", "502 Bad")]
)
def test_not_said_to_be_json(protocol: Protocol, kind: Kind, part: str) -> None:
    # Neither SDK raises: the body comes back as a str in place of a message.
    with LoopbackServer(lambda _: Fault(kind)) as server:
        value = ask_once(server, protocol)
    assert isinstance(value, str)
    assert part in value


@both
def test_script_that_raises(protocol: Protocol) -> None:
    def script(asked: Asked) -> Reply:
        raise KeyError("no answer to " + asked.question)

    expected = pytest.raises(
        SDK[protocol].InternalServerError, match=r"no answer to why\?"
    )
    with LoopbackServer(script) as server, expected:
        ask_once(server, protocol)


@both
def test_script_that_returns_nonsense(protocol: Protocol) -> None:
    nonsense: Any = "a bare string"
    expected = pytest.raises(
        SDK[protocol].InternalServerError, match="the script raised"
    )
    with LoopbackServer(lambda _: nonsense) as server, expected:
        ask_once(server, protocol)


def test_attempts_are_counted_per_question() -> None:
    def script(asked: Asked) -> Reply | Fault:
        return (
            Fault("status", 503)
            if asked.attempt < 2
            else Reply(f"attempt {asked.attempt}")
        )

    async def retry(server: LoopbackServer) -> str:
        # The SDK's own retries, without its pause of half a second.
        class Hasty(openai.AsyncOpenAI):
            def _calculate_retry_timeout(self, *_: object, **__: object) -> float:
                return 0.0

        async with Hasty(
            base_url=server.url + "/v1", api_key="none", max_retries=2
        ) as client:
            completion = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "why?"}]
            )
        return completion.choices[0].message.content or ""

    with LoopbackServer(script) as server:
        assert asyncio.run(retry(server)) == "attempt 2"
        with pytest.raises(anthropic.InternalServerError):
            ask_once(server, "anthropic")
        with pytest.raises(openai.InternalServerError):
            ask_once(server, "openai", system="other")
        assert ask_once(server, "anthropic").content[0].text == "attempt 2"
    assert [asked.attempt for asked in server.asked] == [1, 2, 1, 1, 2]


@both
def test_requests_that_wait_for_each_other(protocol: Protocol) -> None:
    questions = [f"question {n}" for n in range(64)]
    with LoopbackServer(
        lambda asked: Reply(asked.question[::-1]), together=64
    ) as server:
        answers = asyncio.run(ask(server, protocol, *questions, timeout=60))
        assert server.most_in_flight == 64
        ask_once(server, protocol)
    if protocol == "anthropic":
        texts = [message.content[0].text for message in answers]
    else:
        texts = [completion.choices[0].message.content for completion in answers]
    assert texts == [question[::-1] for question in questions]
    assert sorted(asked.question for asked in server.asked[:64]) == sorted(questions)


def test_requests_one_after_the_other_are_never_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("support.loopback.LONGEST_WAIT", 0.0)
    failed = pytest.raises(AssertionError, match="1 of 2 requests were in flight")
    with failed, LoopbackServer(lambda _: Reply("done"), together=2) as server:
        for _ in range(3):
            ask_once(server, "openai")
        assert server.most_in_flight == 1


@both
def test_large_reply(protocol: Protocol) -> None:
    text = "0123456789" * 500_000
    with LoopbackServer(lambda _: Reply(text)) as server:
        answer = ask_once(server, protocol)
    got = (
        answer.content[0].text
        if protocol == "anthropic"
        else answer.choices[0].message.content
    )
    assert got == text


@both
def test_path_prefix_and_unknown_path(protocol: Protocol) -> None:
    with LoopbackServer(lambda _: Reply("found")) as server:
        assert not isinstance(ask_once(server, protocol, prefix="/some/where"), str)
        with pytest.raises(SDK[protocol].NotFoundError) as caught:
            # The query swallows the rest of the path.
            ask_once(server, protocol, prefix="/nowhere?")
    assert caught.value.response.json()["error"]["type"] == "not_found_error"
    assert len(server.asked) == 1


def test_models() -> None:
    async def look(server: LoopbackServer) -> list[str]:
        async with openai.AsyncOpenAI(
            base_url=server.url + "/v1", api_key="none", max_retries=0
        ) as client:
            return [model.id async for model in client.models.list()]

    with LoopbackServer(lambda _: Reply("")) as server:
        assert asyncio.run(look(server)) == ["loopback"]
    assert server.asked == []


CALLING = Reply(
    "Let me look.", calls=(("bash", {"command": "ls"}),), thinking="Hm.", cache_read=3
)


def test_messages_as_a_stream() -> None:
    async def look(server: LoopbackServer) -> anthropic.types.Message:
        async with (
            anthropic.AsyncAnthropic(base_url=server.url, api_key="none") as client,
            client.messages.stream(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "why?"}]
            ) as stream,
        ):
            return await stream.get_final_message()

    with LoopbackServer(lambda _: CALLING) as server:
        message = asyncio.run(look(server))
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    call = message.content[2]
    assert call.type == "tool_use"
    assert (call.name, call.input) == ("bash", {"command": "ls"})
    assert message.stop_reason == "tool_use"
    assert (message.usage.output_tokens, message.usage.cache_read_input_tokens) == (
        5,
        3,
    )


def test_completions_as_a_stream() -> None:
    async def look(server: LoopbackServer) -> Any:
        async with (
            openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none") as client,
            client.chat.completions.stream(
                model="m",
                messages=[{"role": "user", "content": "why?"}],
                stream_options={"include_usage": True},
            ) as stream,
        ):
            return await stream.get_final_completion()

    with LoopbackServer(lambda _: CALLING) as server:
        completion = asyncio.run(look(server))
    said = completion.choices[0].message
    assert said.content == "Let me look."
    assert said.tool_calls[0].function.arguments == '{"command": "ls"}'
    assert completion.choices[0].finish_reason == "tool_calls"
    assert completion.usage.prompt_tokens == 13


@pytest.mark.parametrize("streamed", [False, True])
def test_responses(streamed: bool) -> None:
    async def look(server: LoopbackServer) -> Any:
        async with openai.AsyncOpenAI(
            base_url=server.url + "/v1", api_key="none"
        ) as client:
            if not streamed:
                return await client.responses.create(
                    model="m", input="why?", instructions="Hush."
                )
            async with client.responses.stream(
                model="m", input="why?", instructions="Hush."
            ) as on:
                return await on.get_final_response()

    with LoopbackServer(lambda _: CALLING) as server:
        response = asyncio.run(look(server))
    assert response.output_text == "Let me look."
    assert [item.type for item in response.output] == [
        "reasoning",
        "message",
        "function_call",
    ]
    assert response.output[2].arguments == '{"command": "ls"}'
    assert response.usage.input_tokens_details.cached_tokens == 3
    asked = server.asked[0]
    assert (asked.protocol, asked.system, asked.question) == (
        "responses",
        "Hush.",
        "why?",
    )


CLOSING = """
import gc, json, logging, socket, time
from support.loopback import Fault, LoopbackServer, Reply

# Keeps errors such as a destroyed task, but not the notes on slow callbacks.
logging.getLogger("asyncio").setLevel(logging.ERROR)
actions = {"hang": Fault("hang"), "trickle": Fault("trickle"), "reset": Fault("reset"),
           "slow": Reply("", delay=60), "idle": Reply(""),
           "unread": Reply("x" * 20_000_000)}
with LoopbackServer(lambda asked: actions[asked.question]) as server:
    address = server.url[len("http://"):].split(":")
    clients = [socket.create_connection(address) for _ in range(len(actions) + 2)]
    for client, question in zip(clients, actions):
        body = json.dumps({"messages": [{"role": "user", "content": question}]})
        head = "POST /v1/messages HTTP/1.1\\r\\n"
        head += f"content-length: {len(body)}\\r\\n\\r\\n"
        client.sendall((head + body).encode())
    clients[-1].sendall(b"POST /v1/mess")
    while len(server.asked) < len(actions):
        time.sleep(0.001)
    # They may be half accepted.
    clients += [socket.create_connection(address) for _ in range(3)]
for client in clients:
    client.close()
gc.collect()
print("closed")
"""


def test_closing_is_prompt_and_leaves_no_warnings() -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", CLOSING],
        cwd=Path(__file__).parents[1],
        # Coverage would have warnings of its own about a process that
        # runs nothing it measures.
        env={
            name: value
            for name, value in os.environ.items()
            if not name.startswith("COV")
        },
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (ended.stdout, ended.stderr) == ("closed\n", "")
