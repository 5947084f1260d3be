"""Fixtures for the tests of checks."""

import pytest

from pytest_upskill.checks import json_schema, matching


@pytest.fixture
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests in which a check times out, so that they need not wait a second each time."""
    monkeypatch.setattr(matching, "_TIMEOUT", 0.1)
    monkeypatch.setattr(json_schema, "_SECONDS", 0.1)
