"""What agents ask for today is passed on as it is;
what else they asked for is a finding.
"""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.agents.gateway.door import UnlistedContent, passed_headers
from pytest_upskill.models.model import ProtocolName
from pytest_upskill.skills.case import SandboxNeeds
from pytest_upskill.trials.trial import Task
from support.agent_requests import (
    CACHE,
    DATA_IMAGE,
    EVIL,
    FUNCTION,
    OWN,
    PNG,
    SCHEMA,
    TEXT,
    URL_IMAGE,
    Json,
    asking,
    document,
    image,
    passed,
)
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


WHOLE: list[tuple[ProtocolName, Json]] = [
    (
        "messages",  # as Claude Code asks
        {
            "model": "m",
            "system": [{**TEXT, **CACHE}],
            "messages": [
                {"role": "user", "content": "Go."},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                        {"type": "redacted_thinking", "data": "x"},
                        {
                            "type": "tool_use",
                            "id": "1",
                            "name": "a",
                            "input": {"url": EVIL},
                        },
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "1",
                            "is_error": False,
                            "content": "a",
                        },
                        {"type": "tool_result", "content": [TEXT, DATA_IMAGE], **CACHE},
                        {
                            "type": "tool_result",
                            "content": [{"type": "tool_reference"}],
                        },
                        document(TEXT, DATA_IMAGE),
                    ],
                },
            ],
            "tools": [
                {
                    **OWN["messages"],
                    "defer_loading": True,
                    "eager_input_streaming": True,
                    **CACHE,
                },
                {"type": "custom", **OWN["messages"], "allowed_callers": ["direct"]},
                {"type": "bash_20250124", "name": "bash"},
                {"type": "text_editor_20250728", "name": "edit", "max_characters": 9},
            ],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            "metadata": {"user_id": "u"},
            "thinking": {
                "type": "enabled",
                "budget_tokens": 2000,
                "display": "updates",
            },
            "context_management": {
                "edits": [{"type": "clear_thinking_20251015", "keep": "all"}]
            },
            "output_config": {
                "effort": "high",
                "format": {"type": "json_schema", "schema": SCHEMA},
            },
            "max_tokens": 9,
            "temperature": 1,
            "stream": True,
            "service_tier": "auto",
        },
    ),
    (
        "chat",  # as Copilot asks
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "S"},
                {"role": "user", "content": [TEXT, image("chat", PNG)], "name": "u"},
                {
                    "role": "assistant",
                    "content": None,
                    "refusal": None,
                    "reasoning_content": "Hm.",
                    "tool_calls": [
                        {
                            "id": "1",
                            "type": "function",
                            "function": {"name": "a", "arguments": EVIL},
                        },
                        {
                            "id": "2",
                            "type": "custom",
                            "custom": {"name": "b", "input": "x"},
                        },
                    ],
                },
                {"role": "tool", "tool_call_id": "1", "content": [TEXT]},
            ],
            "tools": [
                FUNCTION,
                {
                    "type": "custom",
                    "custom": {
                        "name": "b",
                        "format": {
                            "type": "grammar",
                            "grammar": {"definition": "a", "syntax": "lark"},
                        },
                    },
                },
            ],
            "tool_choice": "auto",
            "stream_options": {"include_usage": True},
            "reasoning_effort": "medium",
            "prompt_cache_key": "k",
            "store": False,
            "n": 1,
            "metadata": {"sessionId": "s"},
            "response_format": {
                "type": "json_schema",
                "json_schema": {"schema": SCHEMA},
            },
            "logit_bias": {"50256": -100},
        },
    ),
    (
        "responses",  # as Copilot asks; Codex has tests of its own
        {
            "model": "m",
            "input": [
                {"role": "user", "content": "Go."},
                {
                    "role": "assistant",
                    "id": "msg_1",
                    "content": [{"type": "output_text", "text": ""}],
                },
                {
                    "type": "message",
                    "role": "user",
                    "content": [image("responses", PNG)],
                },
                {
                    "type": "function_call",
                    "id": "fc",
                    "call_id": "1",
                    "name": "a",
                    "arguments": "{}",
                },
                {"type": "function_call_output", "call_id": "1", "output": EVIL},
                {"type": "compaction", "encrypted_content": "x"},
            ],
            "tools": [OWN["responses"]],
            "tool_choice": {"type": "function", "name": "bash"},
            "text": {"verbosity": "low", "format": {"type": "text"}},
            "reasoning": {"effort": "high", "summary": "auto"},
            "store": False,
        },
    ),
    (
        "gemini",
        {
            "contents": [
                {
                    "role": "user",
                    "parts": [{"text": "Go."}, {"inlineData": {"data": "aGk="}}],
                },
                {
                    "role": "model",
                    "parts": [{"functionCall": {"name": "a", "args": {"u": EVIL}}}],
                },
                {
                    "parts": [
                        {
                            "functionResponse": {
                                "name": "a",
                                "response": {"output": EVIL},
                            }
                        }
                    ]
                },
            ],
            "system_instruction": {"parts": [{"text": "S"}]},
            "tools": [OWN["gemini"]],
            "generationConfig": {
                "thinkingConfig": {"thinkingLevel": "LOW"},
                "candidateCount": 1,
            },
            "safetySettings": [{"category": "c", "threshold": "OFF"}],
        },
    ),
]


@pytest.mark.parametrize(("protocol", "body"), WHOLE)
def test_what_agents_ask_is_passed_on_as_it_is(
    protocol: ProtocolName, body: Json
) -> None:
    kept, left_out = passed(protocol, body)
    assert json.dumps(kept) == json.dumps(body)
    assert left_out == []


