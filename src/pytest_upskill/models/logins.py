"""Logins of subscriptions: they are not used, and whoever has one but no key is told so."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple


class _Login(NamedTuple):
    """Where a program keeps its login. Only whether the file is there is looked at."""

    program: str
    variable: str  # that names its folder
    folder: str  # in the home, by default
    file: str


_COPILOT: Final = _Login("Copilot CLI", "COPILOT_HOME", ".copilot", "config.json")
_LOGINS: Final = {
    "anthropic": (
        _Login("Claude Code", "CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
        _COPILOT,
    ),
    "openai": (_Login("Codex", "CODEX_HOME", ".codex", "auth.json"), _COPILOT),
    "gemini": (_Login("Gemini CLI", "", ".gemini", "oauth_creds.json"),),
}
_TOKEN: Final = "CLAUDE_CODE_OAUTH_TOKEN"
_OF_SUBSCRIPTION: Final = "sk-ant-oat"  # how such a token of Claude starts


def unused_logins(provider: str, env: Mapping[str, str]) -> str:
    """A sentence about the logins that are there and not used; empty if there are none."""
    found = [one.program for one in _LOGINS.get(provider, ()) if _is_there(one, env)]
    if provider == "anthropic" and env.get(_TOKEN) and "Claude Code" not in found:
        found.append("Claude Code")
    what = f"The login of {' and '.join(found)} is not used: only keys of the API are."
    return what if found else ""


def is_of_subscription(key: str) -> bool:
    return key.startswith(_OF_SUBSCRIPTION)


def _is_there(login: _Login, env: Mapping[str, str]) -> bool:
    home = env.get("HOME", "")
    folder = env.get(login.variable) or (home and f"{home}/{login.folder}")
    try:
        return bool(folder) and Path(folder, login.file).is_file()
    except OSError:
        return False
