"""Logins of CLIs for tests: their files, and a server of tokens on loopback."""

import base64
import json
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self, TypeVar

from pytest_upskill.agents.logins import Login

SETUP_TOKEN = "sk-ant-oat01-made-up-for-this-test-7d1e"
ACCOUNT = "acc-11c2-made-up-9f"
L = TypeVar("L", bound=Login)


class TokenServer:
    """Hands out new tokens, each for the last refresh token only;
    ``url`` is its address.
    """

    def __init__(self, refresh: str, status: int = 200, **reply: Any) -> None:
        self.valid = refresh
        self.asked: list[dict[str, Any]] = []
        self._status, self._reply = status, reply
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                status, reply = server._answer(json.loads(self.rfile.read(length)))
                body = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Location", f"{server.url}/elsewhere")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _answer(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            self.asked.append(asked)
            if self._status != 200 or asked["refresh_token"] != self.valid:
                status = self._status if self._status != 200 else 400
                return status, {"error": "invalid_grant"}
            number = len(self.asked)
            self.valid = f"refresh-made-up-{number}-5c7b"
            return 200, {
                "access_token": f"access-made-up-{number}-8a3f",
                "refresh_token": self.valid,
                "expires_in": 3600,
                **self._reply,
            }


def at(login: L, url: str, token_url: str = "http://127.0.0.1:9/never") -> L:
    """The same login at a server of the test."""
    return replace(login, url=url, token_url=token_url)


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
