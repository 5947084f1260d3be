"""The command ``pytest-upskill``: parse, call, print, exit status."""

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from tabulate import tabulate

from . import __version__
from .engine.store import FILE_NAME, FOLDER, Store
from .errors import SettingsError
from .models import local, weights
from .models.names import ALIASES, PROVIDERS, Provider, base_url_of, shown_address
from .schema import schema_text
from .texts import counted, harmless


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="pytest-upskill",
        description="Test Agent Skills. The tests themselves are run by pytest: "
        "pytest --skill PATH --model NAME",
    )
    parser.add_argument("--version", action="version", version=f"pytest-upskill {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    models = commands.add_parser("models", help="list the models that --model takes")
    models.set_defaults(run=lambda _: print(models_text(os.environ)))
    answers = commands.add_parser("answers", help="show or clear this project's stored answers")
    answers.add_argument(
        "--prune", type=float, metavar="DAYS", help="forget answers that are older than this"
    )
    answers.add_argument("--clear", action="store_true", help="forget them all")
    answers.set_defaults(run=lambda given: print(answers_text(given.prune, given.clear)))
    schema = commands.add_parser("schema", help="print the JSON schema of skill_meta.json")
    schema.set_defaults(run=lambda _: print(schema_text(), end=""))
    parsed = parser.parse_args(arguments)
    if parsed.command is None:
        parser.print_help()
        return 2
    parsed.run(parsed)
    return 0


def answers_text(prune_days: float | None, clear: bool) -> str:
    """What this project's store holds, after forgetting what was asked to be forgotten."""
    file = _store_file(Path.cwd())
    if file is None:
        return f"no answers are stored here or above ({FOLDER}/{FILE_NAME})"
    lines: list[str] = []
    store = Store(file, lines.append)
    if clear or prune_days is not None:
        before = time.time() - (0.0 if clear else (prune_days or 0.0) * 86_400)
        lines.append(f"{counted(store.prune(before), 'answer')} forgotten")
    size = store.size()
    store.close()
    lines.append(f"{file}: {counted(sum(size.answers.values()), 'answer')}, {size.size:,} bytes")
    if size.oldest is not None:
        lines.append(f"the oldest is of {datetime.fromtimestamp(size.oldest):%Y-%m-%d %H:%M}")
    lines += [f"{number:>9,}  {harmless(model)}" for model, number in size.answers.items()]
    return "\n".join(lines)


def _store_file(start: Path) -> Path | None:
    files = (folder / FOLDER / FILE_NAME for folder in (start, *start.parents))
    return next((file for file in files if file.is_file()), None)


def models_text(env: Mapping[str, str]) -> str:
    """Aliases, providers and their keys (set or not, never what they are), the embedded model."""
    aliases = [(alias, f"anthropic:{model_id}") for alias, model_id in ALIASES.items()]
    providers = [
        (provider.example, _address(name, env), _key_state(provider, env))
        for name, provider in PROVIDERS.items()
        if provider.protocol in ("anthropic", "openai")
    ]
    providers.append(("any other name", "the server at --skill-base-url", "not needed"))
    return "\n\n".join(
        [
            tabulate(aliases, ("alias", "stands for"), tablefmt="simple"),
            tabulate(providers, ("name", "address", "key"), tablefmt="simple"),
            tabulate(_embedded(env), ("embedded", "where"), tablefmt="simple"),
        ]
    )


def _address(name: str, env: Mapping[str, str]) -> str:
    variable = PROVIDERS[name].base_url_env
    try:
        url = base_url_of(name, env)
    except SettingsError as error:
        return f"{variable}: {error.problem}"
    if not url:
        return f"set {variable}"
    return shown_address(url) + (f" ({variable})" if url != PROVIDERS[name].base_url else "")


def _key_state(provider: Provider, env: Mapping[str, str]) -> str:
    given = [variable for variable in provider.key_envs if env.get(variable, "").strip()]
    if given:
        return f"{given[0]} is set"
    if provider.needs_key:
        return f"{provider.key_envs[0]} is not set"
    return "not needed"


def _embedded(env: Mapping[str, str]) -> list[tuple[str, str]]:
    own = env.get("PYTEST_UPSKILL_MODEL")
    if not local.installed():
        where = 'not installed: pip install "pytest-upskill[local]"'
    elif own:
        where = f"{own} (PYTEST_UPSKILL_MODEL{'' if Path(own).is_file() else ', not there'})"
    elif weights.have_weights():
        where = f"{weights.LABEL} at {weights.weights_file()}"
    else:
        where = f"{weights.LABEL}, fetched when first used to {weights.weights_file()}"
    return [
        ("local", where),
        ("local:FILE.gguf", "a file of yours"),
        ("scripted:FILE.json", "a fake that answers by rules, for tests"),
    ]
