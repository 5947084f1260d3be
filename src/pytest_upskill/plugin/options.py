"""The options with their twins in the ini file, and the settings they make.

An option is one entry here. Its first word names the setting, a field of Settings or of Gates;
errors below the plugin name settings, and ``message_of`` writes the flag or the ini key.
"""

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from ..errors import Setting, SettingsError, UpskillError, spelling
from ..settings import (
    DEFAULT_CONCURRENCY,
    DEFAULT_HISTORY_MB,
    DEFAULT_MAX_OUTPUT,
    DEFAULT_RUNS,
    DEFAULT_TIMEOUT,
    MOST_RUNS,
    Gates,
    Settings,
)
from .option import INI_TYPES, Kind, Option, written

SKILL: Final = Option(
    "skill_paths",
    "--skill",
    "paths",
    "PATH",
    "A skill's folder, its SKILL.md, or a folder of skills (repeatable). "
    "With no other path only these are collected.",
    ini="skill_paths",
)
MODEL: Final = Option(
    "models",
    "--model",
    "names",
    "NAME",
    "A model to ask (repeatable): haiku, sonnet, opus, anthropic:ID, openai:ID, hf:ORG/NAME, "
    "ollama:NAME, openrouter:ID, local, local:FILE.gguf, or a name that the server at "
    "--skill-base-url knows. Default: local.",
    ini="skill_models",
)
OPTIONS: Final = (
    SKILL,
    MODEL,
    Option(
        "base_url",
        "--skill-base-url",
        "text",
        "URL",
        "An OpenAI-compatible server (llama-server, vLLM, Ollama, LM Studio).",
    ),
    Option(
        "runs",
        "--skill-runs",
        "runs",
        "N",
        f"Runs of each trial (default {DEFAULT_RUNS}). 3..12: three at first, up to twelve where "
        "the verdict is open.",
        (DEFAULT_RUNS, DEFAULT_RUNS),
    ),
    Option("tests_file", "--skill-tests", "path", "FILE", "Cases from another file."),
    Option(
        "baseline",
        "--skill-no-baseline",
        "switch",
        None,
        "Ask only with the skill, not without.",
    ),
    Option(
        "against",
        "--skill-against",
        "text",
        "REF",
        "Ask with the skill as it is at this git ref too, and tell what changed since.",
    ),
    Option(
        "max_output",
        "--skill-max-output",
        "int",
        "N",
        f"Output tokens of one answer at most (default {DEFAULT_MAX_OUTPUT}).",
        DEFAULT_MAX_OUTPUT,
    ),
    Option(
        "timeout",
        "--skill-timeout",
        "float",
        "S",
        f"Seconds that one answer may take (default {DEFAULT_TIMEOUT:g}).",
        DEFAULT_TIMEOUT,
    ),
    Option(
        "concurrency",
        "--skill-concurrency",
        "int",
        "N",
        f"Calls in flight at most, over all xdist workers (default {DEFAULT_CONCURRENCY}).",
        DEFAULT_CONCURRENCY,
    ),
    Option(
        "max_tokens",
        "--skill-max-tokens",
        "int",
        "N",
        "Tokens that the run may spend; what could pass it is not asked, and errs.",
    ),
    Option(
        "max_cost",
        "--skill-max-cost",
        "float",
        "USD",
        "The same in USD; needs to know the prices of all models.",
    ),
    Option(
        "fresh",
        "--skill-fresh",
        "switch",
        None,
        "Ask again, and replace the stored answers.",
    ),
    Option(
        "record_file",
        "--skill-record",
        "path",
        "FILE",
        "Write the answers of this run, one line each, for --skill-replay.",
    ),
    Option(
        "replay_file",
        "--skill-replay",
        "path",
        "FILE",
        "Answer from this file alone: no key, no network.",
    ),
    Option(
        "judge",
        "--skill-judge",
        "text",
        "MODEL",
        "The model that says whether an answer meets the texts of a rubric (`judge`).",
    ),
    Option(
        "case_threshold",
        "--skill-case-threshold",
        "share",
        "R",
        "Share of a case's runs that must pass (default: more than half).",
    ),
    Option(
        "min_lift",
        "--skill-min-lift",
        "lift",
        "R",
        "Fail if a skill's lift is less, in shares of 1: 0.2 is 20 points.",
    ),
    Option(
        "min_pass_rate",
        "--skill-min-pass-rate",
        "share",
        "R",
        "Fail if fewer of the cases pass with the skill, in shares of 1.",
    ),
    Option(
        "max_token_growth",
        "--skill-max-token-growth",
        "number",
        "R",
        "Fail if answers take more tokens with the skill by more than this, in shares of 1.",
    ),
    Option(
        "no_worse",
        "--skill-no-worse",
        "switch",
        None,
        "Fail if a skill is shown to be worse than at the ref of --skill-against.",
    ),
    Option(
        "confident",
        "--skill-confident",
        "switch",
        None,
        "Hold the bound of the interval (95 %%) to these gates, not the estimate.",
    ),
    Option(
        "accept",
        "--skill-accept",
        "switch",
        None,
        "Accept what this run reaches: write skill_results.json, which later runs are held to.",
    ),
    Option("json_file", "--skill-json", "path", "FILE", "Write all results as JSON."),
    Option("csv_file", "--skill-csv", "path", "FILE", "Write a row of CSV for each answer."),
    Option(
        "markdown_file",
        "--skill-markdown",
        "path",
        "FILE",
        "Write a summary in Markdown, for a comment on a pull request.",
    ),
    Option(
        "benchmark_folder",
        "--skill-benchmark",
        "path",
        "DIR",
        "Write the results as skill-creator lays them out, in a new DIR/iteration-N.",
    ),
    Option(
        "history",
        "--skill-no-history",
        "switch",
        None,
        "Do not keep this run for `pytest-upskill runs`.",
    ),
    Option(
        "runs_folder",
        "--skill-runs-dir",
        "path",
        "DIR",
        "Where runs are kept (default .upskill/runs in the rootdir).",
    ),
    Option(
        "html_file",
        "--skill-html",
        "path",
        "FILE",
        "Write a page to look at: plots, verdicts, every case with its answers; one file.",
    ),
    Option(
        "allow_code",
        "--skill-allow-code",
        "switch",
        None,
        'Run the checks ("python": "checks.py:function") that skills have in their own folders.',
    ),
)
# Keys of the ini file that no option has, as they are meant for more than one run: by setting,
# the key, its kind and its help.
INI_KEYS: Final[dict[str, tuple[str, Kind, str]]] = {
    "prices": (
        "skill_prices",
        "names",
        "What models cost, one per line: NAME INPUT OUTPUT [CACHED], in USD per million tokens.",
    ),
    "history_mb": (
        "skill_history_size",
        "int",
        f"MB that kept runs may take (default {DEFAULT_HISTORY_MB}); the oldest are deleted.",
    ),
}
FLAGS: Final = {
    **{option.setting: option.flag for option in OPTIONS},
    **{setting: key for setting, (key, _, _) in INI_KEYS.items()},
}
spell: Final = spelling(FLAGS)


