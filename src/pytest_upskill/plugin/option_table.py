"""The options and the keys of the ini file, as tables."""

from typing import Final

from ..settings import (
    DEFAULT_CONCURRENCY,
    DEFAULT_HISTORY_MB,
    DEFAULT_MAX_OUTPUT,
    DEFAULT_RUNS,
    DEFAULT_TIMEOUT,
)
from .option import Kind, Option

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
