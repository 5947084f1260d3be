"""Fixtures for the tests of checks."""

import pytest

from pytest_upskill.checks import check, time_budget


@pytest.fixture
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests in which a check times out, so that they need not wait for seconds."""
    monkeypatch.setattr(time_budget, "SECONDS", 0.2)
    monkeypatch.setattr(check, "_HIGHLIGHTING", 0.1)
