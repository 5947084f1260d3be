"""Agents by the names that people give; each is a module here with its ``AGENT``."""

from importlib import import_module
from typing import Final, cast

from .._util.texts import guess
from ..errors import SettingsError
from ..trials.subject import CHAT
from .port import Agent

AGENTS: Final = ("loop",)  # besides chat, which is none


def require_agent(name: str) -> None:
    """SettingsError if there is no such agent."""
    known = (CHAT, *AGENTS)
    if name not in known:
        hint = f"Choose one of: {', '.join(known)}."
        raise SettingsError("agents", f"no such agent{guess(name, known)}", hint, value=name)


def agent_named(name: str) -> Agent:
    """One object for all trials of a run."""
    return cast(Agent, import_module(f".{name}", __package__).AGENT)
