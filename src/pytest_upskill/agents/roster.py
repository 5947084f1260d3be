"""Agents by name, their versions, and the models that they can use.

An agent can use a model if both speak the same protocol.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Final

from .._util.texts import first_few, guess, one_line
from ..errors import InputError, Setting, SettingsError, Text
from ..models import ModelSpec
from ..models.model import ProtocolName
from ..models.providers import ALIASES, PROVIDERS, Providers
from ..registry import agents
from ..skills.case import Case
from ..trials.subject import CHAT, Subject, asks_model, works_on_model

if TYPE_CHECKING:
    from .agent import Agent
    from .logins import Login

Agents = Mapping[str, Callable[[], "Agent"]]
_CLASSES: Final = {
    "loop": (".loop", "LoopAgent"),
    **agents(),
    "claude": (".clis.claude", "ClaudeCode"),
    "codex": (".clis.codex", "Codex"),
    "opencode": (".clis.opencode", "OpenCode"),
    "copilot": (".clis.copilot", "Copilot"),
    "gemini": (".clis.gemini", "GeminiCLI"),
}
_TITLES: Final[Mapping[ProtocolName, str]] = {
    "messages": "Anthropic Messages",
    "chat": "OpenAI Chat Completions",
    "responses": "OpenAI Responses",
    "gemini": "the Gemini API",
}
_NOT_LISTED: Final = ("generic", "scripted")  # any name at a base URL; tests


def _factory(module: str, name: str) -> Callable[[], "Agent"]:
    """Imported only if it is used."""

    def make() -> "Agent":
        agent: Agent = getattr(import_module(module, __package__), name)()
        return agent

    return make


AGENTS: Final[Agents] = {name: _factory(*path) for name, path in _CLASSES.items()}


class Roster:
    """All agents, each created once for a run, and their versions.

    A version is looked up once: that may start a program and take seconds.
    """

    def __init__(self, agents: Agents = AGENTS) -> None:
        self._agents = agents
        self._created: dict[str, Agent] = {}
        self.pins: dict[str, str] = {}  # versions that the user requires
        self.versions: dict[str, str] = {}  # those that were looked up

    @property
    def names(self) -> tuple[str, ...]:
        """Without chat, which is no agent."""
        return tuple(self._agents)

    def is_built_in(self, name: str) -> bool:
        """Whether it is built in, and not from a conftest.py."""
        return self._agents[name] is AGENTS.get(name)

    def agent(self, name: str) -> "Agent":
        if name not in self._created:
            self._created[name] = self._agents[name]()
        return self._created[name]

    def parse(self, text: str) -> str:
        """The name of an agent; ``claude@2.1.325`` is claude at just
        that version from now on.

        SettingsError if there is no such agent, or if it was to have another version.
        """
        name, at, pin = text.partition("@")
        names = (CHAT, *self._agents)
        if name not in names:
            hint = f"Choose one of: {', '.join(names)}."
            raise SettingsError(
                "agents", f"no such agent{guess(name, names)}", hint, value=text
            )
        if at and not (pin and works_on_model(name)):
            hint = "Leave it out." if pin else "For example: claude@2.1.325."
            raise SettingsError("agents", "no version to ask for", hint, value=text)
        if at and self.pins.setdefault(name, pin) != pin:
            problem = f"{name}@{self.pins[name]} is asked for, too"
            hint = "One run has one version of an agent: leave one of them out."
            raise SettingsError("agents", problem, hint, value=text)
        return name

    def subject_of(self, label: str) -> Subject:
        """The agent and model of a node id: ``loop/haiku``, just a model,
        or an agent that asks none.
        """
        if not asks_model(label):
            return Subject(label, label)
        agent, slash, model = label.partition("/")
        return (
            Subject(agent, model)
            if slash and agent in self._agents
            else Subject(CHAT, label)
        )

    def login_for(self, subject: Subject, spec: ModelSpec) -> "Login | None":
        """The login that an agent can ask a model on: its vendor's own,
        for the vendor's models.
        """
        if subject.agent == CHAT or not self.is_built_in(subject.agent):
            return None
        login = self.agent(subject.agent).login
        return login if login and login.vendor == spec.provider.name else None

    @property
    def logins(self) -> "list[Login]":
        """Those of all agents that are built in."""
        agents = (self.agent(name) for name in self.names if self.is_built_in(name))
        return [agent.login for agent in agents if agent.login]

    def require_mcp(
        self, agents: Iterable[str], label: str, cases: Iterable[Case]
    ) -> None:
        """SettingsError if an agent can't be given the MCP servers of a skill's
        cases.
        """
        parts = chain.from_iterable(case.parts for case in cases)
        servers = sorted({server for part in parts for server in part.servers})
        for name in agents if servers else ():
            if works_on_model(name) and not self.agent(name).mcp:
                fitting = ", ".join(each for each in self.names if self.agent(each).mcp)
                names = first_few([one_line(server, 60) for server in servers], 5)
                problem = f"it can't be given the MCP servers of {label} ({names})"
                hint = f'Use {fitting}, or write "mcp": [] into its cases.'
                raise SettingsError("agents", problem, hint, value=name)

    # Versions.

    def version(self, name: str) -> str:
        """SettingsError if it is not installed, or not at the
        version that is asked for.

        A plain completion has none.
        """
        if name == CHAT:
            return ""
        self.look_up_versions([name])
        return self.versions[name]

    def look_up_versions(self, names: Iterable[str]) -> None:
        """Look up versions of agents in parallel; errors as in ``version``."""
        unknown = {
            name: self.agent(name) for name in names if name not in self.versions
        }
        if unknown:
            with ThreadPoolExecutor(len(unknown)) as pool:
                versions = list(pool.map(_version, unknown.values()))
            self.set_versions(dict(zip(unknown, versions, strict=True)))

    def set_versions(self, versions: Mapping[str, str], recording: str = "") -> None:
        """Set versions that are known, perhaps from a recording.

        SettingsError if the user requires another one.
        """
        for name, version in versions.items():
            pin = self.pins.get(name, version)
            if pin != version:
                problem, hint = self._wrong_version(name, version, pin)
                if recording:
                    problem = f"{recording} has answers of {name} {version}"
                    hint = "Record them again, or leave the version out."
                raise SettingsError("agents", problem, hint, value=f"{name}@{pin}")
            self.versions[name] = version

    def _wrong_version(self, name: str, version: str, pin: str) -> tuple[str, str]:
        command = self.agent(name).how_to_install(pin)
        hint = "Leave the version out, or ask for this one."
        hint = f"Install it: {command}" if command else hint
        return (
            f"{name} {version} is installed" if version else "its version is not known",
            hint,
        )

    # Pairs.

    def pairs(
        self,
        subjects: Iterable[Subject],
        specs: Mapping[str, ModelSpec],
        named: Collection[Subject] = (),
        providers: Providers = PROVIDERS,
    ) -> tuple[list[Subject], list[Subject]]:
        """The pairs of agents and models that fit, and those that don't.

        InputError if an agent or a model fits nothing, or if a pair that
        was ``named`` doesn't fit.
        """
        good, bad = list[Subject](), list[Subject]()
        for subject in subjects:
            any_model = not works_on_model(subject.agent)
            fit = any_model or fits(self.agent(subject.agent), specs[subject.model])
            (good if fit else bad).append(subject)
        for subject in bad:
            agent, spec = self.agent(subject.agent), specs[subject.model]
            hint = fitting_models(agent, providers)
            if subject in named:
                raise _unfit_pair(subject.label, agent, spec, hint)
            if subject.agent not in {pair.agent for pair in good}:
                models = [
                    specs[pair.model].name
                    for pair in bad
                    if pair.agent == subject.agent
                ]
                problem = f"it speaks {_mismatch(agent.protocols, models)}"
                raise SettingsError("agents", problem, hint, value=agent.name)
            if subject.model not in {pair.model for pair in good}:
                unfit = [pair.agent for pair in bad if pair.model == subject.model]
                fitting = [
                    name for name in self._agents if fits(self.agent(name), spec)
                ]
                names = ", ".join(dict.fromkeys((CHAT, "loop", *fitting)))
                problem = f"it speaks {_mismatch(spec.provider.protocols(spec), unfit)}"
                raise spec.error(problem, f"Fitting agents: {names}")
        return good, bad

    def require_fit(self, origin: str, subject: Subject, spec: ModelSpec) -> None:
        """InputError if an agent can't ask a model."""
        if subject.agent != CHAT and not fits(agent := self.agent(subject.agent), spec):
            raise _unfit_pair(origin, agent, spec, fitting_models(agent))


