"""``pytest-upskill models``: list the values of --model, and which API keys are set."""

import argparse
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..._util.texts import one_line
from ...errors import InputError
from ...models import Provider, local
from ...models.clouds import Cloud
from ...models.model import shown_address
from ...models.providers import ALIASES, HOSTED
from ...reports.terminal.tables import text_table

_WIDE: Final = 26


def add_models_arguments(_: argparse.ArgumentParser) -> None:
    """None."""


def run_models(_: argparse.Namespace) -> tuple[str, int]:
    return models_text(os.environ), 0


def models_text(env: Mapping[str, str]) -> str:
    """Aliases, providers and whether their keys are set,
    and models that need no server.
    """
    aliases = [(alias, f"anthropic:{model_id}") for alias, model_id in ALIASES.items()]
    providers = [
        (_form(provider), _address(name, env), _key_state(provider, env))
        for name, provider in HOSTED.items()
    ]
    own_key = _key_state(HOSTED["generic"], env)
    providers.append(("any other name", "pytest --skill-base-url", own_key))
    odd = [f"{note}." for provider in HOSTED.values() if (note := provider.note(env))]
    return "\n\n".join(
        [
            text_table(("alias", "stands for"), aliases),
            text_table(("name", "address", "key"), providers),
            text_table(("without a server", ""), _without_server(env)),
            *odd,
        ]
    )


def providers_of(env: Mapping[str, str]) -> list[tuple[str, str]]:
    """Providers, and whether their keys are set."""
    return [(name, _key_state(provider, env)) for name, provider in HOSTED.items()]


def _form(provider: Provider) -> str:
    """Its example, if the table fits into 80 columns with it."""
    return provider.example if len(provider.example) <= _WIDE else f"{provider.name}:ID"


def _address(name: str, env: Mapping[str, str]) -> str:
    provider = HOSTED[name]
    try:
        url = provider.base_url_in(env)
    except InputError as error:
        return f"{error.where}: {error.problem}"
    if not url:
        names = (
            provider.settings if isinstance(provider, Cloud) else provider.base_url_envs
        )
        return f"set {names[0]}" if len(names[0]) <= 20 else names[0]
    if url != provider.base_url:
        return f"{shown_address(url)} ({provider.set_in(env)[0]})"
    # So that the table fits into 80 columns
    return one_line(url.partition("://")[2], 24)


def _key_state(provider: Provider, env: Mapping[str, str]) -> str:
    if login := next(iter(provider.login_in(env)), None):
        return f"{login} set"
    if isinstance(provider, Cloud):
        return f"needs {provider.login}"
    if provider.needs_key:
        return f"{provider.key_envs[0]} not set"
    return f"{provider.key_envs[0]}, if needed" if provider.key_envs else "not needed"


def _without_server(env: Mapping[str, str]) -> list[tuple[str, str]]:
    weights = env.get("PYTEST_UPSKILL_MODEL")
    if not local.installed():
        place = f"not installed: {local.INSTALL}"
    elif weights:
        missing = "" if Path(weights).is_file() else ": no such file"
        place = f"{weights} (PYTEST_UPSKILL_MODEL{missing})"
    elif local.have_weights():
        place = _below_home(local.weights_file())
    else:
        place = f"first use downloads it to {_below_home(local.weights_file().parent)}"
    return [
        ("local", place),
        ("local:FILE.gguf", "your own GGUF file"),
        ("scripted:FILE.json", "a fake for tests, which answers by rules"),
    ]


def _below_home(path: Path) -> str:
    with suppress(ValueError, RuntimeError):  # elsewhere, or no home
        return f"~/{path.relative_to(Path.home()).as_posix()}"
    return str(path)
