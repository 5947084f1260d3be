"""Models asked through their adapters alone, without an engine."""

import asyncio
from collections.abc import Callable

import pytest

from pytest_upskill.errors import ModelError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.providers import PROVIDERS
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.trial import Question
from support.loopback import Asked, Fault, LoopbackServer, Reply

SECRET = "sk-secret-0123456789"
QUESTION = Question("m", "Be brief.", (("user", "What is the gate's command?"),), 64, 1)
Script = Callable[[Asked], Reply | Fault]


def spec_of(provider: str, url: str, model_id: str = "model-1") -> ModelSpec:
    """A model of a provider at a loopback server."""
    address = url if provider == "anthropic" else f"{url}/v1"
    return ModelSpec("m", PROVIDERS[provider], model_id, address)


def answers_of(spec: ModelSpec, *questions: Question) -> list[Answer]:
    """Open a model, ask it one question after the other, and close it."""

    async def run() -> list[Answer]:
        model = await spec.provider.open(spec, 20)
        try:
            return [await model.ask(question) for question in questions]
        finally:
            await model.close()

    return asyncio.run(run())


def ask(spec: ModelSpec, *questions: Question) -> list[Answer]:
    return answers_of(spec, *(questions or (QUESTION,)))


def trouble(provider: str, script: Script) -> ModelError:
    with LoopbackServer(script) as server, pytest.raises(ModelError) as caught:
        ask(spec_of(provider, server.url))
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value
