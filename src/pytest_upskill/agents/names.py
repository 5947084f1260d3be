"""Agents by the names that people give."""

from collections.abc import Iterable
from typing import Final

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
    from .loop import LoopAgent

    made: dict[str, type[Agent]] = {"loop": LoopAgent}
    return made[name]()


def subjects_of(agents: Iterable[str], models: Iterable[str]) -> dict[str, Subject]:
    """Every agent on every model, by label."""
    subjects: dict[str, Subject] = {}
    for subject in (Subject(agent, model) for agent in agents for model in models):
        other = subjects.setdefault(subject.label, subject)
        if other != subject:
            both = " and ".join(f"{one.agent} on {one.model}" for one in (other, subject))
            hint = ("Name the model in another way, or drop one of ", Setting("agents"), ".")
            problem = f"{both} would have the same name"
            raise SettingsError("models", problem, hint, value=subject.label)
    return subjects


def subject_of(label: str) -> Subject:
    """The agent and model of a node id: ``loop/haiku``, or just a model."""
    agent, slash, model = label.partition("/")
    return Subject(agent, model) if slash and agent in AGENTS else Subject(CHAT, label)
