"""The options, each with its twin in the ini file, and the settings they make."""

from pathlib import Path
from typing import Final

import pytest

from ..errors import InputError, SettingsError
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
        "runs",
        "N",
        f"Runs of each trial (default {DEFAULT_RUNS}). 3..12: three at first, up to twelve where "
        "the verdict is open.",
        (DEFAULT_RUNS, DEFAULT_RUNS),
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
        "--skill-against",
        "skill_against",
        "text",
        "REF",
        "Ask with the skill as it is at this git ref too, and tell what changed since.",
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
    Option(
        "--skill-judge",
        "skill_judge",
        "text",
        "MODEL",
        "The model that says whether an answer meets the texts of a rubric (`judge`).",
    ),
    Option(
        "--skill-case-threshold",
        "skill_case_threshold",
        "share",
        "R",
        "Share of a case's runs that must pass (default: more than half).",
    ),
    Option(
        "--skill-min-lift",
        "skill_min_lift",
        "lift",
        "R",
        "Fail if a skill's lift is less, in shares of 1: 0.2 is 20 points.",
    ),
    Option(
        "--skill-min-pass-rate",
        "skill_min_pass_rate",
        "share",
        "R",
        "Fail if fewer of the cases pass with the skill, in shares of 1.",
    ),
    Option(
        "--skill-max-token-growth",
        "skill_max_token_growth",
        "number",
        "R",
        "Fail if answers take more tokens with the skill by more than this, in shares of 1.",
    ),
    Option(
        "--skill-no-worse",
        "skill_no_worse",
        "switch",
        None,
        "Fail if a skill is shown to be worse than at the ref of --skill-against.",
    ),
    Option(
        "--skill-confident",
        "skill_confident",
        "switch",
        None,
        "Hold the bound of the interval (95 %%) to these gates, not the estimate.",
    ),
    Option(
        "--skill-accept",
        "skill_accept",
        "switch",
        None,
        "Accept what this run reaches: write skill_results.json, which later runs are held to.",
    ),
    Option("--skill-json", "skill_json", "path", "FILE", "Write all results as JSON."),
    Option("--skill-csv", "skill_csv", "path", "FILE", "Write a row of CSV for each answer."),
    Option(
        "--skill-markdown",
        "skill_markdown",
        "path",
        "FILE",
        "Write a summary in Markdown, for a comment on a pull request.",
    ),
    Option(
        "--skill-benchmark",
        "skill_benchmark",
        "path",
        "DIR",
        "Write the results as skill-creator lays them out, in a new DIR/iteration-N.",
    ),
    Option(
        "--skill-no-history",
        "skill_no_history",
        "switch",
        None,
        "Do not keep this run for `pytest-upskill runs`.",
    ),
    Option(
        "--skill-runs-dir",
        "skill_runs_dir",
        "path",
        "DIR",
        "Where runs are kept (default .upskill/runs in the rootdir).",
    ),
    Option(
        "--skill-html",
        "skill_html",
        "path",
        "FILE",
        "Write a page to look at: plots, verdicts, every case with its answers; one file.",
    ),
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
HISTORY_SIZE_KEY: Final = "skill_history_size"
INI_KEYS: Final[dict[str, tuple[Kind, str]]] = {
    PRICES_KEY: (
        "names",
        "What models cost, one a line: NAME INPUT OUTPUT [CACHED], USD per million tokens.",
    ),
    HISTORY_SIZE_KEY: (
        "int",
        f"MB that kept runs may take (default {DEFAULT_HISTORY_MB}); the oldest are forgotten.",
    ),
}


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
