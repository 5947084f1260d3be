"""What an agent can have of its provider and its server through the gateway,
and how often.
"""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.skills.case import SandboxNeeds
from pytest_upskill.trials.trial import Task
from support.endpoints import (
    GOOD,
    KEY,
    QUESTION,
    Opened,
    at_endpoint,
    open_endpoint,
    raw,
    request,
    spec_of,
)
from support.loopback import LoopbackServer, Reply


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)


def test_a_provider_does_nothing_else_for_an_agent() -> None:
    """It would search, fetch and run code with a network that the agent does not
    have.
    """
    reaching = [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "code_execution_20250825", "name": "code"},
    ]
    own = {"name": "bash", "description": "", "input_schema": {"type": "object"}}
    body = {
        **GOOD,
        "tools": [*reaching, own],
        "mcp_servers": [{"url": "https://evil.example"}],
    }

    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, body=body)))[0] == 200
        assert opened.findings == (
            "asked the provider for web_search_20250305, which was left out",
            "asked the provider for code_execution_20250825, which was left out",
            "asked the provider for mcp_servers, which was left out",
        )

    seen = at_endpoint(test).asked[0].body
    assert seen["tools"] == [own]
    assert "mcp_servers" not in seen


def test_with_a_network_it_may() -> None:
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    source = {"type": "url", "url": "https://example.com/a.png"}
    said = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    task = Task("cli", needs=SandboxNeeds(network=True))

    async def run(url: str) -> None:
        question = replace(QUESTION, task=task)
        async with open_endpoint(
            spec_of("anthropic", url), question=question
        ) as opened:
            body = {**GOOD, "tools": tools, "messages": said}
            assert (await raw(opened, request(opened, body=body)))[0] == 200
            assert opened.findings == ()

    with LoopbackServer(lambda _: Reply("Done.")) as server:
        asyncio.run(run(server.url))
    assert server.asked[0].body["tools"] == tools


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/v1/messages",
            {
                "type": "image",
                "source": {"type": "url", "url": "https://evil.example/?q=1"},
            },
        ),
        (
            "/v1/chat/completions",
            {"type": "image_url", "image_url": {"url": "https://evil.example/?q=1"}},
        ),
        (
            "/v1/responses",
            {"type": "input_image", "image_url": "https://evil.example/?q=1"},
        ),
        (
            "/v1/responses",
            {"type": "input_file", "file_url": "https://evil.example/?q=1"},
        ),
    ],
)
def test_a_provider_fetches_nothing_for_an_agent(
    path: str, body: dict[str, Any]
) -> None:
    said = [{"role": "user", "content": [{"type": "text", "text": "Look."}, body]}]

    async def test(opened: Opened) -> None:
        whole = {
            "model": "model-1",
            "input" if "responses" in path else "messages": said,
        }
        assert (await raw(opened, request(opened, path, whole)))[0] == 400
        assert opened.findings == (
            "asked the provider to fetch https://evil.example/?q=1",
        )

    assert len(at_endpoint(test, "generic").asked) == 1


@pytest.mark.parametrize("before", [1, 70])
def test_the_token_is_in_no_finding(before: int) -> None:
    async def test(opened: Opened) -> None:
        await raw(opened, request(opened, f"/{'a' * before}/{opened.token}"))
        model = f"{'m' * before} {opened.token}"
        await raw(opened, request(opened, body={**GOOD, "model": model}))
        assert len(opened.findings) == 2
        assert opened.token[:9] not in str(opened.findings)

    at_endpoint(test)


def test_a_key_in_a_request_goes_nowhere() -> None:
    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, body={**GOOD, "system": KEY})))[
            0
        ] == 200

    assert KEY not in json.dumps(at_endpoint(test).asked[0].body)


def test_no_header_of_a_server_reaches_the_agent_but_a_few() -> None:
    headers = {"x-key-echo": KEY, "set-cookie": "a=b", "request-id": f"r-{KEY}"}

    async def run(url: str) -> None:
        async with open_endpoint(spec_of("anthropic", url)) as opened:
            status, reply = await raw(opened, request(opened))
            assert status == 200
            assert KEY.encode() not in reply
            assert b"cookie" not in reply.lower()
            assert b"request-id: r-***" in reply.lower()

    with LoopbackServer(
        lambda _: Reply(f"Your key is {KEY}.", headers=headers)
    ) as server:
        asyncio.run(run(server.url))


def test_beyond_its_turns_nothing_is_asked() -> None:
    async def test(opened: Opened) -> None:
        for number in range(4):
            status, reply = await raw(opened, request(opened))
            assert status == (200 if number < 2 else 400)
        assert b"limit of this trial" in reply
        assert b"x-should-retry: false" in reply.lower()
        assert opened.endpoint.stop == "max_turns"

    server = at_endpoint(
        test, question=replace(QUESTION, task=Task("cli", max_turns=2))
    )
    assert len(server.asked) == 2


def test_calls_beside_the_conversation_have_an_end_too() -> None:
    tools = [{"name": "bash", "description": "", "input_schema": {"type": "object"}}]

    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, body={**GOOD, "tools": tools})))[
            0
        ] == 200
        statuses = [(await raw(opened, request(opened)))[0] for _ in range(25)]
        assert statuses == [200] * 19 + [400] * 6
        assert opened.endpoint.stop == "max_turns"

    at_endpoint(test, question=replace(QUESTION, task=Task("cli", max_turns=1)))


@pytest.mark.parametrize(
    ("path", "choice"),
    [
        ("/v1/chat/completions", {"type": "function", "function": {"name": "title"}}),
        ("/v1/responses", {"type": "function", "name": "title"}),
        ("/v1/messages", {"type": "tool", "name": "title"}),
    ],
)
def test_a_tool_that_must_be_called_begins_no_conversation(
    path: str, choice: Any
) -> None:
    """An agent may ask so for the title of its session."""
    tools = [{"name": "bash", "input_schema": {"type": "object"}}]
    titled = {
        **GOOD,
        "input": "Title.",
        "tools": [{"name": "title"}],
        "tool_choice": choice,
    }

    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, path, titled)))[0] == 200
        body = {**GOOD, "input": "Go.", "tools": tools, "tool_choice": {"type": "auto"}}
        assert (await raw(opened, request(opened, path, body)))[0] == 200
        answer = opened.answer()
        assert answer.activity
        assert answer.activity.turns == 1
        assert answer.text == "Done."

    assert at_endpoint(test, "generic").asked[0].body["tool_choice"] == choice
