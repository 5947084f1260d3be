"""The plugin's own hooks, called and checked: a broken one gives one clear message."""

import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pluggy
import pytest

from .._util.texts import one_line
from ..agents.agent import Agent
from ..agents.roster import AGENTS
from ..checks import TAKEN, CheckKind, function_kind
from ..errors import InputError, ModelError, shown
from ..models import Model, ModelSpec, Provider
from ..models.model import PROTOCOLS, ModelName
from ..models.providers import ALIASES, PROVIDERS
from ..results.run import RunResults
from ..skills.case import Case
from ..skills.skill import Skill
from ..skills.suites.suite import Suite
from ..trials.arm import AGAIN, SKILL, Arm
from ..trials.subject import CHAT
from ..trials.trial import BASE_SYSTEM, Prompt, default_prompt

_CHECKS: Final = "pytest_upskill_checks"
_MODELS: Final = "pytest_upskill_models"
_AGENTS: Final = "pytest_upskill_agents"
_SUITES: Final = "pytest_upskill_suites"
_PROMPT: Final = "pytest_upskill_prompt"
_FINISHED: Final = "pytest_upskill_finished"
_TOO_LONG_FOR_CHANCE: Final = 40  # characters
_PREFIX: Final = re.compile(r"[a-z][a-z0-9_-]*")
_NOT_THEIRS: Final = (Path(pluggy.__file__).parent, Path(__file__).parents[1])


def call(hook: Any, **arguments: object) -> Any:
    """The result of a hook; InputError with its name and the place if it raises."""
    try:
        return hook(**arguments)
    except InputError:  # says where something is wrong
        raise
    except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
        message = one_line(f"{type(error).__name__}: {error}", 300)
        raise InputError(_place(error), f"{hook.name} raised {message}") from None


def _place(error: BaseException) -> str:
    """The line of the implementation that raised."""
    for frame in traceback.extract_tb(error.__traceback__):
        file = Path(frame.filename)
        if not any(file.is_relative_to(folder) for folder in _NOT_THEIRS):
            return f"{shown(file)}:{frame.lineno}"
    return "a plugin"


def _returned(hook: str, value: object, expected: str) -> InputError:
    return InputError(
        hook, f"returned {one_line(repr(value), 100)}", f"Return {expected}."
    )


def _registered(
    hook: Any, config: pytest.Config, expected: str
) -> Iterator[tuple[Any, Any]]:
    """What all implementations of a hook return, by name."""
    for returned in call(hook, config=config):
        if not isinstance(returned, Mapping):
            raise _returned(hook.name, returned, expected)
        yield from returned.items()


def registered_checks(ihook: Any, config: pytest.Config) -> dict[str, CheckKind]:
    """The checks of pytest_upskill_checks, by their names."""
    kinds, expected = dict[str, CheckKind](), "a dict of names and functions"
    for name, function in _registered(ihook.pytest_upskill_checks, config, expected):
        shown_name, hint = one_line(repr(name), 100), f"Return {expected}."
        if not isinstance(name, str):
            raise InputError(_CHECKS, f"{shown_name} is not a name", hint)
        if not callable(function):
            problem = f"{shown_name} is {one_line(repr(function), 100)}, not a function"
            raise InputError(_CHECKS, problem, hint)
        if name in TAKEN:
            problem = f"{shown_name} is a built-in check"
            raise InputError(_CHECKS, problem, "Choose another name.")
        if name in kinds:
            problem = f"{shown_name} is registered twice"
            raise InputError(_CHECKS, problem, "Rename one of them.")
        kinds[name] = function_kind(name, function)
    return kinds


@dataclass(frozen=True)
class _FunctionProvider(Provider):
    """A provider that is just a function of the model's name."""

    make: Callable[[str], Model]

    def resolve(
        self,
        wanted: ModelName,
        rest: str,
        env: Mapping[str, str],  # noqa: ARG002
    ) -> ModelSpec:
        return ModelSpec(wanted.name, self, rest or self.name)

    async def open(self, spec: ModelSpec, timeout: float) -> Model:  # noqa: ARG002
        model: object = self.make(spec.model_id)
        if isinstance(model, Model):
            return model
        problem = (
            f"{_MODELS}: {self.name!r} made {one_line(repr(model), 100)}, not a Model"
        )
        raise ModelError(problem, "Subclass pytest_upskill.Model", fatal=True)


def registered_providers(config: pytest.Config) -> dict[str, Provider]:
    """The providers of pytest_upskill_models, by their prefixes."""
    providers, expected = dict[str, Provider](), "a dict of prefixes and providers"
    for name, source in _registered(
        config.hook.pytest_upskill_models, config, expected
    ):
        if not isinstance(name, str) or not _PREFIX.fullmatch(name):
            problem = f"{name!r} can't be a prefix"
            raise InputError(
                _MODELS, problem, "Use lower-case letters, digits, - and _."
            )
        if name in providers or name in PROVIDERS or name in ALIASES:
            raise InputError(_MODELS, f"{name!r} is taken", "Choose another prefix.")
        providers[name] = _provider(name, source)
    return providers


