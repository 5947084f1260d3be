"""The options and ini keys of the plugin, and which of them are given.

An option is one entry here. Its first word names the setting, a field of Settings or of Gates.
Every pytest run imports this module.
"""

from dataclasses import fields
from typing import Final

import pytest

from ..settings import (
    DEFAULT_AGENT_OUTPUT,
    DEFAULT_AGENT_TIMEOUT,
    DEFAULT_CONCURRENCY,
    DEFAULT_HISTORY_MB,
    DEFAULT_MAX_OUTPUT,
    DEFAULT_MAX_TURNS,
    DEFAULT_RUNS,
    DEFAULT_TIMEOUT,
    DEFAULT_TRIGGER_RUNS,
    MOST_REFERENCE_TOKENS,
    Gates,
)
from .option import (
    BATCH,
    COUNT,
    LIFT,
    NAMES,
    NUMBER,
    PATH,
    PATHS,
    POSITIVE,
    RATE,
    RUNS,
    SANDBOX,
    SCORE,
    SHARE,
    TEXT,
    TRIGGERS,
    WHOLE,
    Kind,
    Option,
    switch,
)

SKILL: Final = Option(
    "skill_paths",
    "--skill",
    PATHS,
    "PATH",
    "A skill's folder, its SKILL.md, or a folder of skills (repeatable). Without other paths, "
    "only these are collected.",
    ini="skill_paths",
)
MODEL: Final = Option(
    "models",
    "--model",
    NAMES,
    "NAME",
    "A model to ask (repeatable): haiku, sonnet, opus, anthropic:ID, openai:ID, gemini:ID, "
    "hf:ORG/NAME, ollama:NAME, openrouter:ID, local, local:FILE.gguf, or any name known to the "
    "server at --skill-base-url (default local).",
    ini="skill_models",
)
AGENT: Final = Option(
    "agents",
    "--skill-agent",
    NAMES,
    "NAME",
    "Who carries out the cases (repeatable): chat, one completion with the skill's text in "
    "context; loop, an agent with tools in a sandbox; or a real agent: claude, codex, opencode and "
    "others; claude@2.1.325 is just this version (default chat).",
    ini="skill_agents",
)
TESTS: Final = Option("tests_file", "--skill-tests", PATH, "FILE", "Use the cases of another file.")
ALLOW_CODE: Final = switch(
    "allow_code",
    "--skill-allow-code",
    'Run Python of a skill: checks ("python": "checks.py:function"), tests and conftest files in '
    "its folder, and the packages that its scripts need. Also let agents read folders outside of "
    "/opt and /usr that a skill names.",
)
OPTIONS: Final = (
    SKILL,
    MODEL,
    Option(
        "base_url",
        "--skill-base-url",
        TEXT,
        "URL",
        "An OpenAI-compatible server (llama-server, vLLM, Ollama, LM Studio); for agents one that "
        "speaks their protocol.",
    ),
    Option(
        "runs",
        "--skill-runs",
        RUNS,
        "N",
        f"Ask every question N times (default {DEFAULT_RUNS}); a case passes if more than half of "
        "its runs do. 3..12 starts with 3 runs and adds more, up to 12, while the verdict is open.",
        (DEFAULT_RUNS, DEFAULT_RUNS),
    ),
    TESTS,
    AGENT,
    Option(
        "sandbox",
        "--skill-sandbox",
        SANDBOX,
        "NAME",
        "Where agents run: bwrap, docker, podman, none (no protection at all), or auto, the first "
        "of these but none that works (default auto).",
        "auto",
    ),
    Option(
        "image",
        "--skill-image",
        TEXT,
        "IMAGE",
        "The container image that agents run in, with docker or podman; pulled if it is not there "
        "(default python:3.13-slim).",
    ),
    Option(
        "with_skills",
        "--skill-with",
        PATHS,
        "PATH",
        "Other skills that agents have in both arms (repeatable): a skill's folder, or a folder "
        "of skills.",
    ),
    Option(
        "noise",
        "--skill-noise",
        COUNT,
        "N",
        "Also N unrelated skills that come with pytest-upskill, in both arms: does the "
        "description stand out among many? (default 0).",
        0,
    ),
    Option(
        "triggers",
        "--skill-triggers",
        TRIGGERS,
        "only|also|off",
        "Whether to ask the queries of evals/triggers.json, and see if the skill is opened: only "
        "these, also these, or none (default: also for agents, off for chat).",
    ),
    Option(
        "trigger_runs",
        "--skill-trigger-runs",
        WHOLE,
        "N",
        f"Ask every query of triggers N times (default {DEFAULT_TRIGGER_RUNS}).",
        DEFAULT_TRIGGER_RUNS,
    ),
    Option(
        "max_turns",
        "--skill-max-turns",
        WHOLE,
        "N",
        f"Maximum replies of the model in a trial of an agent (default {DEFAULT_MAX_TURNS}).",
        DEFAULT_MAX_TURNS,
    ),
    Option(
        "agents_at_once",
        "--skill-agents-at-once",
        WHOLE,
        "N",
        "Maximum trials of agents that run at once (default: two per core). Never more than "
        "there is memory for.",
    ),
    Option(
        "cluster",
        "--skill-cluster",
        TEXT,
        "ADDRESS",
        "Run trials of agents on a Dask cluster: tcp://HOST:8786, tls://HOST:8786, or local:N for "
        "N worker processes here. Workers use their own keys.",
    ),
    switch(
        "cluster_send_keys",
        "--skill-cluster-send-keys",
        "Send the keys of the models to the workers of the cluster, for this run.",
    ),
    switch(
        "allow_network",
        "--skill-allow-network",
        "Let cases use the network that say they need it.",
    ),
    switch("baseline", "--skill-no-baseline", "Ask only with the skill, not without it."),
    switch(
        "references",
        "--skill-references",
        "Also put the text files that SKILL.md refers to in context, up to about "
        f"{MOST_REFERENCE_TOKENS:,} tokens.",
    ),
    Option(
        "against",
        "--skill-against",
        TEXT,
        "REF",
        "Also ask with the skill as of this git ref, and compare.",
    ),
    Option(
        "max_output",
        "--skill-max-output",
        WHOLE,
        "N",
        f"Maximum output tokens per answer (default {DEFAULT_MAX_OUTPUT}; per turn of an agent, "
        f"{DEFAULT_AGENT_OUTPUT}).",
    ),
    Option(
        "timeout",
        "--skill-timeout",
        POSITIVE,
        "S",
        f"Maximum seconds per answer (default {DEFAULT_TIMEOUT:g}; for all that an agent does in "
        f"a trial, {DEFAULT_AGENT_TIMEOUT:g}).",
    ),
    Option(
        "concurrency",
        "--skill-concurrency",
        WHOLE,
        "N",
        "Maximum calls in flight, over all xdist workers; lowered while a server is busy (default "
        f"{DEFAULT_CONCURRENCY}).",
        DEFAULT_CONCURRENCY,
    ),
    Option(
        "max_tokens",
        "--skill-max-tokens",
        WHOLE,
        "N",
        "Token budget of the run; calls that could exceed it are not made.",
    ),
    Option(
        "max_cost",
        "--skill-max-cost",
        POSITIVE,
        "USD",
        "Budget of the run in USD; needs the prices of all models.",
    ),
    switch(
        "prompt_cache",
        "--skill-no-prompt-cache",
        "Don't use the prompt caches of Anthropic and OpenAI, which make the text of a skill "
        "cheaper from its second use on; it changes nothing that a model reads.",
    ),
    switch(
        "matrix",
        "--skill-matrix",
        "After the tests, measure what the skills do to each other: every pair of them, and all "
        "together, by the agents of the run.",
    ),
    switch(
        "ablate",
        "--skill-ablate",
        "After the tests, measure what each part of the skills is good for: every section and "
        "file left out in turn.",
    ),
    Option(
        "batch",
        "--skill-batch",
        BATCH,
        "wait|submit",
        "Ask models of anthropic and openai through their batch APIs, at half the price: wait for "
        "the answers, which may take hours, or with --skill-batch=submit end with exit status 75 "
        "while there are none; the same command then collects them.",
    ),
    switch(
        "batch_fallback",
        "--skill-batch-fallback",
        "Ask in the ordinary way what failed or expired in a batch.",
    ),
    switch("fresh", "--skill-fresh", "Ignore cached answers and replace them."),
    Option(
        "record_file",
        "--skill-record",
        PATH,
        "FILE",
        "Write the answers of this run to a file, for --skill-replay.",
    ),
    Option(
        "replay_file",
        "--skill-replay",
        PATH,
        "FILE",
        "Answer only from a recorded file: no key, no network.",
    ),
    Option("judge", "--skill-judge", TEXT, "MODEL", "The model that grades rubrics."),
    Option(
        "score",
        "--skill-score",
        SCORE,
        "pass|checks",
        "What lift and verdict are of: the pass rate of cases, or the share of checks passed "
        "(default: checks for evals.json, else pass).",
    ),
    Option(
        "case_threshold",
        "--skill-case-threshold",
        SHARE,
        "R",
        "Share of a case's runs that must pass (default: more than half).",
    ),
    Option(
        "min_lift",
        "--skill-min-lift",
        LIFT,
        "R",
        "Fail if the lift of a skill is lower: 0.2 is 20 points.",
    ),
    Option(
        "min_pass_rate",
        "--skill-min-pass-rate",
        SHARE,
        "R",
        "Fail if the mean pass rate with the skill is lower: 0.9 is 90 %%. Failed cases fail the "
        "run anyway, unless accepted.",
    ),
    Option(
        "max_token_growth",
        "--skill-max-token-growth",
        NUMBER,
        "R",
        "Fail if tokens per answer grow by more with the skill: 0.5 is half as many again.",
    ),
    Option(
        "min_recall",
        "--skill-min-recall",
        RATE,
        "R",
        "Fail if the skill is opened less often for queries that need it: 0.8 is 80 %% of runs.",
    ),
    Option(
        "max_false_alarms",
        "--skill-max-false-alarms",
        RATE,
        "R",
        "Fail if the skill is opened more often for queries that don't need it.",
    ),
    switch(
        "no_worse",
        "--skill-no-worse",
        "Fail if a skill got worse since the ref of --skill-against.",
    ),
    switch(
        "confident",
        "--skill-confident",
        "Apply these gates to the bound of the 95 %% interval instead of the estimate.",
    ),
    switch(
        "accept",
        "--skill-accept",
        "Accept the results of this run: write skill_results.json, the baseline for later runs.",
    ),
    Option("json_file", "--skill-json", PATH, "FILE", "Write all results as JSON."),
    Option(
        "html_file",
        "--skill-html",
        PATH,
        "FILE",
        "Write an HTML page with plots, verdicts and every answer.",
    ),
    Option("csv_file", "--skill-csv", PATH, "FILE", "Write a CSV row per answer."),
    Option(
        "markdown_file",
        "--skill-markdown",
        PATH,
        "FILE",
        "Write a Markdown summary, for a comment on a pull request.",
    ),
    Option(
        "benchmark_folder",
        "--skill-benchmark",
        PATH,
        "DIR",
        "Write the results in skill-creator's layout, to a new DIR/iteration-N.",
    ),
    Option(
        "transcripts_folder",
        "--skill-transcripts",
        PATH,
        "DIR",
        "Write the transcript of each trial of an agent to a file in this folder, as JSON lines.",
    ),
    switch(
        "history",
        "--skill-no-history",
        "Don't keep this run in the history (`pytest-upskill runs`).",
    ),
    Option(
        "runs_folder",
        "--skill-runs-dir",
        PATH,
        "DIR",
        "Where to keep runs (default .upskill/runs in the rootdir).",
    ),
    ALLOW_CODE,
)
# Keys of the ini file that no option has, as they are meant for more than one run: by setting,
# the key, its kind and its help.
INI_KEYS: Final[dict[str, tuple[str, Kind, str]]] = {
    "prices": (
        "skill_prices",
        NAMES,
        "Prices of models, one per line: NAME INPUT OUTPUT [CACHED [WRITTEN]], in USD per million "
        "tokens.",
    ),
    "history_mb": (
        "skill_history_size",
        WHOLE,
        f"Maximum size of the history in MB (default {DEFAULT_HISTORY_MB}); the oldest runs are "
        "deleted first.",
    ),
}


def add_options(group: pytest.OptionGroup, parser: pytest.Parser) -> None:
    for option in OPTIONS:
        option.add_to(group, parser)
    for key, kind, text in INI_KEYS.values():
        parser.addini(key, text, type=kind.ini_type, default=None)


def gates_given(config: pytest.Config) -> list[str]:
    """The gates of the command line."""
    gates = {field.name for field in fields(Gates)} - {"confident"}
    return [one.flag for one in OPTIONS if one.setting in gates and one.is_given(config)]


def unused_flags(config: pytest.Config) -> list[str]:
    """The options that do nothing, as they were given without a skill."""
    return [option.flag for option in OPTIONS if option.is_given(config)]
