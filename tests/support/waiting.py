"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable

import pytest

LONGEST = 50.0  # seconds: the machine may be very busy, but the test must end


def wait_until(condition: Callable[[], object]) -> None:
    """Return once the condition holds; fail if it never does."""
    ends = time.monotonic() + LONGEST
    while not condition():
        if time.monotonic() > ends:
            pytest.fail(f"that did not happen within {LONGEST:g} s")
        time.sleep(0.01)
