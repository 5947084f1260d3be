"""Both adapters through the real SDKs, against a real server on loopback."""

import asyncio
import base64
import json
import socket
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from pytest_upskill.errors import ModelError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.hosted import ChatProvider, Hosted, MessagesProvider
from pytest_upskill.models.names import PROVIDERS
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.trial import Question
from support.adapters import answers_of, spec_of
from support.loopback import Asked, Fault, LoopbackServer, Reply, Stop

SECRET = "sk-secret-0123456789"
QUESTION = Question("m", "Be brief.", (("user", "What is the gate's command?"),), 64, 1)
Script = Callable[[Asked], Reply | Fault]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GENERIC_API_KEY"):
        monkeypatch.setenv(name, SECRET)


@pytest.fixture(params=["anthropic", "openai"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ask(spec: ModelSpec, *questions: Question, timeout: float = 20) -> list[Answer]:
    return answers_of(spec, *(questions or (QUESTION,)), timeout=timeout)


def trouble(provider: str, script: Script, timeout: float = 20) -> ModelError:
    with LoopbackServer(script) as server, pytest.raises(ModelError) as caught:
        ask(spec_of(provider, server.url), timeout=timeout)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


def test_an_answer_has_its_text_and_stop_reason(provider: str) -> None:
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert (answer.text, answer.stop) == ("gate up", "end")
    [asked] = server.asked
    assert (asked.system, asked.question, asked.model) == (
        "Be brief.",
        "What is the gate's command?",
        "model-1",
    )
    assert "temperature" not in asked.body


def test_the_key_goes_to_the_server_and_nowhere_else(provider: str) -> None:
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        ask(spec_of(provider, server.url))
    headers = server.asked[0].headers
    assert SECRET in headers.get("x-api-key", "") + headers.get("authorization", "")


def test_input_tokens_count_what_came_from_the_cache(provider: str) -> None:
    reply = Reply("x", input_tokens=10, output_tokens=7, cache_read=100, cache_write=20)
    with LoopbackServer(lambda _: reply) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert answer.usage == Usage(130, 7, 100, 20)


NO_COUNTS = [
    1e30,
    2**63,
    10**400,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    "many",
    [12],
    {"n": 12},
    {},
    [],
    "",
    None,
]


def usage_fields(provider: str, value: object) -> dict[str, object]:
    if provider == "anthropic":
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens")
        return dict.fromkeys(names, value)
    return {
        **dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), value),
        "prompt_tokens_details": {"cached_tokens": value},
    }


@pytest.mark.parametrize("value", NO_COUNTS, ids=lambda value: repr(value)[:20])
def test_what_is_no_count_of_tokens_is_unknown(provider: str, value: object) -> None:
    reply = Reply("gate up", raw={"usage": usage_fields(provider, value)})
    with LoopbackServer(lambda _: reply) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert answer.text == "gate up"
    assert (answer.usage.input, answer.usage.output) == (None, None)
    assert answer.usage.cached in (None, 0)


@pytest.mark.parametrize("value", [True, "12"])
def test_what_an_sdk_reads_as_a_number_is_one_or_unknown(provider: str, value: object) -> None:
    reply = Reply("gate up", raw={"usage": usage_fields(provider, value)})
    with LoopbackServer(lambda _: reply) as server:
        [answer] = ask(spec_of(provider, server.url))
    usage = answer.usage
    counts = (usage.input, usage.output, usage.cached, usage.written)
    assert {type(count) for count in counts} <= {int, type(None)}


def test_a_whole_number_may_be_written_with_a_point(provider: str) -> None:
    reply = Reply("gate up", raw={"usage": usage_fields(provider, 12.0)})
    with LoopbackServer(lambda _: reply) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert answer.usage == Usage(24 if provider == "anthropic" else 12, 12, 12)
    assert all(isinstance(count, int) for count in asdict(answer.usage).values())


@pytest.mark.parametrize("usage", [None, 3, "many", [], [1], {}, {"prompt_tokens_details": [1]}])
def test_an_odd_usage_is_unknown(provider: str, usage: object) -> None:
    with LoopbackServer(lambda _: Reply("gate up", raw={"usage": usage})) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert answer.text == "gate up"
    assert (answer.usage.input, answer.usage.output) == (None, None)
    assert answer.usage.cached in (None, 0)


def test_parts_of_the_input_that_add_up_to_too_much_are_unknown() -> None:
    reply = Reply("gate up", input_tokens=2**53, cache_read=2**53)
    with LoopbackServer(lambda _: reply) as server:
        [answer] = ask(spec_of("anthropic", server.url))
    assert answer.usage == Usage(None, 5, 2**53)


@pytest.mark.parametrize("reason", [None, "", 5, ["stop"], {"why": "stop"}])
def test_a_reason_to_stop_that_is_no_text_is_the_end(provider: str, reason: object) -> None:
    message = {"role": "assistant", "content": "gate up"}
    choices = [{"index": 0, "message": message, "finish_reason": reason}]
    raw: dict[str, object] = {"stop_reason": reason}
    if provider == "openai":
        raw = {"choices": choices}
    with LoopbackServer(lambda _: Reply("gate up", raw=raw)) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert (answer.text, answer.stop) == ("gate up", "end")


