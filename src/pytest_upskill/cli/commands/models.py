"""``pytest-upskill models``: list the values of --model, and which API keys are set."""

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tabulate import tabulate

from ...errors import InputError
from ...models import Provider, local
from ...models.names import ALIASES, HOSTED
from ...models.port import shown_address


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> tuple[str, int]:
    return models_json(os.environ) if given.json else models_text(os.environ), 0


def models_text(env: Mapping[str, str]) -> str:
    """Aliases, providers with their keys (set or not, never the values), the embedded model."""
    aliases = [(alias, f"anthropic:{model_id}") for alias, model_id in ALIASES.items()]
    providers = [
        (provider.example, _address(name, env), _key_state(provider, env))
        for name, provider in HOSTED.items()
    ]
    providers.append(("any other name", "the server at --skill-base-url", "not needed"))
    return "\n\n".join(
        [
            tabulate(aliases, ("alias", "stands for"), tablefmt="simple"),
            tabulate(providers, ("name", "address", "key"), tablefmt="simple"),
            tabulate(_embedded(env), ("embedded", "where"), tablefmt="simple"),
        ]
    )


def models_json(env: Mapping[str, str]) -> str:
    """The same for scripts."""
    return json.dumps(
        {
            "aliases": {alias: f"anthropic:{model_id}" for alias, model_id in ALIASES.items()},
            "providers": [_provider_data(name, env) for name in HOSTED],
            "embedded": dict(_embedded(env)),
        },
        indent=2,
    )


def _provider_data(name: str, env: Mapping[str, str]) -> dict[str, Any]:
    provider = HOSTED[name]
    try:
        url = HOSTED[name].base_url_in(env)
    except InputError:
        url = None
    return {
        "name": name,
        "example": provider.example,
        "address": shown_address(url) if url else None,
        "needs_key": provider.needs_key,
        "key_variables": list(provider.key_envs),
        "key_set": next(iter(_keys_set(provider, env)), None),
    }


def _address(name: str, env: Mapping[str, str]) -> str:
    variable = HOSTED[name].base_url_env
    try:
        url = HOSTED[name].base_url_in(env)
    except InputError as error:
        return f"{variable}: {error.problem}"
    if not url:
        return f"set {variable}"
    return shown_address(url) + (f" ({variable})" if url != HOSTED[name].base_url else "")


def _key_state(provider: Provider, env: Mapping[str, str]) -> str:
    if given := _keys_set(provider, env):
        return f"{given[0]} is set"
    if provider.needs_key:
        return f"{provider.key_envs[0]} is not set"
    return "not needed"


def _keys_set(provider: Provider, env: Mapping[str, str]) -> list[str]:
    return [variable for variable in provider.key_envs if env.get(variable, "").strip()]


def _embedded(env: Mapping[str, str]) -> list[tuple[str, str]]:
    own = env.get("PYTEST_UPSKILL_MODEL")
    if not local.installed():
        where = 'not installed: pip install "pytest-upskill[local]"'
    elif own:
        where = f"{own} (PYTEST_UPSKILL_MODEL{'' if Path(own).is_file() else ', not there'})"
    elif local.have_weights():
        where = f"{local.LABEL} at {local.weights_file()}"
    else:
        where = f"{local.LABEL}, fetched when first used to {local.weights_file()}"
    return [
        ("local", where),
        ("local:FILE.gguf", "a file of yours"),
        ("scripted:FILE.json", "a fake that answers by rules, for tests"),
    ]
