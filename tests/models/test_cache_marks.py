"""What a provider is told to cache."""

import asyncio
import json
from dataclasses import replace

import pytest

from pytest_upskill.errors import ModelError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.hosted import MessagesProvider
from support.adapters import answers_of, spec_of
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.tool_talks import CACHED, LS, QUESTION, TURN, talk

pytestmark = pytest.mark.usefixtures("keys")


def marks_in(body: object) -> int:
    return json.dumps(body).count("cache_control")


def test_only_what_is_shared_is_marked_for_the_cache() -> None:
    with LoopbackServer(lambda _: Reply("Hello.")) as server:
        answers_of(
            spec_of("anthropic", server.url), QUESTION, TURN, replace(TURN, system="")
        )
    assert [marks_in(asked.body) for asked in server.asked] == [0, 2, 2]
    _, turn, without_system = (asked.body for asked in server.asked)
    assert turn["messages"] == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "What is here?", **CACHED}],
        }
    ]
    assert without_system["system"] == ""
    assert marks_in(without_system["tools"]) == 1


def test_the_end_of_the_turn_before_is_marked_too() -> None:
    def script(asked: Asked) -> Reply:
        return Reply(calls=(LS,)) if len(asked.results) < 3 else Reply("Done.")

    _, asked = talk("anthropic", script, "a", "b", "c")
    marked = [
        [number for number, one in enumerate(turn.body["messages"]) if marks_in(one)]
        for turn in asked
    ]
    assert marked == [[0], [0, 2], [2, 4], [4, 6]]
    assert max(marks_in(turn.body) for turn in asked) == 3  # four are allowed


def test_other_servers_get_no_marks() -> None:
    other = MessagesProvider("mine", "mine:a", key_envs=("MINE_KEY",))
    with LoopbackServer(lambda _: Reply("Hello.")) as server:
        answers_of(spec_of("openai", server.url), TURN)
    assert [marks_in(asked.body) for asked in server.asked] == [0]
    assert other.caches_from(ModelSpec("m", other, "m")) is None
    assert other.caches_from(ModelSpec("m", other, "claude-opus-4-6")) == 4096


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "system.0.cache_control: Extra inputs are not permitted"),
        (422, "Bad request"),
    ],
)
def test_a_server_that_refuses_marks_gets_none_from_then_on(
    status: int, message: str
) -> None:
    refusal = Fault("status", status, message=message)
    with LoopbackServer(
        lambda one: refusal if marks_in(one.body) else Reply("Hello.")
    ) as server:
        answers = answers_of(spec_of("anthropic", server.url), TURN, TURN)
    assert [answer.text for answer in answers] == ["Hello.", "Hello."]
    assert [marks_in(asked.body) for asked in server.asked] == [2, 0, 0]


def test_marks_are_not_blamed_for_other_refusals() -> None:
    refusals = [Fault("status", 400, message="no")] * 2
    spec = spec_of("anthropic", "")

    async def ask_twice(spec: ModelSpec) -> None:
        model = await spec.provider.open(spec, 20)
        with pytest.raises(ModelError, match=r"400 from .*: no"):
            await model.ask(TURN)
        await model.ask(TURN)
        await model.close()

    with LoopbackServer(
        lambda _: refusals.pop() if refusals else Reply("Hello.")
    ) as server:
        asyncio.run(ask_twice(replace(spec, base_url=server.url)))
    assert [marks_in(asked.body) for asked in server.asked] == [2, 0, 2]