def registered_agents(config: pytest.Config) -> dict[str, Callable[[], Agent]]:
    """The agents of pytest_upskill_agents, by their names."""
    agents = dict[str, Callable[[], Agent]]()
    expected = "a dict of names and classes of agents"
    for name, source in _registered(
        config.hook.pytest_upskill_agents, config, expected
    ):
        if not isinstance(name, str) or not _PREFIX.fullmatch(name):
            problem = f"{name!r} can't be a name"
            raise InputError(
                _AGENTS, problem, "Use lower-case letters, digits, - and _."
            )
        if name in agents or name in AGENTS or name == CHAT:
            raise InputError(_AGENTS, f"{name!r} is taken", "Choose another name.")
        if not callable(source):
            raise _returned(_AGENTS, {name: source}, expected)
        agents[name] = partial(_agent, name, source)
    return agents


def _agent(name: str, make: Callable[[], object]) -> Agent:
    """An agent of pytest_upskill_agents, made and checked."""
    place = f"{_AGENTS}: {name!r}"
    try:
        agent = make()
    except Exception as error:
        message = one_line(f"{type(error).__name__}: {error}", 300)
        raise InputError(_place(error), f"{place} raised {message}") from None
    if not isinstance(agent, Agent):
        problem = f"made {one_line(repr(agent), 100)}, not an agent"
        raise InputError(place, problem, "Subclass pytest_upskill.CommandAgent.")
    spoken: object = agent.protocols
    if not isinstance(spoken, tuple) or not spoken or not set(spoken) <= set(PROTOCOLS):
        problem = f"speaks {one_line(repr(spoken), 100)}"
        raise InputError(
            place, problem, f"Set protocols to a tuple of: {', '.join(PROTOCOLS)}."
        )
    agent.name = name
    return agent


def _provider(name: str, source: object) -> Provider:
    if isinstance(source, Provider):
        if source.name != name:
            problem = f"{name!r} is a provider named {source.name!r}"
            raise InputError(_MODELS, problem, "Use the provider's name as its prefix.")
        return source
    if not callable(source):
        raise _returned(
            _MODELS, {name: source}, "a provider, or a function that makes a Model"
        )
    return _FunctionProvider(name, f"{name}:NAME", source, bare=True)


def asked_suite(config: pytest.Config, path: Path) -> Suite | None:
    """The suite of pytest_upskill_suites; None if nobody reads this path."""
    suite = call(config.hook.pytest_upskill_suites, config=config, path=path)
    if suite is None or isinstance(suite, Suite):
        return suite
    raise _returned(_SUITES, suite, "a pytest_upskill.Suite, or None")


def prompts(ihook: Any, config: pytest.Config, skill: Skill) -> Prompt:
    """The prompt of each arm, by the implementations of
    pytest_upskill_prompt that apply there.
    """

    def prompt(arm: Arm, case: Case) -> str:
        base = case.system or BASE_SYSTEM
        name = SKILL if arm.name == AGAIN else arm.name  # else these arms might differ
        arguments = {"arm": name, "skill": arm.text, "base": base, "case": case}
        text = call(ihook.pytest_upskill_prompt, config=config, **arguments)
        if text is None:
            return default_prompt(arm, case)
        if not isinstance(text, str) or not text.strip():
            raise _returned(_PROMPT, text, "the system text, or None")
        if arm.text is None and any(
            part in text and part not in base for part in _parts(skill)
        ):
            problem = f"put the text of {skill.name} into the baseline"
            raise InputError(
                _PROMPT, problem, "Return a text without it if skill is None."
            )
        return sys.intern(text)  # held once, not once for each case

    return prompt


def _parts(skill: Skill) -> Iterator[str]:
    """The texts that the baseline must not have; a short file may be there by
    chance.
    """
    yield skill.body
    files = (text.strip() for _, text in skill.references)
    yield from (text for text in files if len(text) >= _TOO_LONG_FOR_CHANCE)


def call_finished(
    config: pytest.Config, results: RunResults
) -> tuple[list[str], list[str]]:
    """The lines and the errors of pytest_upskill_finished;
    every implementation is called.
    """
    lines, errors = list[str](), list[str]()
    plugins = [
        implementation.plugin
        for implementation in config.hook.pytest_upskill_finished.get_hookimpls()
    ]
    for plugin in reversed(plugins):  # as pluggy calls them
        others = [other for other in plugins if other is not plugin]
        hook = config.pluginmanager.subset_hook_caller(_FINISHED, others)
        try:
            for value in call(hook, config=config, results=results):
                lines += _lines(value)
        except InputError as error:
            errors.append(str(error))
    return lines, errors


def _lines(value: object) -> list[str]:
    lines = [value] if isinstance(value, str) else value
    if isinstance(lines, list | tuple) and all(isinstance(line, str) for line in lines):
        return [one_line(line, 300) for line in lines]
    raise _returned(_FINISHED, value, "a text, a list of texts, or None")
