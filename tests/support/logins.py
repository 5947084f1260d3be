"""Logins of CLIs for tests: their files."""

import base64
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pytest_upskill.agents.logins import Login

SETUP_TOKEN = "sk-ant-oat01-made-up-for-this-test-7d1e"
ACCOUNT = "acc-11c2-made-up-9f"
L = TypeVar("L", bound=Login)


def at(login: L, url: str) -> L:
    """The same login at a server of the test."""
    return replace(login, url=url)


def jwt(**claims: Any) -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims, "made up"))
    return ".".join(
        base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts
    )


def write_claude_login(folder: Path, *, seconds: float = 3600) -> Path:
    """As ``claude /login`` writes it, with other things beside it."""
    login = {
        "accessToken": "access-made-up-0-8a3f",
        "refreshToken": "refresh-made-up-0-5c7b",
        "expiresAt": round((time.time() + seconds) * 1000),
        "scopes": ["user:inference"],
        "subscriptionType": "max",
    }
    data = {"claudeAiOauth": login, "mcpOAuth": {"a": 1}}
    return _written(folder / ".credentials.json", data)


def write_codex_login(folder: Path, *, seconds: float = 3600) -> Path:
    """As ``codex login`` writes it."""
    tokens = {
        "id_token": jwt(email="a@example.org"),
        "access_token": jwt(exp=round(time.time() + seconds)),
        "refresh_token": "refresh-made-up-0-5c7b",
        "account_id": ACCOUNT,
    }
    data = {
        "OPENAI_API_KEY": None,
        "tokens": tokens,
        "last_refresh": "2026-01-01T00:00:00Z",
    }
    return _written(folder / "auth.json", data)


def _written(file: Path, data: dict[str, Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data), encoding="utf-8")
    file.chmod(0o600)
    return file
