"""Logins of CLIs: where they are found, how they are refreshed,
and what their limits read like.
"""

import errno
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill._util.keys import without_keys
from pytest_upskill.agents import logins
from pytest_upskill.agents.gateway.forwarding import _stream_error
from pytest_upskill.agents.gateway.forwarding import why_no_path as why_no_path_at
from pytest_upskill.agents.logins import CLAUDE, CODEX, Login, LoginRefused
from pytest_upskill.agents.needs import why_no_path
from pytest_upskill.agents.roster import Roster
from pytest_upskill.errors import InputError, ModelError, SettingsError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.providers import PROVIDERS
from pytest_upskill.models.sdk import Upstream
from pytest_upskill.trials.subject import Subject
from support.logins import (
    ACCOUNT,
    SETUP_TOKEN,
    TokenServer,
    at,
    write_claude_login,
    write_codex_login,
)

HAIKU = ModelSpec(
    "haiku", PROVIDERS["anthropic"], "claude-1", "https://api.anthropic.com"
)
MINI = ModelSpec(
    "openai:mini", PROVIDERS["openai"], "mini", "https://api.openai.com/v1"
)


def env(folder: Path) -> dict[str, str]:
    return {"CLAUDE_CONFIG_DIR": str(folder), "CODEX_HOME": str(folder)}


def test_only_the_vendor_gets_a_token() -> None:
    servers = {login.url.split("/")[2] for login in (CLAUDE, CODEX)}
    assert servers == {"api.anthropic.com", "chatgpt.com"}
    issuers = {login.token_url.split("/")[2] for login in (CLAUDE, CODEX)}
    assert issuers == {"platform.claude.com", "auth.openai.com"}


def test_the_variable_comes_before_the_file(tmp_path: Path) -> None:
    write_claude_login(tmp_path)
    tokens = CLAUDE.find(
        {**env(tmp_path), "CLAUDE_CODE_OAUTH_TOKEN": f" {SETUP_TOKEN}\n"}
    )
    assert tokens
    assert (tokens.access, tokens.source) == (SETUP_TOKEN, "CLAUDE_CODE_OAUTH_TOKEN")
    assert not tokens.can_be_refreshed
    tokens = CLAUDE.find(env(tmp_path))
    assert tokens
    assert tokens.access == "access-made-up-0-8a3f"
    assert tokens.can_be_refreshed


def test_a_token_that_no_header_can_have_is_refused() -> None:
    with pytest.raises(InputError, match="CLAUDE_CODE_OAUTH_TOKEN: holds a character"):
        CLAUDE.find({"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-a\r\nx: y"})


def test_all_tokens_are_masked_once_they_are_found(tmp_path: Path) -> None:
    file = write_codex_login(tmp_path)
    tokens = CODEX.find(env(tmp_path))
    assert tokens
    shown = without_keys(file.read_text())
    for secret in json.loads(file.read_text())["tokens"].values():
        assert secret not in shown
    assert tokens.access not in repr(tokens)
    assert tokens.refresh not in repr(tokens)


@pytest.mark.parametrize("login", [CLAUDE, CODEX])
def test_no_login_is_found_without_a_token(login: Login, tmp_path: Path) -> None:
    assert login.find(env(tmp_path)) is None
    login.file(env(tmp_path)).write_text('{"OPENAI_API_KEY": "sk-1", "tokens": null}')
    assert login.find(env(tmp_path)) is None
    broken = "made-up-1\r\nx: y"  # in two lines, so no header can have it
    data = {
        "tokens": {"access_token": broken},
        "claudeAiOauth": {"accessToken": broken},
    }
    login.file(env(tmp_path)).write_text(json.dumps(data))
    assert login.find(env(tmp_path)) is None


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_a_broken_file_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "auth.json").write_text(text)
    with pytest.raises(InputError, match=r"auth\.json: not what codex writes"):
        CODEX.find(env(tmp_path))


def _refreshed(login: Login, folder: Path) -> Any:
    tokens = login.find(env(folder))
    assert tokens
    return login.refreshed(tokens)


