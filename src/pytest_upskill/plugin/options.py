"""The options, each with its twin in the ini file, and the settings they make."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from ..errors import InputError
from ..settings import (
    DEFAULT_CONCURRENCY,
    DEFAULT_MAX_OUTPUT,
    DEFAULT_RUNS,
    DEFAULT_TIMEOUT,
    Settings,
)


def _not_empty(text: str) -> str:
    if not text.strip():  # an unset variable of a CI job, most often
        raise argparse.ArgumentTypeError("nothing is given")
    return text


def _at_least_one(text: str) -> int:
    number = int(text) if text.strip().isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return number


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


Kind = Literal["paths", "names", "path", "text", "int", "float", "switch"]
_INI_TYPES: Final[dict[Kind, Any]] = {
    "paths": "paths",
    "names": "linelist",
    "path": "string",
    "text": "string",
    "int": "int",
    "float": "float",
    "switch": "bool",
}
_CONVERTERS: Final[dict[Kind, Callable[[str], Any]]] = {"int": _at_least_one, "float": _positive}
_WANTED: Final[dict[Kind, str]] = {
    "paths": "a list of paths",
    "names": "a list of names",
    "path": "a path",
    "text": "a text",
    "int": "a whole number of 1 or more",
    "float": "a number above 0",
    "switch": "true or false",
}


def _written(config: pytest.Config, key: str, kind: Kind) -> Any:
    """What the ini file says, in its type."""
    try:
        value = config.getini(key)
        if value is not None and kind in _CONVERTERS:
            value = _CONVERTERS[kind](str(value))
    except (TypeError, ValueError, pytest.UsageError, argparse.ArgumentTypeError):
        problem = f"this is not {_WANTED[kind]}"
        raise pytest.UsageError(f"{config.inipath}: {key}: {problem}") from None
    return value


@dataclass(frozen=True)
class Option:
    """One option of the command line and its twin in the ini file."""

    flag: str
    ini: str
    kind: Kind
    metavar: str | None
    help: str
    default: Any = None

    @property
    def dest(self) -> str:
        return f"upskill_{self.ini}"

    def add_to(self, group: pytest.OptionGroup, parser: pytest.Parser) -> None:
        how: dict[str, Any] = {"action": "store_true"}
        if self.kind != "switch":
            action = "append" if self.kind in ("paths", "names") else "store"
            convert = _CONVERTERS.get(self.kind, _not_empty)
            how = {"action": action, "metavar": self.metavar, "type": convert}
        group.addoption(self.flag, dest=self.dest, default=None, help=self.help, **how)
        parser.addini(
            self.ini, f"The same as {self.flag}.", type=_INI_TYPES[self.kind], default=None
        )

    def value(self, config: pytest.Config) -> Any:
        """What the command line says, else the ini file, else the default."""
        given, base = config.getoption(self.dest), config.invocation_params.dir
        if given is None:
            given = self.written(config)
            base = config.inipath.parent if config.inipath else config.rootpath
        if given is None:
            return self.default
        if self.kind == "paths":
            return [absolute(base, path) for path in given]
        return absolute(base, given) if self.kind == "path" else given

    def written(self, config: pytest.Config) -> Any:
        return _written(config, self.ini, self.kind)

    def is_of_ini_file(self, config: pytest.Config) -> bool:
        return config.getoption(self.dest) is None and bool(self.written(config))


SKILL: Final = Option(
    "--skill",
    "skill_paths",
    "paths",
    "PATH",
    "A skill's folder, its SKILL.md, or a folder of skills (repeatable). "
    "With no other path only these are collected.",
)
MODEL: Final = Option(
    "--model",
    "skill_models",
    "names",
    "NAME",
    "A model to ask (repeatable): haiku, sonnet, opus, anthropic:ID, openai:ID, hf:ORG/NAME, "
    "ollama:NAME, openrouter:ID, local, local:FILE.gguf, or a name that the server at "
    "--skill-base-url knows. Default: local.",
)
OPTIONS: Final = (
    SKILL,
    MODEL,
    Option(
        "--skill-base-url",
        "skill_base_url",
        "text",
        "URL",
        "An OpenAI-compatible server (llama-server, vLLM, Ollama, LM Studio).",
    ),
    Option(
        "--skill-runs",
        "skill_runs",
        "int",
        "N",
        f"Runs of each trial (default {DEFAULT_RUNS}).",
        DEFAULT_RUNS,
    ),
    Option("--skill-tests", "skill_tests", "path", "FILE", "Cases from another file."),
    Option(
        "--skill-no-baseline",
        "skill_no_baseline",
        "switch",
        None,
        "Ask only with the skill, not without.",
    ),
    Option(
        "--skill-max-output",
        "skill_max_output",
        "int",
        "N",
        f"Output tokens of one answer at most (default {DEFAULT_MAX_OUTPUT}).",
        DEFAULT_MAX_OUTPUT,
    ),
    Option(
        "--skill-timeout",
        "skill_timeout",
        "float",
        "S",
        f"Seconds that one answer may take (default {DEFAULT_TIMEOUT:g}).",
        DEFAULT_TIMEOUT,
    ),
    Option(
        "--skill-concurrency",
        "skill_concurrency",
        "int",
        "N",
        f"Calls in flight at most, over all xdist workers (default {DEFAULT_CONCURRENCY}).",
        DEFAULT_CONCURRENCY,
    ),
    Option(
        "--skill-max-tokens",
        "skill_max_tokens",
        "int",
        "N",
        "Tokens that the run may spend; what could pass it is not asked, and errs.",
    ),
    Option(
        "--skill-max-cost",
        "skill_max_cost",
        "float",
        "USD",
        "The same in USD; needs to know the prices of all models.",
    ),
    Option(
        "--skill-fresh",
        "skill_fresh",
        "switch",
        None,
        "Ask again, and replace the stored answers.",
    ),
    Option(
        "--skill-record",
        "skill_record",
        "path",
        "FILE",
        "Write the answers of this run, one line each, for --skill-replay.",
    ),
    Option(
        "--skill-replay",
        "skill_replay",
        "path",
        "FILE",
        "Answer from this file alone: no key, no network.",
    ),
    Option("--skill-json", "skill_json", "path", "FILE", "Write all results as JSON."),
    Option(
        "--skill-allow-code",
        "skill_allow_code",
        "switch",
        None,
        'Run the checks ("python": "checks.py:function") that skills have in their own folders.',
    ),
)
# The keys of the ini file that no option has: what they say holds for more than one run.
PRICES_KEY: Final = "skill_prices"
INI_KEYS: Final = {
    PRICES_KEY: "What models cost, one a line: NAME INPUT OUTPUT [CACHED], USD per million tokens.",
}


def add_options(group: pytest.OptionGroup, parser: pytest.Parser) -> None:
    for option in OPTIONS:
        option.add_to(group, parser)
    for key, text in INI_KEYS.items():
        parser.addini(key, text, type=_INI_TYPES["names"], default=None)


def absolute(base: Path, path: str | Path) -> Path:
    """A path as pytest writes those of its nodes: no dots in it, links as they are."""
    return Path(os.path.abspath(base / Path(path).expanduser()))  # noqa: PTH100


def is_asked_for(config: pytest.Config) -> bool:
    return bool(config.getoption(SKILL.dest) or SKILL.written(config))


def as_written(error: InputError, config: pytest.Config) -> str:
    """An error about an option, told by its ini key if it was written there."""
    flag, _, rest = error.where.partition(" ")
    if flag in INI_KEYS:
        where = f"{config.inipath or '-o'}: {flag}: {rest}"
        return str(InputError(where, error.problem, error.mend))
    for option in OPTIONS:
        if flag == option.flag and option.is_of_ini_file(config):
            where = f"{config.inipath}: {option.ini}: {rest}".rstrip(": ")
            return str(InputError(where, error.problem, error.mend))
    return str(error)


def unused_flags(config: pytest.Config) -> list[str]:
    """The options that were given although no skill was: they do nothing."""
    return [option.flag for option in OPTIONS if config.getoption(option.dest) is not None]


def read_settings(config: pytest.Config) -> Settings:
    value = {option.flag: option.value(config) for option in OPTIONS}
    of_ini = MODEL.is_of_ini_file(config)
    return Settings(
        skill_paths=tuple(value["--skill"]),
        models=tuple(dict.fromkeys(value["--model"] or ())),
        models_folder=config.inipath.parent if config.inipath and of_ini else Path(),
        base_url=value["--skill-base-url"] or None,
        runs=value["--skill-runs"],
        tests_file=value["--skill-tests"],
        baseline=not value["--skill-no-baseline"],
        max_output=value["--skill-max-output"],
        timeout=value["--skill-timeout"],
        concurrency=value["--skill-concurrency"],
        max_tokens=value["--skill-max-tokens"],
        max_cost=value["--skill-max-cost"],
        json_file=value["--skill-json"],
        fresh=bool(value["--skill-fresh"]),
        record_file=value["--skill-record"],
        replay_file=value["--skill-replay"],
        allow_code=bool(value["--skill-allow-code"]),
        prices=tuple(_written(config, PRICES_KEY, "names") or ()),
    )
