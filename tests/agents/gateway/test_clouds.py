"""Requests of agents to models in clouds: signed outside, whole or as a stream
inside.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from pytest_upskill.models import ModelSpec
from pytest_upskill.models.model import ModelName
from pytest_upskill.models.providers import resolve
from support.clouds import AWS_SECRET, AZURE, BEDROCK, VERTEX, log_in, log_out
from support.endpoints import Opened, open_endpoint
from support.loopback import Asked, Fault, LoopbackServer, Reply

THOUGHT = Reply(
    "gate up", thinking="A gate?", calls=(("bash", {"command": "ls"}),), cache_write=3
)
TOOLS: Any = [{"name": "bash", "description": "", "input_schema": {"type": "object"}}]
BETA = {"anthropic-beta": "some-beta-2026-01-01"}
Script = Callable[[Asked], Reply | Fault]


@pytest.fixture(params=[BEDROCK, VERTEX])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def in_cloud(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str, str], ModelSpec]:
    def spec_of(name: str, url: str) -> ModelSpec:
        log_out(monkeypatch, tmp_path)
        log_in(monkeypatch, name, url, tmp_path)
        return resolve(ModelName(name), os.environ)

    return spec_of


def passed(spec: ModelSpec, agent: Callable[[Opened], Any]) -> Any:
    async def run() -> Any:
        async with open_endpoint(spec) as opened:
            return await agent(opened), opened.answer(), opened.calls.errors

    return asyncio.run(run())


def claude(streamed: bool) -> Callable[[Opened], Any]:
    async def ask(opened: Opened) -> Any:
        more = {"context_management": {"edits": []}, "metadata": {"user_id": "me"}}
        async with anthropic.AsyncAnthropic(
            base_url=opened.url, api_key=opened.token, max_retries=0
        ) as client:
            body: Any = {
                "model": opened.endpoint.model,
                "max_tokens": 9000,
                "system": "Be brief.",
                "messages": [{"role": "user", "content": "Look at the gate."}],
                "tools": TOOLS,
                "thinking": {"type": "enabled", "budget_tokens": 1024},
                "extra_body": more,
                "extra_headers": BETA,
            }
            if not streamed:
                return await client.messages.create(**body)
            async with client.messages.stream(**body) as stream:
                return await stream.get_final_message()

    return ask


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
def test_claude_is_asked_by_the_clients_of_the_clouds(
    name: str, streamed: bool, in_cloud: Callable[[str, str], ModelSpec]
) -> None:
    with LoopbackServer(lambda _: THOUGHT) as server:
        reply, answer, _ = passed(in_cloud(name, server.url), claude(streamed))
    thinking, text, call = reply.content
    assert (thinking.thinking, text.text, call.input) == (
        "A gate?",
        "gate up",
        {"command": "ls"},
    )
    assert thinking.signature
    assert (reply.stop_reason, reply.usage.cache_creation_input_tokens) == (
        "tool_use",
        3,
    )
    assert (answer.usage.input, answer.usage.written) == (13, 3)
    [asked] = server.asked
    assert asked.path_model == name.partition(":")[2]
    # All that Claude is asked goes on, and nothing that a cloud may not know.
    assert asked.body["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert asked.body["tools"] == TOOLS
    assert {"context_management", "metadata", "stream", "anthropic_beta"}.isdisjoint(
        asked.body
    )
    assert "trialkey-" not in str(asked.headers)


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
def test_a_refusal_that_an_agent_can_mend_reaches_it(
    name: str, streamed: bool, in_cloud: Callable[[str, str], ModelSpec]
) -> None:
    said = f"prompt is too long, {AWS_SECRET}"
    with LoopbackServer(lambda _: Fault("status", 400, message=said)) as server:
        spec = in_cloud(name, server.url)
        with pytest.raises(anthropic.BadRequestError) as caught:
            passed(spec, claude(streamed))
    assert "prompt is too long" in str(caught.value)
    if name == BEDROCK:
        assert AWS_SECRET not in str(caught.value)


@pytest.mark.parametrize("version", ["", "2024-10-21"])
def test_azure_is_asked_by_v1(
    version: str,
    in_cloud: Callable[[str, str], ModelSpec],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def codex(opened: Opened) -> Any:
        async with openai.AsyncOpenAI(
            base_url=f"{opened.url}/v1", api_key=opened.token, max_retries=0
        ) as client:
            return await client.responses.create(
                model=opened.endpoint.model, input="Look."
            )

    with LoopbackServer(lambda _: Reply("gate up")) as server:
        in_cloud(AZURE, server.url)
        monkeypatch.setenv("OPENAI_API_VERSION", version)
        reply, _, _ = passed(resolve(ModelName(AZURE), os.environ), codex)
    assert reply.output_text == "gate up"
    assert server.asked[0].target == "/openai/v1/responses"
    assert server.asked[0].headers["authorization"] == "Bearer azure-key-0123456789"
