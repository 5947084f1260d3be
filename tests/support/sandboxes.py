"""Sandboxes for tests: skipped where there is none, but never in CI, which has one."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import pytest

from pytest_upskill.agents.sandboxes.bwrap import Bwrap
from pytest_upskill.agents.sandboxes.container import DEFAULT_IMAGE, Container
from pytest_upskill.agents.sandboxes.sandbox import Sandbox, SandboxSpec

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


@cache
def image_for(program: str) -> str:
    """An image that is there already; skip this test without one,
    or without the program.
    """
    image = os.environ.get("UPSKILL_TEST_IMAGE", DEFAULT_IMAGE)
    found = shutil.which(program)
    there = found and subprocess.run(
        [found, "image", "inspect", image], capture_output=True
    )
    if not there or there.returncode:
        pytest.skip(f"{program} has no image {image}")
    if problem := Container(program, image).why_not():
        pytest.skip(problem)
    return image


needs_bwrap = pytest.mark.usefixtures("bwrap")
needs_docker = pytest.mark.usefixtures("docker")


@asynccontextmanager
async def opened(room: SandboxSpec | None = None) -> AsyncIterator[Sandbox]:
    """A sandbox of bubblewrap."""
    sandbox = await Bwrap().open(room or SandboxSpec())
    try:
        yield sandbox
    finally:
        await sandbox.close()
