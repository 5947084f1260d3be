"""Fixtures for tests of clouds."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support import clouds


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
def log_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str], None]:
    """Set what a cloud needs, with a server in place of all of its own."""
    return lambda name, url: clouds.log_in(monkeypatch, name, url, tmp_path)