def test_a_refreshed_login_is_written_where_the_cli_keeps_it(tmp_path: Path) -> None:
    with TokenServer("refresh-made-up-0-5c7b") as server:
        for login, write in ((CLAUDE, write_claude_login), (CODEX, write_codex_login)):
            server.valid = "refresh-made-up-0-5c7b"
            folder = tmp_path / login.agent
            file = write(folder)
            before = json.loads(file.read_text())
            tokens = _refreshed(at(login, "https://never", server.url), folder)
            after = json.loads(file.read_text())
            assert tokens == login.find(env(folder))
            assert tokens.refresh == server.valid
            assert file.stat().st_mode & 0o777 == 0o600
            assert [path.name for path in folder.iterdir()] == [file.name]
            assert after.keys() == before.keys()
            assert server.asked[-1]["client_id"] == login.client_id
            if login is CLAUDE:
                assert after["mcpOAuth"] == {"a": 1}
                assert after["claudeAiOauth"]["subscriptionType"] == "max"
                assert after["claudeAiOauth"]["expiresAt"] > time.time() * 1000
            else:
                assert after["tokens"]["id_token"] == before["tokens"]["id_token"]
                assert after["tokens"]["account_id"] == ACCOUNT
                assert after["last_refresh"] > before["last_refresh"]


