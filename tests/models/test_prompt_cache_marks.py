"""How OpenAI's models are told what questions share, so that its cache keeps it."""

from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.trials.trial import Question
from support.adapters import answers_of, spec_of
from support.loopback import LoopbackServer, Reply
from support.prompt_cache import without_marks

PLAIN = Question("m", "Shared by all.", (("user", "How?"),), 9, 1)


def bodies(model_id: str, *questions: Question) -> list[dict[str, Any]]:
    with LoopbackServer(lambda _: Reply("yes")) as server:
        answers_of(spec_of("openai", server.url, model_id), *questions)
    return [dict(asked.body) for asked in server.asked]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")


def test_a_key_names_what_is_shared() -> None:
    shared = replace(PLAIN, shared=("system",))
    other = replace(shared, messages=(("user", "Why?"),))
    plain, *marked = bodies("gpt-5.4", PLAIN, shared, other)
    assert not any(name.startswith("prompt_cache") for name in plain)
    assert len({body.pop("prompt_cache_key") for body in marked}) == 1
    assert marked[0] == plain  # the texts stay as they are
    assert [message["role"] for message in plain["messages"]] == ["system", "user"]


def test_newer_models_are_told_where_the_shared_text_ends() -> None:
    plain, marked = bodies("gpt-5.6-terra", PLAIN, replace(PLAIN, shared=("system",)))
    (block,) = marked["messages"][0]["content"]
    assert block["prompt_cache_breakpoint"] == {"mode": "explicit"}
    assert marked["prompt_cache_options"] == {"mode": "explicit"}
    assert without_marks(marked) == plain
