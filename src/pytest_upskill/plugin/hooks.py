"""The plugin's own hooks, called and checked: a broken one gives one clear message."""

import sys
import traceback
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pluggy
import pytest

from .._util.texts import one_line
from ..agents.roster import AGENTS
from ..checks import CheckKind, function_kind
from ..errors import InputError, shown
from ..models import Model, ModelSpec, Provider
from ..models.model import ModelName
from ..models.providers import ALIASES, PROVIDERS
from ..skills.case import Case
from ..skills.skill import Skill
from ..skills.suites.suite import Suite
from ..trials.arm import AGAIN, SKILL, Arm
from ..trials.subject import CHAT
from ..trials.trial import BASE_SYSTEM, Prompt, default_prompt

if TYPE_CHECKING:
    from ..agents.agent import Agent

_MIN_TELLING_LENGTH: Final = 40  # a shorter text may be in a prompt by chance
_NOT_THEIRS: Final = (Path(pluggy.__file__).parent, Path(__file__).parents[1])
_T = TypeVar("_T")


def call(hook: Any, **arguments: object) -> Any:
    """The result of a hook; InputError with its name and the place if it raises."""
    return call_safely(hook.name, partial(hook, **arguments))


def call_safely(name: str, function: Callable[[], object]) -> Any:
    try:
        return function()
    except InputError:  # says where something is wrong
        raise
    except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
        message = one_line(f"{type(error).__name__}: {error}", 300)
        raise InputError(_place(error), f"{name} raised {message}") from None


def _place(error: BaseException) -> str:
    """The line of the implementation that raised."""
    for frame in traceback.extract_tb(error.__traceback__):
        file = Path(frame.filename)
        if not any(file.is_relative_to(folder) for folder in _NOT_THEIRS):
            return f"{shown(file)}:{frame.lineno}"
    return "a plugin"


def call_for(kind: type[_T], hook: Any, **arguments: object) -> _T | None:
    """The first result of a hook that has one of this type."""
    result = call(hook, **arguments)
    if result is None or isinstance(result, kind):
        return result
    raise describe_returned(
        hook.name, result, f"a pytest_upskill.{kind.__name__}, or None"
    )


def describe_returned(hook: str, value: object, expected: str) -> InputError:
    return InputError(
        hook, f"returned {one_line(repr(value), 100)}", f"Return {expected}."
    )


def _register(
    hook: Any, config: pytest.Config, *, taken: Container[str]
) -> dict[str, Any]:
    """What all implementations of a hook return, by names that were free."""
    registered: dict[str, Any] = {}
    for returned in call(hook, config=config):
        if not isinstance(returned, Mapping):
            raise describe_returned(hook.name, returned, "a dict by names")
        for name, value in returned.items():
            is_usable = callable(value) or isinstance(value, Provider)
            if not isinstance(name, str) or not is_usable:
                entry = {name: value}
                raise describe_returned(hook.name, entry, "names and what they call")
            if name in registered or name in taken:
                problem = f"{name!r} is taken"
                raise InputError(hook.name, problem, "Choose another name.")
        registered |= returned
    return registered


def registered_checks(ihook: Any, config: pytest.Config) -> dict[str, CheckKind]:
    """The checks of pytest_upskill_checks, by their names."""
    if not ihook.pytest_upskill_checks.get_hookimpls():
        return {}

    from ..checks.kinds import TAKEN

    functions = _register(ihook.pytest_upskill_checks, config, taken=TAKEN)
    return {name: function_kind(name, check) for name, check in functions.items()}


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
        return self.make(spec.model_id)


def registered_providers(config: pytest.Config) -> dict[str, Provider]:
    """The providers of pytest_upskill_models, by their prefixes."""
    taken = {*PROVIDERS, *ALIASES}
    providers = _register(config.hook.pytest_upskill_models, config, taken=taken)
    for name, source in providers.items():
        if not isinstance(source, Provider):
            providers[name] = _FunctionProvider(name, f"{name}:NAME", source, bare=True)
    return providers


def registered_agents(config: pytest.Config) -> dict[str, "Callable[[], Agent]"]:
    """The agents of pytest_upskill_agents, by their names."""
    taken = {*AGENTS, CHAT}
    classes = _register(config.hook.pytest_upskill_agents, config, taken=taken)
    return {name: partial(_make_agent, name, made) for name, made in classes.items()}


def _make_agent(name: str, make: Callable[[], object]) -> "Agent":
    from ..agents.agent import Agent

    place = f"pytest_upskill_agents: {name!r}"
    agent = call_safely(place, make)
    if not isinstance(agent, Agent):
        problem = f"made {one_line(repr(agent), 100)}, not an agent"
        raise InputError(place, problem, "Subclass pytest_upskill.CommandAgent.")
    agent.name = name
    return agent


def asked_suite(config: pytest.Config, path: Path) -> Suite | None:
    """The suite of pytest_upskill_suites; None if nobody reads this path."""
    hook = config.hook.pytest_upskill_suites
    return call_for(Suite, hook, config=config, path=path)


def prompts(ihook: Any, config: pytest.Config, skill: Skill) -> Prompt:
    """The prompt of each arm, by the implementations of
    pytest_upskill_prompt that apply there.
    """
    hook = ihook.pytest_upskill_prompt

    def prompt(arm: Arm, case: Case) -> str:
        base = case.system or BASE_SYSTEM
        name = SKILL if arm.name == AGAIN else arm.name  # else these arms might differ
        text = call(hook, config=config, arm=name, skill=arm.text, base=base, case=case)
        if text is None:
            return default_prompt(arm, case)
        if not isinstance(text, str) or not text.strip():
            raise describe_returned(hook.name, text, "the system text, or None")
        if arm.text is None:
            for part in _find_telling_texts(skill):
                if part in text and part not in base:
                    problem = f"put the text of {skill.name} into the baseline"
                    hint = "Return a text without it if skill is None."
                    raise InputError(hook.name, problem, hint)
        return sys.intern(text)  # held once, not once for each case

    return prompt


def _find_telling_texts(skill: Skill) -> Iterator[str]:
    """The texts that the baseline must not have."""
    yield skill.body
    for _, text in skill.references:
        if len(text.strip()) >= _MIN_TELLING_LENGTH:
            yield text.strip()