def _version(agent: "Agent") -> str:
    """InputError if the agent fails to give it."""
    try:
        agent.require()
        version: object = agent.version()
    except InputError:
        raise
    except Exception as bug:  # an agent of a conftest.py may raise anything
        error = one_line(f"{type(bug).__name__}: {bug}", 300)
        raise InputError(
            f"agent {agent.name}", f"its version() raised {error}"
        ) from None
    if isinstance(version, str):
        return one_line(version, 100)
    problem = f"its version is {one_line(repr(version), 100)}, not a string"
    raise InputError(f"agent {agent.name}", problem)


def subjects_of(agents: Iterable[str], models: Iterable[str]) -> dict[str, Subject]:
    """Every agent on every model, by label, unless it asks none."""
    subjects: dict[str, Subject] = {}
    models = list(models)
    pairs = ((agent, models if asks_model(agent) else [agent]) for agent in agents)
    for subject in (Subject(agent, model) for agent, names in pairs for model in names):
        earlier = subjects.setdefault(subject.label, subject)
        if earlier != subject:
            both = " and ".join(
                f"{each.agent} on {each.model}" for each in (earlier, subject)
            )
            hint = (
                "Name the model in another way, or drop one of ",
                Setting("agents"),
                ".",
            )
            problem = f"{both} would have the same name"
            raise SettingsError("models", problem, hint, value=subject.label)
    return subjects


