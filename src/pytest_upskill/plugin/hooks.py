"""The plugin's own hooks, called and checked: a broken one gives one clear message."""

import re
import sys
import traceback
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

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
from ..skills.case import Case
from ..skills.skill import Skill
from ..skills.suites.suite import Suite
from ..trials.arm import AGAIN, SKILL, Arm
from ..trials.subject import CHAT
from ..trials.trial import BASE_SYSTEM, Prompt, default_prompt
from .run import NextStep

if TYPE_CHECKING:
    from ..results.run import RunResults

_FINISHED: Final = "pytest_upskill_finished"
_MIN_TELLING_LENGTH: Final = 40  # a shorter text may be in a prompt by chance
_NOT_THEIRS: Final = (Path(pluggy.__file__).parent, Path(__file__).parents[1])
_T = TypeVar("_T")


def call(hook: Any, **arguments: object) -> Any:
    """The result of a hook; InputError with its name and the place if it raises."""
    return _call(hook.name, partial(hook, **arguments))


def _call(name: str, function: Callable[[], object]) -> Any:
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
    raise _returned(hook.name, result, f"a pytest_upskill.{kind.__name__}, or None")


def _returned(hook: str, value: object, expected: str) -> InputError:
    return InputError(
        hook, f"returned {one_line(repr(value), 100)}", f"Return {expected}."
    )


def _register(
    hook: Any,
    config: pytest.Config,
    *,
    expected: str,
    taken: Container[str],
    names: str = r"[a-z][a-z0-9_-]*",
) -> dict[str, Any]:
    """What all implementations of a hook return, by names that were free."""
    registered: dict[str, Any] = {}
    for returned in call(hook, config=config):
        if not isinstance(returned, Mapping):
            raise _returned(hook.name, returned, expected)
        for name, value in returned.items():
            shown_name = one_line(repr(name), 100)
            if not isinstance(name, str) or not re.fullmatch(names, name, re.DOTALL):
                problem = f"{shown_name} can't be a name"
                hint = "Use lower-case letters, digits, - and _."
                raise InputError(hook.name, problem, hint)
            if name in registered or name in taken:
                problem = f"{shown_name} is taken"
                raise InputError(hook.name, problem, "Choose another name.")
            if not callable(value) and not isinstance(value, Provider):
                raise _returned(hook.name, {name: value}, expected)
            registered[name] = value
    return registered


def registered_checks(ihook: Any, config: pytest.Config) -> dict[str, CheckKind]:
    """The checks of pytest_upskill_checks, by their names."""
    functions = _register(
        ihook.pytest_upskill_checks,
        config,
        expected="a dict of names and functions",
        taken=TAKEN,
        names=".*",
    )
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
        model: object = self.make(spec.model_id)
        if isinstance(model, Model):
            return model
        made = one_line(repr(model), 100)
        problem = f"pytest_upskill_models: {self.name!r} made {made}, not a Model"
        raise ModelError(problem, "Subclass pytest_upskill.Model", fatal=True)


def registered_providers(config: pytest.Config) -> dict[str, Provider]:
    """The providers of pytest_upskill_models, by their prefixes."""
    hook = config.hook.pytest_upskill_models
    providers = _register(
        hook,
        config,
        expected="a dict of prefixes and providers, or functions that make a Model",
        taken={*PROVIDERS, *ALIASES},
    )
    for name, source in providers.items():
        if not isinstance(source, Provider):
            providers[name] = _FunctionProvider(name, f"{name}:NAME", source, bare=True)
        elif source.name != name:
            problem = f"{name!r} is a provider named {source.name!r}"
            hint = "Use the provider's name as its prefix."
            raise InputError(hook.name, problem, hint)
    return providers


def registered_agents(config: pytest.Config) -> dict[str, Callable[[], Agent]]:
    """The agents of pytest_upskill_agents, by their names."""
    classes = _register(
        config.hook.pytest_upskill_agents,
        config,
        expected="a dict of names and classes of agents",
        taken={*AGENTS, CHAT},
    )
    return {name: partial(_make_agent, name, made) for name, made in classes.items()}


def _make_agent(name: str, make: Callable[[], object]) -> Agent:
    place = f"pytest_upskill_agents: {name!r}"
    agent = _call(place, make)
    if not isinstance(agent, Agent):
        problem = f"made {one_line(repr(agent), 100)}, not an agent"
        raise InputError(place, problem, "Subclass pytest_upskill.CommandAgent.")

    spoken: object = agent.protocols
    if not isinstance(spoken, tuple) or not spoken or not set(spoken) <= set(PROTOCOLS):
        problem = f"speaks {one_line(repr(spoken), 100)}"
        hint = f"Set protocols to a tuple of: {', '.join(PROTOCOLS)}."
        raise InputError(place, problem, hint)
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
            raise _returned(hook.name, text, "the system text, or None")
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


def call_finished(
    config: pytest.Config, results: "RunResults", *, features_only: bool
) -> tuple[list[str], list[str]]:
    """The lines and the errors of pytest_upskill_finished;
    every implementation is called, or that of every feature.
    """
    lines, errors = list[str](), list[str]()
    plugins = [
        implementation.plugin
        for implementation in config.hook.pytest_upskill_finished.get_hookimpls()
    ]
    for plugin in reversed(plugins):  # as pluggy calls them
        name = config.pluginmanager.get_name(plugin) or ""
        if features_only and not name.startswith("upskill-"):
            continue
        others = [other for other in plugins if other is not plugin]
        hook = config.pluginmanager.subset_hook_caller(_FINISHED, others)
        try:
            for value in call(hook, config=config, results=results):
                lines += _lines(value)
        except InputError as error:
            errors.append(str(error))
    return lines, errors


def with_results_of_hooks(config: pytest.Config, results: "RunResults") -> "RunResults":
    """The results with the fields that pytest_upskill_results adds."""
    hook = config.hook.pytest_upskill_results
    names = {field.name for field in fields(results)}
    added = dict[str, Any]()
    for values in call(hook, config=config, results=results):
        if not isinstance(values, Mapping) or not values.keys() <= names:
            raise _returned(hook.name, values, "a dict of fields of RunResults")
        added |= values
    return replace(results, **added) if added else results


def next_step_of_hooks(config: pytest.Config, results: "RunResults") -> NextStep | None:
    """The next command by pytest_upskill_next_step; None if no hook has one."""
    hook = config.hook.pytest_upskill_next_step
    return call_for(NextStep, hook, config=config, results=results)


def _lines(value: object) -> list[str]:
    lines = [value] if isinstance(value, str) else value
    if isinstance(lines, list | tuple) and all(isinstance(line, str) for line in lines):
        return [one_line(line, 300) for line in lines]
    raise _returned(_FINISHED, value, "a text, a list of texts, or None")