@pytest.mark.parametrize("stop", ["length", "refusal"])
def test_a_cut_off_or_refused_answer_says_so(provider: str, stop: Stop) -> None:
    reply = Reply("I won't", stop)
    with LoopbackServer(lambda _: reply) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert answer.stop == stop


def test_a_five_megabyte_answer_arrives_whole(provider: str) -> None:
    text = "x" * 5_000_000
    with LoopbackServer(lambda _: Reply(text)) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert answer.text == text


def test_a_question_of_megabytes_is_sent_without_a_warning(provider: str) -> None:
    text = "x" * 3_000_000
    with LoopbackServer(lambda asked: Reply(str(len(asked.question)))) as server:
        [answer] = ask(spec_of(provider, server.url), replace(QUESTION, messages=(("user", text),)))
    assert answer.text == "3000000"
    assert int(server.asked[0].headers["content-length"]) > 3_000_000


FOREIGN = "sk-" + "ant-api03-aB3dE5gH7jK9mN1pQ3sT"


@pytest.mark.parametrize(("status", "fatal"), [(401, True), (403, True), (404, True), (400, False)])
def test_a_refused_request_says_what_to_do(provider: str, status: int, fatal: bool) -> None:
    asked: list[Asked] = []

    def refuse(request: Asked) -> Fault:
        asked.append(request)
        return Fault("status", status, message=f"no, {SECRET} is not good, nor {FOREIGN}")

    error = trouble(provider, refuse)
    assert f"{status} from http://127.0.0.1" in error.problem
    assert "no, *** is not good, nor ***" in error.problem
    assert error.fatal is fatal
    assert bool(error.hint) is fatal
    assert len(asked) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_an_outage_is_a_transient_error(provider: str, status: int) -> None:
    fault = Fault("status", status, retry_after="7", message="oops")
    error = trouble(provider, lambda _: fault)
    assert f"{status} from" in error.problem
    assert "oops" in error.problem
    assert error.transient
    assert not error.fatal
    assert error.rate_limited is (status in (429, 503, 529))
    assert error.retry_after == 7


@pytest.mark.parametrize("kind", ["garbage", "wrong_type", "html", "empty_body"])
def test_something_else_than_a_reply_is_an_error(provider: str, kind: str) -> None:
    error = trouble(provider, lambda _: Fault(kind))  # type: ignore[arg-type]
    assert "invalid reply from" in error.problem
    assert "address" in error.hint


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_reply_is_no_answer(provider: str, text: str) -> None:
    assert "empty reply" in trouble(provider, lambda _: Reply(text)).problem


def test_an_empty_reply_at_the_limit_names_the_option(provider: str) -> None:
    error = trouble(provider, lambda _: Reply("", stop="length"))
    assert "max_output" in error.hint


@pytest.mark.parametrize("stop", ["end", "length"])
def test_an_empty_reply_says_what_it_cost(provider: str, stop: Stop) -> None:
    reply = Reply("", stop, input_tokens=40, output_tokens=2000)
    assert Usage(*(trouble(provider, lambda _: reply).paid or ())) == Usage(40, 2000, 0, 0)


@pytest.mark.parametrize("kind", ["garbage", "wrong_type", "html", "empty_body", "reset", "hang"])
def test_a_reply_that_is_useless_or_lost_may_cost_something(provider: str, kind: str) -> None:
    seconds = 1 if kind == "hang" else 20
    paid = trouble(provider, lambda _: Fault(kind), timeout=seconds).paid  # type: ignore[arg-type]
    assert paid is not None
    assert not any(paid)


@pytest.mark.parametrize("status", [408, 504])
def test_what_a_gateway_gave_up_may_cost_something(provider: str, status: int) -> None:
    assert trouble(provider, lambda _: Fault("status", status)).paid == ()


@pytest.mark.parametrize("status", [400, 401, 404, 413, 429, 500, 503, 529])
def test_a_refused_call_costs_nothing(provider: str, status: int) -> None:
    assert trouble(provider, lambda _: Fault("status", status)).paid is None


def test_a_reply_of_another_shape_costs_what_it_says(provider: str) -> None:
    odd = {"choices": [{"message": 7}], "content": [{"type": "text", "text": 7}]}
    told = trouble(provider, lambda _: Reply("gate up", raw=odd)).paid
    assert Usage(*(told or ())) == Usage(10, 5, 0, 0)


def test_what_a_model_thought_counts_even_where_it_is_only_in_the_total() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 615}
    with LoopbackServer(lambda _: Reply("gate up", raw={"usage": usage})) as server:
        [answer] = ask(spec_of("openai", server.url))
    assert answer.usage == Usage(10, 605, 0)


def test_a_hang_ends_with_the_timeout(provider: str) -> None:
    error = trouble(provider, lambda _: Fault("hang"), timeout=0.1)
    assert "timeout" in error.hint


