"""No test may see the keys, servers and models of whoever runs it."""

import asyncio
import os
from contextlib import suppress

import pytest

# Nothing of the developers' tools is imported up here: pytest loads this file for `make demo`
# too, whose environment has none.

PREFIXES = ("ANTHROPIC_", "OPENAI_", "OPENROUTER_", "HF_", "GENERIC_", "OLLAMA_", "OTEL_")
GITHUB = ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE")


@pytest.fixture(scope="session", autouse=True)
def everything_loaded() -> None:
    """pytester forgets what a run in this process imported; what was there before, it keeps."""
    import anthropic  # noqa: F401
    import httpx2
    import hypothesis  # noqa: F401
    import jsonschema  # noqa: F401
    import openai  # noqa: F401
    import regex  # noqa: F401

    import pytest_upskill.models.local
    import pytest_upskill.models.scripted
    import pytest_upskill.plugin.run  # noqa: F401

    async def load_what_http_loads_late() -> None:
        async with httpx2.AsyncClient() as client:
            with suppress(httpx2.ConnectError):
                await client.get("http://127.0.0.1:9")

    asyncio.run(load_what_http_loads_late())


@pytest.fixture(autouse=True)
def no_settings_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(PREFIXES):
            monkeypatch.delenv(name)
    others = ("PYTEST_UPSKILL_MODEL", "UPSKILL_CONFIG", "PYTEST_ADDOPTS", "COLUMNS", "NO_COLOR")
    for name in (*others, "CI", *GITHUB):
        monkeypatch.delenv(name, raising=False)