NETWORK: list[tuple[ProtocolName, Json]] = [
    ("messages", asking("messages", URL_IMAGE, tools=[{"type": "web_fetch_20250910"}])),
    ("chat", asking("chat", image("chat", EVIL), web_search_options={"a": 1})),
    ("responses", asking("responses", tools=[{"type": "mcp", "server_url": EVIL}])),
    ("gemini", asking("gemini", image("gemini", EVIL), tools=[{"googleSearch": {}}])),
]


@pytest.mark.parametrize(("protocol", "body"), NETWORK)
def test_with_a_network_a_provider_reaches_as_far_but_costs_no_more(
    protocol: ProtocolName, body: Json
) -> None:
    dear = {
        "service_tier": "priority",
        "speed": "fast",
        "models": ["other"],
        "container": "c",
    }
    kept, left_out = passed(protocol, {**body, **dear}, network=True)
    assert kept == body
    assert len(left_out) == 4
    for url in ("file:///etc/passwd", "gs://a/b", " " + EVIL):
        with pytest.raises(UnlistedContent):
            passed(protocol, asking(protocol, image(protocol, url)), network=True)


def test_betas_are_listed() -> None:
    listed = "claude-code-20250219,effort-2025-11-24"
    betas = (
        f"{listed},"
        " fast-mode-2026-02-01,context-1m-2025-08-07,,mcp-client-2025-11-20,effort-x"
    )
    sent = [
        ("Anthropic-Beta", betas),
        ("anthropic-beta", "pdfs-2024-09-25, skills-2025-10-02"),
    ]
    sent += [
        ("OpenAI-Beta", "assistants=v2"),
        ("X-Other", "a"),
        ("User-Agent", "cli/1"),
    ]
    kept, left_out = passed_headers(sent, network=False)
    assert kept == {
        "anthropic-beta": f"{listed},pdfs-2024-09-25",
        "user-agent": "cli/1",
    }
    assert left_out == [
        "anthropic-beta fast-mode-2026-02-01",
        "anthropic-beta context-1m-2025-08-07",
        "anthropic-beta mcp-client-2025-11-20",
        "anthropic-beta effort-x",
        "anthropic-beta skills-2025-10-02",
        "openai-beta assistants=v2",
    ]
    reaching = [("anthropic-beta", "mcp-client-2025-11-20,fast-mode-2026-02-01")]
    kept, left_out = passed_headers(reaching, network=True)
    assert kept == {"anthropic-beta": "mcp-client-2025-11-20"}
    assert left_out == ["anthropic-beta fast-mode-2026-02-01"]


def test_the_last_of_equal_keys_is_what_is_checked_and_passed_on() -> None:
    body = (
        b'{"model": "model-1", "messages": [], "n": 1, "n": 9, "n": 1, "user": "a",'
        b' "user": "b"}'
    )

    async def test(opened: Opened) -> None:
        status, _ = await raw(opened, request(opened, "/v1/chat/completions", body))
        assert status == 200
        assert opened.findings == ()

    seen = at_endpoint(test, "openai").asked[0].body
    assert seen == {"model": "model-1", "messages": [], "n": 1, "user": "b"}


def test_findings_name_what_was_left_out_and_refused() -> None:
    async def test(opened: Opened) -> None:
        body = {**GOOD, "speed": "fast", "tools": [{"type": "advisor_20260301"}]}
        more = "Anthropic-Beta: fast-mode-2026-02-01\r\n"
        target = "/v1/messages?service_tier=priority"
        assert (await raw(opened, request(opened, target, body, more=more)))[0] == 200
        for part in (document(URL_IMAGE), {"type": "video"}):
            asked = {**asking("messages", part), "secret": opened.token}
            assert (await raw(opened, request(opened, body=asked)))[0] == 400
        assert opened.findings == (
            'asked the provider for speed "fast", which was left out',
            "asked the provider for advisor_20260301, which was left out",
            (
                "asked the provider for anthropic-beta fast-mode-2026-02-01, which was"
                " left out"
            ),
            f"asked the provider to fetch {EVIL}",
            "sent video, which is not passed on",
        )

    seen = at_endpoint(test).asked[0]
    assert seen.body == GOOD
    assert "anthropic-beta" not in seen.headers
    assert "priority" not in str(seen)


@pytest.mark.parametrize("options", [{}, {"include_usage": False}, None, 5])
def test_an_agent_does_not_hide_what_it_uses(options: Any) -> None:
    body = {**GOOD, "stream": True, "stream_options": options}

    async def test(opened: Opened) -> None:
        status, reply = await raw(opened, request(opened, "/v1/chat/completions", body))
        assert status == 200
        assert b'"usage"' not in reply
        assert opened.answer().usage.output

    seen = at_endpoint(test, "openai").asked[0].body
    assert seen["stream_options"] == {"include_usage": True}


def test_findings_of_a_request_are_few() -> None:
    body = {**GOOD, **{f"key{number}": 1 for number in range(1000)}}

    async def test(opened: Opened) -> None:
        assert (await raw(opened, request(opened, body=body)))[0] == 200
        assert len(opened.findings) == 40

    assert at_endpoint(test).asked[0].body == GOOD


def test_with_a_network_findings_name_what_costs_more() -> None:
    async def run(url: str) -> None:
        question = replace(QUESTION, task=Task("cli", needs=SandboxNeeds(network=True)))
        async with open_endpoint(
            spec_of("anthropic", url), question=question
        ) as opened:
            body = asking("messages", URL_IMAGE, speed="fast")
            assert (await raw(opened, request(opened, body=body)))[0] == 200
            assert opened.findings == (
                'asked the provider for speed "fast", which was left out',
            )

    with LoopbackServer(lambda _: Reply("Done.")) as server:
        asyncio.run(run(server.url))
    assert "speed" not in server.asked[0].body
