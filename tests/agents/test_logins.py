"""Logins of CLIs: where they are found, and what their limits read like."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_upskill._util.keys import without_keys
from pytest_upskill.agents.gateway.forwarding import _stream_error
from pytest_upskill.agents.gateway.forwarding import why_no_path as why_no_path_at
from pytest_upskill.agents.logins import CLAUDE, CODEX, Login
from pytest_upskill.agents.needs import why_no_path
from pytest_upskill.agents.roster import Roster
from pytest_upskill.errors import InputError, ModelError, SettingsError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.providers import PROVIDERS
from pytest_upskill.models.sdk import Upstream
from pytest_upskill.trials.subject import Subject
from support.logins import (
    SETUP_TOKEN,
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


def test_the_variable_comes_before_the_file(tmp_path: Path) -> None:
    write_claude_login(tmp_path)
    tokens = CLAUDE.find(
        {**env(tmp_path), "CLAUDE_CODE_OAUTH_TOKEN": f" {SETUP_TOKEN}\n"}
    )
    assert tokens
    assert (tokens.access, tokens.source) == (SETUP_TOKEN, "CLAUDE_CODE_OAUTH_TOKEN")
    tokens = CLAUDE.find(env(tmp_path))
    assert tokens
    assert tokens.access == "access-made-up-0-8a3f"


def test_a_token_that_no_header_can_have_is_refused() -> None:
    with pytest.raises(InputError, match="CLAUDE_CODE_OAUTH_TOKEN: holds a character"):
        CLAUDE.find({"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-a\r\nx: y"})


def test_a_token_is_masked_once_it_is_found(tmp_path: Path) -> None:
    file = write_codex_login(tmp_path)
    tokens = CODEX.find(env(tmp_path))
    assert tokens
    shown = without_keys(file.read_text())
    for secret in (tokens.access, tokens.account):
        assert secret not in shown
        assert secret not in repr(tokens)


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


@pytest.mark.parametrize(
    ("login", "write"), [(CLAUDE, write_claude_login), (CODEX, write_codex_login)]
)
def test_an_expired_login_names_the_command_that_renews_it(
    login: Login, write: Callable[..., Path], tmp_path: Path
) -> None:
    file = write(tmp_path, seconds=-1)
    before = file.read_bytes()
    with pytest.raises(InputError, match="the login has expired") as caught:
        login.find(env(tmp_path))
    assert caught.value.where == str(file)
    assert caught.value.hint == (
        f"Ask {login.agent} anything once, and it renews it."
        f" Log in again: {login.command}"
    )
    assert file.read_bytes() == before


def test_a_login_that_does_not_say_when_it_ends_is_tried(tmp_path: Path) -> None:
    file = write_codex_login(tmp_path)
    data = json.loads(file.read_text())
    data["tokens"]["access_token"] = "access-made-up-0-8a3f"
    file.write_text(json.dumps(data))
    tokens = CODEX.find(env(tmp_path))
    assert tokens
    assert tokens.expires_at is None


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
    for status in (401, 403):
        refused = refusal(CODEX, status, {})
        assert refused
        assert refused.fatal
        assert "Log in again: codex login" in str(refused)


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
