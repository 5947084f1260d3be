"""Fixtures for tests of models."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support import clouds
from support.adapters import SECRET


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GENERIC_API_KEY"):
        monkeypatch.setenv(name, SECRET)


@pytest.fixture(params=["anthropic", "openai"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def no_cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Forget all that this machine knows of clouds."""
    clouds.log_out(monkeypatch, tmp_path)


@pytest.fixture
def set_env(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set variables, by name."""

    def set_all(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return set_all


@pytest.fixture
def log_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str, str], None]:
    """Set what a cloud needs, with a server in place of all of its own."""
    return lambda name, url: clouds.log_in(monkeypatch, name, url, tmp_path)
