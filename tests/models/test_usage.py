"""Tokens as servers count them, and what a call without an answer may have cost."""

from dataclasses import asdict

import pytest

from pytest_upskill.trials.answer import Usage
from support.adapters import ask, spec_of, trouble
from support.loopback import Fault, LoopbackServer, Reply, Stop

pytestmark = pytest.mark.usefixtures("keys")


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
def test_what_an_sdk_reads_as_a_number_is_one_or_unknown(
    provider: str, value: object
) -> None:
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


@pytest.mark.parametrize(
    "usage", [None, 3, "many", [], [1], {}, {"prompt_tokens_details": [1]}]
)
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


def test_what_a_model_thought_counts_even_where_it_is_only_in_the_total() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 615}
    with LoopbackServer(lambda _: Reply("gate up", raw={"usage": usage})) as server:
        [answer] = ask(spec_of("openai", server.url))
    assert answer.usage == Usage(10, 605, 0)


HOUR = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 300}


@pytest.mark.parametrize(
    ("kinds", "hour"),
    [(HOUR, 300), (None, 0), ("x", 0), ({"ephemeral_1h_input_tokens": -1}, 0)],
)
def test_what_stays_in_the_cache_for_an_hour_is_counted(
    kinds: object, hour: int
) -> None:
    usage = {"input_tokens": 5, "output_tokens": 7, "cache_creation_input_tokens": 400}
    said = Reply("yes", raw={"usage": {**usage, "cache_creation": kinds}})
    with LoopbackServer(lambda _: said) as server:
        [answer] = ask(spec_of("anthropic", server.url))
    assert answer.usage == Usage(405, 7, 0, 400, hour=hour)


@pytest.mark.parametrize("stop", ["end", "length"])
def test_an_empty_reply_says_what_it_cost(provider: str, stop: Stop) -> None:
    reply = Reply("", stop, input_tokens=40, output_tokens=2000)
    with LoopbackServer(lambda _: reply) as server:
        [answer] = ask(spec_of(provider, server.url))
    assert answer.usage == Usage(40, 2000, 0, 0)


@pytest.mark.parametrize(
    "kind", ["garbage", "wrong_type", "html", "empty_body", "reset"]
)
def test_a_reply_that_is_useless_or_lost_may_cost_something(
    provider: str, kind: str
) -> None:
    paid = trouble(provider, lambda _: Fault(kind)).paid  # type: ignore[arg-type]
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
