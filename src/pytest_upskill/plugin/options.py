"""The options, each with its twin in the ini file, and the settings they make."""

from pathlib import Path

import pytest

from ..errors import InputError, SettingsError
from ..settings import (
    DEFAULT_HISTORY_MB,
    MOST_RUNS,
    Gates,
    Settings,
)
from .option import INI_TYPES, written
from .option_table import HISTORY_SIZE_KEY, INI_KEYS, MODEL, OPTIONS, PRICES_KEY, SKILL


def add_options(group: pytest.OptionGroup, parser: pytest.Parser) -> None:
    for option in OPTIONS:
        option.add_to(group, parser)
    for key, (kind, text) in INI_KEYS.items():
        parser.addini(key, text, type=INI_TYPES[kind], default=None)


def is_asked_for(config: pytest.Config) -> bool:
    """A model alone is enough: tests in Python name their skills themselves."""
    return any(config.getoption(option.dest) or option.written(config) for option in (SKILL, MODEL))


def as_written(error: InputError, config: pytest.Config) -> str:
    """An error about an option, told by its ini key if it was written there."""
    flag, _, rest = error.where.partition(" ")
    if flag in INI_KEYS:
        where = f"{config.inipath or '-o'}: {flag}: {rest}"
        return str(InputError(where, error.problem, error.hint))
    for option in OPTIONS:
        if flag == option.flag and option.is_of_ini_file(config):
            where = f"{config.inipath}: {option.ini}: {rest}".rstrip(": ")
            return str(InputError(where, error.problem, error.hint))
    return str(error)


def unused_flags(config: pytest.Config) -> list[str]:
    """The options that were given although no skill was: they do nothing."""
    return [option.flag for option in OPTIONS if config.getoption(option.dest) is not None]


def read_settings(config: pytest.Config) -> Settings:
    value = {option.flag: option.value(config) for option in OPTIONS}
    of_ini = MODEL.is_of_ini_file(config)
    first_runs, runs = value["--skill-runs"]
    if runs > MOST_RUNS:
        raise SettingsError("--skill-runs", f"at most {MOST_RUNS:,} runs can be made", "Ask less.")
    if first_runs < runs and value["--skill-no-baseline"]:
        raise SettingsError(
            f"--skill-runs {first_runs}..{runs}",
            "without a baseline there is no verdict that could be open",
            "Give one number, or drop --skill-no-baseline.",
        )
    if value["--skill-no-worse"] and not value["--skill-against"]:
        raise SettingsError(
            "--skill-no-worse", "worse than what is not said", "Add --skill-against REF."
        )
    return Settings(
        skill_paths=tuple(value["--skill"] or ()),
        models=tuple(dict.fromkeys(value["--model"] or ())),
        models_folder=config.inipath.parent if config.inipath and of_ini else Path(),
        base_url=value["--skill-base-url"] or None,
        runs=runs,
        first_runs=first_runs if first_runs < runs else None,
        tests_file=value["--skill-tests"],
        baseline=not value["--skill-no-baseline"],
        against=value["--skill-against"] or None,
        max_output=value["--skill-max-output"],
        timeout=value["--skill-timeout"],
        concurrency=value["--skill-concurrency"],
        max_tokens=value["--skill-max-tokens"],
        max_cost=value["--skill-max-cost"],
        judge=value["--skill-judge"] or None,
        json_file=value["--skill-json"],
        csv_file=value["--skill-csv"],
        markdown_file=value["--skill-markdown"],
        benchmark_folder=value["--skill-benchmark"],
        html_file=value["--skill-html"],
        fresh=bool(value["--skill-fresh"]),
        record_file=value["--skill-record"],
        replay_file=value["--skill-replay"],
        gates=Gates(
            min_lift=value["--skill-min-lift"],
            min_pass_rate=value["--skill-min-pass-rate"],
            max_token_growth=value["--skill-max-token-growth"],
            confident=bool(value["--skill-confident"]),
            no_worse=bool(value["--skill-no-worse"]),
        ),
        accept=bool(value["--skill-accept"]),
        case_threshold=value["--skill-case-threshold"],
        allow_code=bool(value["--skill-allow-code"]),
        prices=tuple(written(config, PRICES_KEY, "names") or ()),
        history=not value["--skill-no-history"],
        runs_folder=value["--skill-runs-dir"],
        history_mb=written(config, HISTORY_SIZE_KEY, "int") or DEFAULT_HISTORY_MB,
    )