def fits(agent: "Agent", spec: ModelSpec) -> bool:
    """Whether an agent can ask a model."""
    return not set(agent.protocols).isdisjoint(spec.provider.protocols(spec))


def _unfit_pair(origin: str, agent: "Agent", spec: ModelSpec, hint: Text) -> InputError:
    problem = f"{agent.name} speaks {_mismatch(agent.protocols, [spec.name])}"
    return InputError(origin, problem, hint)


def _mismatch(protocols: Iterable[ProtocolName], others: Sequence[str]) -> str:
    """What one side speaks, and the names of the other side, which does not."""
    spoken = " and ".join(_TITLES[protocol] for protocol in protocols)
    return (
        f"{spoken}, and {' and '.join(others)}"
        f" {'does' if len(others) == 1 else 'do'} not"
    )


def fitting_models(agent: "Agent", providers: Providers = PROVIDERS) -> tuple[str, ...]:
    """A hint with the models that an agent can use."""
    names = list[str]()
    for name, provider in providers.items():
        spoken = provider.protocols(ModelSpec(provider.example, provider, ""))
        if name in _NOT_LISTED or set(spoken).isdisjoint(agent.protocols):
            continue
        names += ALIASES if name == "anthropic" else ()
        names.append(provider.example if provider.bare else f"{name}:ID")
    hint = f"Fitting models: {', '.join(names)}"
    generic = providers["generic"]
    any_name = generic.protocols(ModelSpec(generic.example, generic, ""))
    if set(any_name).isdisjoint(agent.protocols):
        return (hint,)
    return (f"{hint}, any name at ", Setting("base_url"))
