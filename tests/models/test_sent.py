"""What goes to a server: keys, headers, limits, schemas, and nothing of other
servers.
"""

import asyncio
import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.errors import ModelError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.hosted import ChatProvider, Hosted, MessagesProvider
from pytest_upskill.models.providers import PROVIDERS
from pytest_upskill.trials.trial import Question
from support.adapters import QUESTION, SECRET, ask, spec_of
from support.loopback import Asked, Fault, LoopbackServer, Reply

pytestmark = pytest.mark.usefixtures("keys")


def test_the_key_goes_to_the_server_and_nowhere_else(provider: str) -> None:
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        ask(spec_of(provider, server.url))
    headers = server.asked[0].headers
    assert SECRET in headers.get("x-api-key", "") + headers.get("authorization", "")


@pytest.mark.parametrize(
    ("provider_name", "model_id", "limit"),
    [
        ("openai", "gpt-4.1-mini", "max_tokens"),
        ("openai", "gpt-5.4-mini", "max_completion_tokens"),
        ("openai", "gpt-6-sol", "max_completion_tokens"),
        ("openai", "o3-mini", "max_completion_tokens"),
        ("generic", "gpt-5-clone", "max_tokens"),
    ],
)
def test_each_model_gets_the_limit_that_it_understands(
    provider_name: str, model_id: str, limit: str
) -> None:
    with LoopbackServer(lambda _: Reply("x")) as server:
        ask(ModelSpec("m", PROVIDERS[provider_name], model_id, f"{server.url}/v1"))
    limits = {key: value for key, value in server.asked[0].body.items() if "max" in key}
    assert limits == {limit: 64}


def test_a_server_that_refuses_the_limit_is_asked_the_other_way_from_then_on() -> None:
    def script(asked: Asked) -> Reply | Fault:
        if "max_tokens" in asked.body:
            return Fault("status", 400, message="Unsupported parameter: 'max_tokens'")
        return Reply("x")

    other = replace(QUESTION, run=2)
    with LoopbackServer(script) as server:
        ask(spec_of("openai", server.url), QUESTION, other)
    assert ["max_tokens" in asked.body for asked in server.asked] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("provider", "key", "low"),
    [
        ("openai", "reasoning_effort", "low"),
        ("anthropic", "output_config", {"effort": "low"}),
    ],
)
def test_effort_is_sent_and_only_if_given(provider: str, key: str, low: object) -> None:
    with LoopbackServer(lambda _: Reply("x")) as server:
        plain = spec_of(provider, server.url)
        ask(plain)
        ask(replace(plain, effort="low"))
    assert [asked.body.get(key) for asked in server.asked] == [None, low]