def test_runs_at_once_refresh_a_login_only_once(tmp_path: Path) -> None:
    write_claude_login(tmp_path)
    with TokenServer("refresh-made-up-0-5c7b") as server:
        login = at(CLAUDE, "https://never", server.url)
        old = login.find(env(tmp_path))
        assert old
        found = list[str]()
        threads = [
            threading.Thread(target=lambda: found.append(login.refreshed(old).access))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(server.asked) == 1
    assert found == ["access-made-up-1-8a3f"] * 4


@pytest.mark.parametrize("status", [400, 307])
def test_a_refused_refresh_leaves_the_file_and_goes_nowhere_else(
    status: int, tmp_path: Path
) -> None:
    file = write_codex_login(tmp_path)
    before = file.read_bytes()
    with TokenServer("refresh-made-up-0-5c7b", status) as server:
        with pytest.raises(ModelError, match="Log in again: codex login") as caught:
            _refreshed(at(CODEX, "https://never", server.url), tmp_path)
        assert len(server.asked) == 1
    assert caught.value.fatal
    assert file.read_bytes() == before


def test_a_file_that_cannot_be_replaced_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is mounted alone: the new tokens are the only ones
    that are worth something.
    """

    def replace_file(file: Path, _content: bytes) -> None:
        raise OSError(errno.EBUSY, "busy", str(file))

    monkeypatch.setattr(logins, "replace_file", replace_file)
    file = write_claude_login(tmp_path / "real")
    (tmp_path / ".credentials.json").symlink_to(file)
    with TokenServer("refresh-made-up-0-5c7b") as server:
        _refreshed(at(CLAUDE, "https://never", server.url), tmp_path)
    assert (tmp_path / ".credentials.json").is_symlink()
    assert json.loads(file.read_text())["claudeAiOauth"]["refreshToken"] == server.valid


@pytest.mark.parametrize("token", [{"a": 1}, 7, "a-made-up-1\r\nx: y", None])
def test_a_reply_without_tokens_spoils_no_file(token: object, tmp_path: Path) -> None:
    write_claude_login(tmp_path)
    reply: dict[str, Any] = {"access_token": token, "refresh_token": token}
    with (
        TokenServer("refresh-made-up-0-5c7b", **reply) as server,
        pytest.raises(ModelError, match="no new token came"),
    ):
        _refreshed(at(CLAUDE, "https://never", server.url), tmp_path)
    tokens = CLAUDE.find(env(tmp_path))
    assert tokens
    assert tokens.access == "access-made-up-0-8a3f"


def test_a_server_of_tokens_that_speaks_no_http_is_tried_again(tmp_path: Path) -> None:
    write_codex_login(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"no HTTP\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ModelError, match="can't be reached") as caught:
            _refreshed(at(CODEX, "https://never", url), tmp_path)
        thread.join()
    assert caught.value.transient


def test_answers_are_those_of_a_key_if_the_server_is_the_same() -> None:
    spec = CLAUDE.spec(HAIKU)
    assert spec.provider.identity(spec) == HAIKU.provider.identity(HAIKU)
    spec = CODEX.spec(MINI)
    assert spec.provider.identity(spec) != MINI.provider.identity(MINI)


def refusal(
    login: Login, status: int, error: object, **headers: str
) -> ModelError | None:
    spec = login.spec(HAIKU if login is CLAUDE else MINI)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return spec.provider.refusal(status, error, "no", named, spec)


LIMIT = "anthropic_ratelimit_unified"


def test_a_usage_limit_is_told_from_too_many_requests() -> None:
    soon = (round(time.time()) // 60 + 2 * 1440) * 60
    rejected = {f"{LIMIT}_status": "rejected", f"{LIMIT}_reset": str(soon)}
    reached = {"type": "usage_limit_reached", "resets_at": soon}
    limits = [refusal(CLAUDE, 429, {}, **rejected), refusal(CODEX, 429, reached)]
    seconds = soon - 30 - time.time()  # the whole minute after that is named
    limits.append(
        refusal(
            CODEX, 429, {**reached, "resets_at": None, "resets_in_seconds": seconds}
        )
    )
    day = time.strftime("%H:%M on %A, %d %B", time.localtime(soon))
    for limit in limits:
        assert limit
        assert limit.used_up
        assert not limit.transient
        assert f"it resets at {day}" in limit.problem
    assert refusal(CLAUDE, 429, {}, **{f"{LIMIT}_status": "allowed"}) is None
    assert refusal(CODEX, 429, {"type": "rate_limit_exceeded"}) is None
    assert refusal(CODEX, 500, reached) is None


@pytest.mark.parametrize("reset", ["", "soon", "-1", "1e99", "nan"])
def test_a_limit_without_a_time_is_a_limit(reset: str) -> None:
    headers = {f"{LIMIT}_status": "rejected", f"{LIMIT}_reset": reset}
    limit = refusal(CLAUDE, 429, None, **headers)
    assert limit
    assert limit.problem == "the usage limit of your plan is reached"


def test_a_limit_within_a_stream_is_one() -> None:
    soon = (round(time.time()) // 60 + 2 * 1440) * 60
    error = {"type": "usage_limit_reached", "resets_at": soon}
    event = {"type": "response.failed", "response": {"error": error}}
    limit = _stream_error(event, Upstream(CODEX.spec(MINI), CODEX.url, {}, ()))
    assert limit.used_up
    assert "it resets at" in limit.problem


def test_the_vendor_s_server_is_never_taken_for_an_old_one() -> None:
    assert why_no_path_at(404, "/responses", "Not Found", CODEX.spec(MINI)) == ""


def test_a_refused_token_asks_to_log_in_again() -> None:
    assert isinstance(refusal(CODEX, 401, {}), LoginRefused)
    assert "Log in again: codex login" in str(refusal(CODEX, 403, {}))


def test_a_login_is_for_its_vendor_and_no_other() -> None:
    roster = Roster()
    assert roster.login_for(Subject("claude", "haiku"), HAIKU) is CLAUDE
    assert roster.login_for(Subject("codex", "openai:mini"), MINI) is CODEX
    for agent in ("chat", "loop", "opencode", "codex"):
        assert roster.login_for(Subject(agent, "haiku"), HAIKU) is None
    bedrock = ModelSpec("bedrock:x", PROVIDERS["bedrock"], "x")
    assert roster.login_for(Subject("claude", "bedrock:x"), bedrock) is None
    own = Roster({"claude": lambda: roster.agent("claude")})  # of a conftest.py
    assert own.login_for(Subject("claude", "haiku"), HAIKU) is None


def test_no_case_can_have_a_login_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_codex_login(tmp_path / "tools/codex")
    monkeypatch.setenv("CODEX_HOME", str(file.parent))
    for path in (file, file.parent, file.parent.parent):
        assert why_no_path(str(path))
    assert "holds your login" in (why_no_path(str(file.parent)) or "")


def test_nobody_who_is_not_logged_in_is_asked(tmp_path: Path) -> None:
    spec = CODEX.spec(MINI)
    with pytest.raises(SettingsError, match="codex is not logged in"):
        spec.provider.require(spec, env(tmp_path), lambda _: lambda _done, _total: None)
