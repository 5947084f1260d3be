"""Agents by the names that people give; each is a module here with its ``AGENT``."""

from collections.abc import Iterable
from importlib import import_module
from typing import Final, cast

from .._util.texts import guess
from ..errors import Setting, SettingsError
from ..trials.subject import CHAT, Subject
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


def subjects_of(agents: Iterable[str], models: Iterable[str]) -> dict[str, Subject]:
    """Every agent on every model, by label."""
    subjects: dict[str, Subject] = {}
    for subject in (Subject(agent, model) for agent in agents for model in models):
        other = subjects.setdefault(subject.label, subject)
        if other != subject:
            problem = f"{CHAT} on this model and {subject.agent} on {subject.model} have one name"
            hint = ("Name the model in another way, or drop one of ", Setting("agents"), ".")
            raise SettingsError("models", problem, hint, value=other.model)
    return subjects


def subject_of(label: str) -> Subject:
    """The agent and model of a node id: ``loop/haiku``, or just a model."""
    agent, slash, model = label.partition("/")
    return Subject(agent, model) if slash and agent in AGENTS else Subject(CHAT, label)
