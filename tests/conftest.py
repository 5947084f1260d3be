"""No test may see the keys, servers and models of whoever runs it."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.browser import Browser, Page
    from support.shell import Shell

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
    import pytest_upskill.plugin.session  # noqa: F401

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


@pytest.fixture
def shell(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> "Shell":
    from support.shell import Shell

    return Shell(pytester, monkeypatch, capsys)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Browser]":
    from support.browser import running_browser

    with running_browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def page(browser: "Browser") -> "Iterator[Page]":
    page = browser.new_page()
    page.size(1280)
    page.media()
    yield page
    page.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run as people have them, as an HTML page."""
    from support.pages import readable_run, write_page

    notes = ["144 of 288 answers re-used, which saved 57,000 tokens. --skill-fresh asks anew."]
    return write_page(readable_run(), tmp_path_factory.mktemp("report"), notes)
