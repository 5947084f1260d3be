"""Which agents can ask which models: they must speak a protocol that the model's server speaks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..errors import InputError, Setting, SettingsError, Text
from ..models import ModelSpec
from ..models.names import ALIASES, PROVIDERS, Providers
from ..models.port import ProtocolName
from .port import Agent

_TITLES: Final[Mapping[ProtocolName, str]] = {
    "messages": "Anthropic Messages",
    "chat": "OpenAI Chat Completions",
    "responses": "OpenAI Responses",
    "gemini": "the Gemini API",
}
_NOT_LISTED: Final = ("generic", "scripted")  # any name at a server; what is made up for tests


def fits(agent: Agent, spec: ModelSpec) -> bool:
    """Whether an agent can ask a model."""
    return not set(agent.protocols).isdisjoint(spec.provider.protocols(spec))


def unfit_agent(
    agent: Agent, specs: Sequence[ModelSpec], providers: Providers = PROVIDERS
) -> SettingsError:
    """An agent that can ask none of these models."""
    return SettingsError("agents", *_about(agent, specs, providers), value=agent.name)


def unfit_pair(
    where: str, agent: Agent, spec: ModelSpec, providers: Providers = PROVIDERS
) -> InputError:
    """An agent that can't ask the one model that was named with it."""
    _, hint = _about(agent, [spec], providers)
    return InputError(where, f"{agent.name} speaks {_both(agent, [spec.name])}", hint)


def unfit_model(
    spec: ModelSpec, unfit: Sequence[str], agents: Iterable[Agent], always: Sequence[str]
) -> SettingsError:
    """A model that none of these agents can ask; ``always`` are names of those that ask any."""
    fitting = [agent.name for agent in agents if agent.name not in always and fits(agent, spec)]
    speaks = _spoken(spec.provider.protocols(spec))
    problem = f"it speaks {speaks}, and {_names(unfit)} not"
    return spec.error(problem, f"Fitting agents: {', '.join((*always, *fitting))}")


def _about(agent: Agent, specs: Sequence[ModelSpec], providers: Providers) -> tuple[str, Text]:
    problem = f"it speaks {_both(agent, [spec.name for spec in specs])}"
    return problem, fitting_models(agent, providers)


def fitting_models(agent: Agent, providers: Providers = PROVIDERS) -> tuple[str, ...]:
    """The names of models that an agent can ask, as a hint."""
    found = list[str]()
    for name, provider in providers.items():
        spoken = provider.protocols(ModelSpec(provider.example, provider, ""))
        if name in _NOT_LISTED or set(spoken).isdisjoint(agent.protocols):
            continue
        found += ALIASES if name == "anthropic" else ()
        found.append(provider.example if provider.bare else f"{name}:ID")
    hint = f"Fitting models: {', '.join(found)}"
    generic = providers["generic"]
    any_name = generic.protocols(ModelSpec(generic.example, generic, ""))
    if set(any_name).isdisjoint(agent.protocols):
        return (hint,)
    return (f"{hint}, any name at ", Setting("base_url"))


def _both(agent: Agent, models: Sequence[str]) -> str:
    return f"{_spoken(agent.protocols)}, and {_names(models)} not"


def _names(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} {'does' if len(names) == 1 else 'do'}"


def _spoken(protocols: Iterable[ProtocolName]) -> str:
    return " and ".join(_TITLES[one] for one in protocols)
