"""A question that wants its reply in a schema, through the real SDKs."""

import asyncio
import json
from typing import Any

import pytest

from pytest_upskill.models import Model
from pytest_upskill.models.names import resolve
from pytest_upskill.models.port import ModelName
from pytest_upskill.trials.trial import Question
from support.loopback import Asked, Fault, LoopbackServer, Reply

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
ENV = {"ANTHROPIC_API_KEY": "k"}


def ask(server: LoopbackServer, protocol: str, times: int = 1, **more: Any) -> list[str]:
    """What a model says to a question with a schema, asked so many times."""
    base_url = None if protocol == "anthropic" else f"{server.url}/v1"
    name = "haiku" if protocol == "anthropic" else "m"
    spec = resolve(ModelName(name, base_url), ENV | {"ANTHROPIC_BASE_URL": server.url})
    question = Question(name, "s", (("user", "q"),), 9, 1, **more)

    async def run() -> list[str]:
        model: Model = await spec.provider.open(spec, 120)
        try:
            return [(await model.ask(question)).text for _ in range(times)]
        finally:
            await model.close()

    return asyncio.run(run())


def schema_of(asked: Asked) -> Any:
    if asked.protocol == "anthropic":
        return asked.body.get("output_config", {}).get("format", {}).get("schema")
    return asked.body.get("response_format", {}).get("json_schema", {}).get("schema")


@pytest.fixture(params=["anthropic", "openai"])
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    return str(request.param)


def test_the_provider_gets_the_schema(protocol: str) -> None:
    with LoopbackServer(lambda _: Reply("{}")) as server:
        assert ask(server, protocol, schema=json.dumps(SCHEMA)) == ["{}"]
    assert [schema_of(asked) for asked in server.asked] == [SCHEMA]


def test_a_plain_question_has_none(protocol: str) -> None:
    with LoopbackServer(lambda _: Reply("{}")) as server:
        ask(server, protocol)
    assert [schema_of(asked) for asked in server.asked] == [None]


def test_a_server_without_schemas_is_asked_without_from_then_on(protocol: str) -> None:
    refusal = Fault("status", 400, message="Unknown name: response_format.json_schema")
    with LoopbackServer(lambda asked: refusal if schema_of(asked) else Reply("{}")) as server:
        assert ask(server, protocol, times=2, schema=json.dumps(SCHEMA)) == ["{}", "{}"]
    assert [schema_of(asked) for asked in server.asked] == [SCHEMA, None, None]
