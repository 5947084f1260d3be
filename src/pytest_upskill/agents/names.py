"""Agents by the names that people give, and the models that they can use."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Final, NamedTuple

from .._util.texts import guess
from ..errors import Setting, SettingsError
from ..models import ModelSpec
from ..trials.subject import CHAT, Subject
from .port import Agent

Agents = Mapping[str, Callable[[], Agent]]
_CLASSES: Final = {
    "loop": ("loop", "LoopAgent"),
    "claude": ("clis.claude", "ClaudeCode"),
    "codex": ("clis.codex", "Codex"),
    "opencode": ("clis.opencode", "OpenCode"),
}


def _made(module: str, name: str) -> Callable[[], Agent]:
    """Imported only if it is used."""

    def make() -> Agent:
        agent: Agent = getattr(import_module(f".{module}", __package__), name)()
        return agent

    return make


AGENTS: Final[Agents] = {name: _made(*where) for name, where in _CLASSES.items()}


class NamedAgent(NamedTuple):
    """An agent as a person named it: ``claude``, or ``claude@2.1.325`` for just that version."""

    name: str
    pin: str = ""


class Roster:
    """The agents that there are, each made once for all trials of a run."""

    def __init__(self, agents: Agents = AGENTS) -> None:
        self._agents = agents
        self._made: dict[str, Agent] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Besides chat, which is none."""
        return tuple(self._agents)

    def agent(self, name: str) -> Agent:
        if name not in self._made:
            self._made[name] = self._agents[name]()
        return self._made[name]

    def named(self, text: str) -> NamedAgent:
        """SettingsError if there is no such agent."""
        name, at, pin = text.partition("@")
        known = (CHAT, *self._agents)
        if name not in known:
            hint = f"Choose one of: {', '.join(known)}."
            raise SettingsError("agents", f"no such agent{guess(name, known)}", hint, value=text)
        if at and (not pin or name in (CHAT, "loop")):
            hint = "For example: claude@2.1.325." if not pin else "Leave the version out."
            raise SettingsError("agents", "no version that can be asked for", hint, value=text)
        return NamedAgent(name, pin)

    def subject_of(self, label: str) -> Subject:
        """The agent and model of a node id: ``loop/haiku``, or just a model."""
        agent, slash, model = label.partition("/")
        return Subject(agent, model) if slash and agent in self._agents else Subject(CHAT, label)

    def pairs(
        self, subjects: Iterable[Subject], specs: Mapping[str, ModelSpec]
    ) -> tuple[list[Subject], list[Subject]]:
        """The pairs of agents and models that fit, and those that don't.

        SettingsError if an agent or a model that was named would not be used at all.
        """
        good, bad = list[Subject](), list[Subject]()
        for one in subjects:
            fit = one.agent == CHAT or fits(self.agent(one.agent), specs[one.model])
            (good if fit else bad).append(one)
        for one in bad:
            if one.agent not in {pair.agent for pair in good}:
                raise SettingsError("agents", "none of the models fits", value=one.agent)
            if one.model not in {pair.model for pair in good}:
                raise specs[one.model].error("none of the agents fits")
        return good, bad


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


def fits(agent: Agent, spec: ModelSpec) -> bool:
    """Whether an agent can ask a model."""
    return not set(agent.protocols).isdisjoint(spec.provider.protocols(spec))