def test_a_server_of_your_own_never_sees_the_key_of_openai(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GENERIC_API_KEY")
    with LoopbackServer(lambda _: Reply("x")) as server:
        ask(ModelSpec("qwen", PROVIDERS["generic"], "qwen", f"{server.url}/v1"))
    assert SECRET not in str(server.asked[0].headers)


# Everything that the SDKs put into requests, or might,
# from the environment of their provider.
FOREIGN_ENVIRONMENT = {
    "OPENAI_API_KEY": "leak-1",
    "OPENAI_ADMIN_KEY": "leak-2",
    "OPENAI_ORG_ID": "leak-3",
    "OPENAI_PROJECT_ID": "leak-4",
    "OPENAI_WEBHOOK_SECRET": "leak-5",
    "OPENAI_CUSTOM_HEADERS": (
        "X-Team: leak-6\nauthorization: Bearer leak-7\nOpenAI-Beta: leak-8"
    ),
    "ANTHROPIC_API_KEY": "leak-9",
    "ANTHROPIC_AUTH_TOKEN": "leak-10",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Team: leak-11\nauthorization: Bearer leak-12",
    "ANTHROPIC_WEBHOOK_SIGNING_KEY": "leak-13",
    "ANTHROPIC_IDENTITY_TOKEN": "leak-14",
    "ANTHROPIC_FEDERATION_RULE_ID": "leak-15",
    "ANTHROPIC_ORGANIZATION_ID": "leak-16",
    "ANTHROPIC_WORKSPACE_ID": "leak-17",
}
OTHER_SERVERS = [
    *(PROVIDERS[name] for name in ("gemini", "hf", "openrouter", "ollama", "generic")),
    ChatProvider("mine", "mine:a", key_envs=("MINE_KEY",)),
    MessagesProvider("mine", "mine:a", key_envs=("MINE_KEY",)),
]


@pytest.mark.parametrize(
    "other", OTHER_SERVERS, ids=lambda one: f"{one.name}-{one.protocol}"
)
@pytest.mark.parametrize("key", ["", "own-key-of-the-server"])
@pytest.mark.parametrize("user", ["", "user:password@"])
def test_another_server_sees_nothing_of_the_environment_of_openai_and_anthropic(
    other: Hosted, key: str, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in FOREIGN_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    for name in other.key_envs:
        monkeypatch.setenv(name, key)
    with LoopbackServer(lambda _: Reply("x")) as server:
        ask(ModelSpec("m", other, "m", f"{server.url.replace('//', f'//{user}')}/v1"))
    headers = server.asked[0].headers
    assert "leak" not in str(headers)
    assert "leak" not in str(server.asked[0].body)
    sent = key if key and other.key_envs else "no-key"
    basic = base64.b64encode(user.removesuffix("@").encode()).decode()
    assert headers["authorization"] == (f"Basic {basic}" if user else f"Bearer {sent}")
    assert headers["content-type"] == "application/json"


def test_openai_gets_its_own_headers_organisation_and_project(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "our-org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "our-project")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: ours")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Other: theirs")
    with LoopbackServer(lambda _: Reply("x")) as server:
        ask(spec_of("openai", server.url))
    headers = server.asked[0].headers
    names = ("openai-organization", "openai-project", "x-team", "x-other")
    assert [headers.get(name) for name in names] == [
        "our-org",
        "our-project",
        "ours",
        None,
    ]


def test_anthropic_gets_its_own_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Other: theirs")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Team: ours")
    with LoopbackServer(lambda _: Reply("x")) as server:
        ask(spec_of("anthropic", server.url))
    headers = server.asked[0].headers
    assert (headers.get("x-team"), headers.get("x-other")) == ("ours", None)


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
WITH_SCHEMA = replace(QUESTION, schema=json.dumps(SCHEMA))


def schema_of(asked: Asked) -> Any:
    if asked.protocol == "anthropic":
        return asked.body.get("output_config", {}).get("format", {}).get("schema")
    return asked.body.get("response_format", {}).get("json_schema", {}).get("schema")


@pytest.mark.parametrize(
    ("question", "sent"), [(WITH_SCHEMA, SCHEMA), (QUESTION, None)]
)
def test_only_a_question_with_a_schema_sends_one(
    provider: str, question: Question, sent: object
) -> None:
    with LoopbackServer(lambda _: Reply("{}")) as server:
        [answer] = ask(spec_of(provider, server.url), question)
    assert answer.text == "{}"
    assert [schema_of(asked) for asked in server.asked] == [sent]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Unknown name: response_format.json_schema"),
        (400, "Bad Request"),
        (422, "Extra inputs are not permitted"),
    ],
)
def test_a_server_without_schemas_is_asked_without_from_then_on(
    provider: str, status: int, message: str
) -> None:
    refusal = Fault("status", status, message=message)
    with LoopbackServer(
        lambda asked: refusal if schema_of(asked) else Reply("{}")
    ) as server:
        answers = ask(spec_of(provider, server.url), WITH_SCHEMA, WITH_SCHEMA)
    assert [answer.text for answer in answers] == ["{}", "{}"]
    assert [schema_of(asked) for asked in server.asked] == [SCHEMA, None, None]


def is_marked(asked: Asked) -> bool:
    return "cache_control" in str(asked.body) or "prompt_cache_key" in asked.body


@pytest.mark.parametrize("refused", ["schema", "marks", "both"])
def test_a_refused_schema_and_refused_marks_are_told_apart(
    provider: str, refused: str
) -> None:
    def script(asked: Asked) -> Reply | Fault:
        schema, marks = schema_of(asked) is not None, is_marked(asked)
        bad = {"schema": schema, "marks": marks, "both": schema or marks}[refused]
        return (
            Fault("status", 400, message="Extra inputs are not permitted")
            if bad
            else Reply("{}")
        )

    marked = replace(WITH_SCHEMA, shared=("system",))
    with LoopbackServer(script) as server:
        ask(spec_of(provider, server.url), marked, marked)
    last = server.asked[-1]
    assert (schema_of(last) is None) == (refused != "marks")
    assert is_marked(last) == (refused == "schema")


def test_the_schema_is_not_blamed_for_other_refusals(provider: str) -> None:
    async def ask_twice(spec: ModelSpec) -> None:
        model = await spec.provider.open(spec, 20)
        with pytest.raises(ModelError, match=r"400 from .*: no"):
            await model.ask(WITH_SCHEMA)
        await model.ask(WITH_SCHEMA)
        await model.close()

    refusals = [Fault("status", 400, message="no")] * 2
    with LoopbackServer(
        lambda _: refusals.pop() if refusals else Reply("{}")
    ) as server:
        asyncio.run(ask_twice(spec_of(provider, server.url)))
    assert [schema_of(asked) for asked in server.asked] == [SCHEMA, None, SCHEMA]