def add_options(group: pytest.OptionGroup, parser: pytest.Parser) -> None:
    for option in OPTIONS:
        option.add_to(group, parser)
    for key, kind, text in INI_KEYS.values():
        parser.addini(key, text, type=INI_TYPES[kind], default=None)


def is_asked_for(config: pytest.Config) -> bool:
    """A model alone is enough: tests in Python name their skills themselves."""
    return any(config.getoption(option.dest) or option.written(config) for option in (SKILL, MODEL))


def message_of(error: UpskillError, config: pytest.Config) -> str:
    """An error with flags for settings, and the ini file if the wrong value is from there."""
    if isinstance(error, SettingsError):
        return error.message(spell, partial(_origin, config))
    return error.message(spell)


def _origin(config: pytest.Config, setting: str) -> str:
    if setting in INI_KEYS:
        return f"{config.inipath or '-o'}: {INI_KEYS[setting][0]}"
    of_ini = (o.ini for o in OPTIONS if o.setting == setting and o.is_of_ini_file(config))
    return next((f"{config.inipath}: {key}" for key in of_ini), "")


def unused_flags(config: pytest.Config) -> list[str]:
    """The options that do nothing, as they were given without a skill."""
    return [option.flag for option in OPTIONS if config.getoption(option.dest) is not None]


def read_settings(config: pytest.Config) -> Settings:
    values: dict[str, Any] = {option.setting: option.value(config) for option in OPTIONS}
    for setting, (key, kind, _) in INI_KEYS.items():
        if given := written(config, key, kind):
            values[setting] = tuple(given) if kind == "names" else given
    of_ini = MODEL.is_of_ini_file(config)
    first_runs, runs = values["runs"]
    values |= {
        "skill_paths": tuple(values["skill_paths"] or ()),
        "models": tuple(dict.fromkeys(values["models"] or ())),
        "models_folder": config.inipath.parent if config.inipath and of_ini else Path(),
        "runs": runs,
        "first_runs": first_runs if first_runs < runs else None,
        "baseline": not values["baseline"],
        "history": not values["history"],
        "gates": Gates(**{gate.name: values.pop(gate.name) for gate in fields(Gates)}),
    }
    settings = Settings(**values)
    _require_sense(settings)
    return settings


def _require_sense(settings: Settings) -> None:
    """Find out before the first call which settings contradict each other."""
    runs, first_runs, gates = settings.runs, settings.first_runs, settings.gates
    if runs > MOST_RUNS:
        raise SettingsError("runs", f"{runs:,} runs (limit {MOST_RUNS:,})", "Use fewer runs.")
    if first_runs and not settings.baseline:
        raise SettingsError(
            "runs",
            "without a baseline there is no verdict that could be open",
            ("Give one number, or drop ", Setting("baseline"), "."),
            value=f"{first_runs}..{runs}",
        )
    if settings.record_file and settings.replay_file:
        raise _contradiction("record_file", "replay_file")
    needs_baseline = {"min_lift": gates.min_lift, "max_token_growth": gates.max_token_growth}
    for setting, limit in needs_baseline.items():
        if limit is not None and not settings.baseline:
            raise _contradiction(setting, "baseline")  # it could only fail, once all is paid for
    if gates.no_worse and not settings.against:
        hint = ("Add ", Setting("against"), " REF.")
        raise SettingsError("no_worse", "there is nothing to compare with", hint)


def _contradiction(setting: str, other: str) -> SettingsError:
    return SettingsError(setting, ("can't be combined with ", Setting(other)), "Drop one of them.")
