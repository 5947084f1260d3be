"""Requests on a login: which of them carry it, to where,
and what happens once it expires.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents.logins import CLAUDE, CODEX, Login
from pytest_upskill.errors import ModelError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.providers import PROVIDERS
from support.endpoints import QUESTION, Opened, open_endpoint, raw, request
from support.logins import (
    ACCOUNT,
    SETUP_TOKEN,
    at,
    write_claude_login,
    write_codex_login,
)
from support.loopback import Asked, Fault, LoopbackServer, Reply

CLI = "User-Agent: claude-cli/2.1.325 (external, sdk-cli)\r\n"
BETAS = "anthropic-beta: oauth-2025-04-20,claude-code-20250219,fast-mode-2026-01-01\r\n"
CODEX_CLI = "User-Agent: codex_exec/0.169.0 (Debian)\r\noriginator: codex_exec\r\n"
TALK = {
    "model": "model-1",
    "stream": True,
    "input": [{"role": "user", "content": "Go."}],
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CODE_OAUTH_TOKEN", raising=False)
    return tmp_path


def on_login(
    login: Login,
    test: Callable[[Opened], Awaitable[None]],
    script: Callable[[Asked], Reply | Fault] = lambda _: Reply("Done."),
) -> LoopbackServer:
    async def run(url: str) -> None:
        spec = ModelSpec("m", PROVIDERS[login.vendor], "model-1", "https://never")
        url = f"{url}/v1" if login.agent == "codex" else url
        async with open_endpoint(at(login, url).spec(spec)) as opened:
            await test(opened)

    with LoopbackServer(script) as server:
        asyncio.run(run(server.url))
    return server


def asks(status: int = 200, **changed: Any) -> Callable[[Opened], Awaitable[None]]:
    async def test(opened: Opened) -> None:
        got, _ = await raw(opened, request(opened, **{"more": CLI + BETAS, **changed}))
        assert got == status

    return test


def test_claude_asks_with_its_token_and_its_own_headers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", SETUP_TOKEN)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-somebody-else-0c1d2e3f")
    more = f"{CLI}{BETAS}x-app: cli\r\nx-other: 1\r\n"
    [asked] = on_login(CLAUDE, asks(target="/v1/messages?beta=true", more=more)).asked
    assert asked.target == "/v1/messages?beta=true"
    assert asked.headers["authorization"] == f"Bearer {SETUP_TOKEN}"
    assert asked.headers["anthropic-beta"] == "oauth-2025-04-20,claude-code-20250219"
    assert asked.headers["x-app"] == "cli"
    assert not {"x-api-key", "x-other"} & asked.headers.keys()


def test_codex_asks_with_its_token_and_account(home: Path) -> None:
    token = json.loads(write_codex_login(home).read_text())["tokens"]["access_token"]
    test = asks(target="/v1/responses", body=TALK, more=CODEX_CLI)
    [asked] = on_login(CODEX, test).asked
    assert asked.headers["authorization"] == f"Bearer {token}"
    assert asked.headers["chatgpt-account-id"] == ACCOUNT
    assert asked.headers["originator"] == "codex_exec"


@pytest.mark.parametrize(
    ("status", "changed"),
    [
        (403, {"more": "User-Agent: curl/8\r\n"}),
        (403, {"more": ""}),
        (403, {"more": CLI}),  # the vendor would refuse the token without its beta
        (404, {"target": "/v1/chat/completions"}),
        (404, {"target": "/v1/responses"}),
        (404, {"target": "/v1/files"}),
        (404, {"target": "/api/oauth/profile", "method": "GET"}),
        (401, {"token": "wrong"}),
        (404, {"body": {"model": "other", "max_tokens": 1, "messages": []}}),
    ],
)
def test_nothing_but_the_cli_s_own_questions_goes_out(
    status: int, changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", SETUP_TOKEN)
    assert on_login(CLAUDE, asks(status, **changed)).asked == []


def test_a_login_can_be_asked_nothing_but_by_its_cli(home: Path) -> None:
    write_codex_login(home)

    async def ask(opened: Opened) -> None:
        model = await opened.calls.spec.provider.open(opened.calls.spec, 30)
        with pytest.raises(ModelError, match="only for requests of codex itself"):
            await model.ask(QUESTION)

    assert on_login(CODEX, ask).asked == []


def test_a_file_that_breaks_meanwhile_is_an_error(home: Path) -> None:
    file = write_claude_login(home)

    async def test(opened: Opened) -> None:
        file.write_text("{")
        await asks(400)(opened)
        [error] = opened.calls.errors
        assert error.fatal
        assert "Log in again: claude" in str(error)

    assert on_login(CLAUDE, test).asked == []


def test_a_token_that_the_cli_renewed_meanwhile_is_used(home: Path) -> None:
    file = write_claude_login(home)
    data = json.loads(file.read_text())

    async def twice(opened: Opened) -> None:
        await asks()(opened)
        data["claudeAiOauth"]["accessToken"] = "access-made-up-1-8a3f"
        file.write_text(json.dumps(data))
        await asks()(opened)

    server = on_login(CLAUDE, twice)
    assert [asked.headers["authorization"] for asked in server.asked] == [
        "Bearer access-made-up-0-8a3f",
        "Bearer access-made-up-1-8a3f",
    ]


@pytest.mark.parametrize("of_environment", [True, False])
def test_a_refused_token_is_an_error_that_says_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch, *, of_environment: bool
) -> None:
    before = write_claude_login(home).read_bytes()
    if of_environment:
        monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", SETUP_TOKEN)

    async def test(opened: Opened) -> None:
        await asks(400)(opened)
        [error] = opened.calls.errors
        assert error.fatal
        assert "Log in again: claude setup-token" in str(error)
        assert "made-up" not in str(error)

    def refuses(asked: Asked) -> Fault:
        return Fault("status", 401, message=f"bad {asked.headers['authorization']}")

    assert len(on_login(CLAUDE, test, refuses).asked) == 1
    assert (home / ".credentials.json").read_bytes() == before


def test_a_login_that_expires_meanwhile_is_an_error(home: Path) -> None:
    write_claude_login(home)

    async def test(opened: Opened) -> None:
        write_claude_login(home, seconds=-1)
        await asks(400)(opened)
        [error] = opened.calls.errors
        assert error.fatal
        assert "the login has expired" in str(error)

    assert on_login(CLAUDE, test).asked == []


def test_a_usage_limit_ends_the_trial(home: Path) -> None:
    write_codex_login(home)

    async def test(opened: Opened) -> None:
        await asks(400, target="/v1/responses", body=TALK, more=CODEX_CLI)(opened)
        [error] = opened.calls.errors
        assert error.used_up
        assert "usage limit of your plan" in opened.endpoint.no_answer

    limit = Fault("status", 429, error_type="usage_limit_reached")
    assert len(on_login(CODEX, test, lambda _: limit).asked) == 1
