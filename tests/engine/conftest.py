"""Fixtures for the tests of batches."""

from collections.abc import Iterator

import pytest

from pytest_upskill.engine import batches
from support.batch_runs import MODELS
from support.batch_server import BatchServer
from support.loopback import Reply

KEYS = ("sk-ant-of-the-tests-0123456789", "sk-of-the-tests-0123456789")


@pytest.fixture(name="server")
def batch_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    """It answers in capitals."""
    monkeypatch.setattr(batches, "_FIRST_POLL", 0.01)
    monkeypatch.setattr(batches, "_GATHERING", 0.01)
    monkeypatch.setattr(batches, "pause", lambda *_: 0.01)
    with BatchServer(lambda asked: Reply(asked.question.upper())) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEYS[0])
        monkeypatch.setenv("OPENAI_API_KEY", KEYS[1])
        yield server


@pytest.fixture(name="model", params=MODELS)
def model_with_batches(request: pytest.FixtureRequest) -> str:
    return MODELS[request.param]