def test_a_reset_connection_is_reported_as_lost(provider: str) -> None:
    error = trouble(provider, lambda _: Fault("reset"))
    assert "lost the connection" in error.problem
    assert not error.unreachable


def test_an_address_without_a_server_is_unreachable(provider: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://user:{SECRET}@127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ModelError) as caught:
        ask(spec_of(provider, url))
    assert caught.value.unreachable
    assert caught.value.paid is None
    assert "can't connect to http://127.0.0.1" in str(caught.value)
    assert SECRET not in str(caught.value)


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
    assert ["max_tokens" in asked.body for asked in server.asked] == [True, False, False]


@pytest.mark.parametrize(
    ("provider", "key", "low"),
    [("openai", "reasoning_effort", "low"), ("anthropic", "output_config", {"effort": "low"})],
)
def test_effort_is_sent_and_only_if_given(provider: str, key: str, low: object) -> None:
    with LoopbackServer(lambda _: Reply("x")) as server:
        plain = spec_of(provider, server.url)
        ask(plain)
        ask(replace(plain, effort="low"))
    assert [asked.body.get(key) for asked in server.asked] == [None, low]


def test_a_server_of_your_own_never_sees_the_key_of_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GENERIC_API_KEY")
    with LoopbackServer(lambda _: Reply("x")) as server:
        ask(ModelSpec("qwen", PROVIDERS["generic"], "qwen", f"{server.url}/v1"))
    assert SECRET not in str(server.asked[0].headers)


# Everything that the SDKs put into requests, or might, from the environment of their provider.
FOREIGN_ENVIRONMENT = {
    "OPENAI_API_KEY": "leak-1",
    "OPENAI_ADMIN_KEY": "leak-2",
    "OPENAI_ORG_ID": "leak-3",
    "OPENAI_PROJECT_ID": "leak-4",
    "OPENAI_WEBHOOK_SECRET": "leak-5",
    "OPENAI_CUSTOM_HEADERS": "X-Team: leak-6\nauthorization: Bearer leak-7\nOpenAI-Beta: leak-8",
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


@pytest.mark.parametrize("other", OTHER_SERVERS, ids=lambda one: f"{one.name}-{one.protocol}")
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
    assert [headers.get(name) for name in names] == ["our-org", "our-project", "ours", None]


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


@pytest.mark.parametrize(("question", "sent"), [(WITH_SCHEMA, SCHEMA), (QUESTION, None)])
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
    with LoopbackServer(lambda asked: refusal if schema_of(asked) else Reply("{}")) as server:
        answers = ask(spec_of(provider, server.url), WITH_SCHEMA, WITH_SCHEMA)
    assert [answer.text for answer in answers] == ["{}", "{}"]
    assert [schema_of(asked) for asked in server.asked] == [SCHEMA, None, None]


HOUR = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 300}


@pytest.mark.parametrize(
    ("kinds", "hour"), [(HOUR, 300), (None, 0), ("x", 0), ({"ephemeral_1h_input_tokens": -1}, 0)]
)
def test_what_stays_in_the_cache_for_an_hour_is_counted(kinds: object, hour: int) -> None:
    usage = {"input_tokens": 5, "output_tokens": 7, "cache_creation_input_tokens": 400}
    said = Reply("yes", raw={"usage": {**usage, "cache_creation": kinds}})
    with LoopbackServer(lambda _: said) as server:
        [answer] = ask(spec_of("anthropic", server.url))
    assert answer.usage == Usage(405, 7, 0, 400, hour=hour)


def is_marked(asked: Asked) -> bool:
    return "cache_control" in str(asked.body) or "prompt_cache_key" in asked.body


@pytest.mark.parametrize("refused", ["schema", "marks", "both"])
def test_a_refused_schema_and_refused_marks_are_told_apart(provider: str, refused: str) -> None:
    def script(asked: Asked) -> Reply | Fault:
        schema, marks = schema_of(asked) is not None, is_marked(asked)
        bad = {"schema": schema, "marks": marks, "both": schema or marks}[refused]
        return (
            Fault("status", 400, message="Extra inputs are not permitted") if bad else Reply("{}")
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
    with LoopbackServer(lambda _: refusals.pop() if refusals else Reply("{}")) as server:
        asyncio.run(ask_twice(spec_of(provider, server.url)))
    assert [schema_of(asked) for asked in server.asked] == [SCHEMA, None, SCHEMA]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_question_is_redirected_to_another_server(provider: str, status: int) -> None:
    with LoopbackServer(lambda _: Reply("from elsewhere")) as other:
        moved = {"location": other.url.replace("//", "//user:word@") + "/v1/messages?token=abc"}
        error = trouble(provider, lambda _: Fault("status", status, headers=moved))
    assert not other.asked
    assert error.fatal
    assert f"{status} from " in str(error)
    assert f"a redirect to {other.url}/v1/messages, which is not followed" in str(error)
    assert error.paid is None


def test_redirect_to_nowhere_is_an_error(provider: str) -> None:
    assert "a redirect to another address" in str(trouble(provider, lambda _: Fault("status", 302)))
