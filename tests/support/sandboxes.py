"""Sandboxes for tests: skipped where there is none, but never in CI, which has one."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import pytest

from pytest_upskill.agents.port import Room, Sandbox
from pytest_upskill.agents.sandboxes.bwrap import Bwrap

_CI = bool(os.environ.get("CI"))  # the tests themselves don't see it


@cache
def _problem() -> str | None:
    return Bwrap().why_not()


def require_bwrap() -> None:
    """Skip this test without bubblewrap; fail in CI."""
    if problem := _problem():
        if _CI:
            pytest.fail(problem)
        pytest.skip(problem)


needs_bwrap = pytest.mark.usefixtures("bwrap")


@asynccontextmanager
async def opened(room: Room | None = None) -> AsyncIterator[Sandbox]:
    """A sandbox of bubblewrap."""
    sandbox = await Bwrap().open(room or Room())
    try:
        yield sandbox
    finally:
        await sandbox.close()
