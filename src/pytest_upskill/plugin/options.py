"""The options, their ini keys, and the settings they make.

An option is one entry here. Its first word names the setting, a field of Settings or of Gates;
errors below the plugin name settings, and ``message_of`` writes the flag or the ini key.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from ..errors import Setting, SettingsError, UpskillError, spelling
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
    MOST_RUNS,
    Gates,
    Settings,
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
    SWITCH,
    TEXT,
    TRIGGERS,
    WHOLE,
    Kind,
    Option,
    ini_value,
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
ALLOW_CODE: Final = Option(
    "allow_code",
    "--skill-allow-code",
    SWITCH,
    None,
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
    Option(
        "cluster_send_keys",
        "--skill-cluster-send-keys",
        SWITCH,
        None,
        "Send the keys of the models to the workers of the cluster, for this run.",
    ),
    Option(
        "allow_network",
        "--skill-allow-network",
        SWITCH,
        None,
        "Let cases use the network that say they need it.",
    ),
    Option(
        "baseline", "--skill-no-baseline", SWITCH, None, "Ask only with the skill, not without it."
    ),
    Option(
        "references",
        "--skill-references",
        SWITCH,
        None,
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
    Option(
        "prompt_cache",
        "--skill-no-prompt-cache",
        SWITCH,
        None,
        "Don't use the prompt caches of Anthropic and OpenAI, which make the text of a skill "
        "cheaper from its second use on; it changes nothing that a model reads.",
    ),
    Option(
        "matrix",
        "--skill-matrix",
        SWITCH,
        None,
        "After the tests, measure what the skills do to each other: every pair of them, and all "
        "together, by the agents of the run.",
    ),
    Option(
        "ablate",
        "--skill-ablate",
        SWITCH,
        None,
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
    Option(
        "batch_fallback",
        "--skill-batch-fallback",
        SWITCH,
        None,
        "Ask in the ordinary way what failed or expired in a batch.",
    ),
    Option("fresh", "--skill-fresh", SWITCH, None, "Ignore cached answers and replace them."),
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
    Option(
        "no_worse",
        "--skill-no-worse",
        SWITCH,
        None,
        "Fail if a skill got worse since the ref of --skill-against.",
    ),
    Option(
        "confident",
        "--skill-confident",
        SWITCH,
        None,
        "Apply these gates to the bound of the 95 %% interval instead of the estimate.",
    ),
    Option(
        "accept",
        "--skill-accept",
        SWITCH,
        None,
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
    Option(
        "history",
        "--skill-no-history",
        SWITCH,
        None,
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
FLAGS: Final = {
    **{option.setting: option.flag for option in OPTIONS},
    **{setting: key for setting, (key, _, _) in INI_KEYS.items()},
}
spell: Final = spelling(FLAGS)


def add_options(group: pytest.OptionGroup, parser: pytest.Parser) -> None:
    for option in OPTIONS:
        option.add_to(group, parser)
    for key, kind, text in INI_KEYS.values():
        parser.addini(key, text, type=kind.ini_type, default=None)


def message_of(error: UpskillError, config: pytest.Config) -> str:
    """An error with flags for settings, and the ini file if the wrong value is from there."""
    from .._util.keys import without_keys  # every pytest run imports this module
    from .._util.texts import harmless

    if isinstance(error, SettingsError):
        return harmless(without_keys(error.message(spell, partial(_origin, config))))
    return harmless(without_keys(error.message(spell)))


def _origin(config: pytest.Config, setting: str) -> str:
    if setting in INI_KEYS:
        return f"{config.inipath or '-o'}: {INI_KEYS[setting][0]}"
    of_ini = (o.ini for o in OPTIONS if o.setting == setting and o.is_of_ini_file(config))
    return next((f"{config.inipath}: {key}" for key in of_ini), "")


def gates_given(config: pytest.Config) -> list[str]:
    """The gates of the command line."""
    gates = {field.name for field in fields(Gates)} - {"confident"}
    return [one.flag for one in OPTIONS if one.setting in gates and one.is_given(config)]


def flags_of_agents(config: pytest.Config, settings: Settings) -> list[str]:
    """The options of the command line that only agents use.

    A model that chooses a skill, for triggers, chooses among other skills, too.
    """
    unused = {"sandbox", "image", "max_turns", "agents_at_once", "cluster", "cluster_send_keys"}
    unused |= {"allow_network", "transcripts_folder"}
    if not settings.asks_triggers("chat"):
        unused |= {"with_skills", "noise", "trigger_runs"}
    return [one.flag for one in OPTIONS if one.setting in unused and one.is_given(config)]


def unused_flags(config: pytest.Config) -> list[str]:
    """The options that do nothing, as they were given without a skill."""
    return [option.flag for option in OPTIONS if config.getoption(option.dest) is not None]


def read_settings(config: pytest.Config) -> Settings:
    values: dict[str, Any] = {option.setting: option.value(config) for option in OPTIONS}
    for setting, (key, kind, _) in INI_KEYS.items():
        if given := ini_value(config, key, kind):
            values[setting] = tuple(given) if kind == NAMES else given
    of_ini = MODEL.is_of_ini_file(config)
    first_runs, runs = values["runs"]
    values |= {
        "skill_paths": tuple(values["skill_paths"] or ()),
        "models": tuple(dict.fromkeys(values["models"] or ())),
        "agents": tuple(dict.fromkeys(values["agents"] or Settings.agents)),
        "with_skills": tuple(values["with_skills"] or ()),
        "models_folder": config.inipath.parent if config.inipath and of_ini else Path(),
        "runs": runs,
        "first_runs": first_runs if first_runs < runs else None,
        "baseline": not values["baseline"],
        "history": not values["history"],
        "prompt_cache": not values["prompt_cache"],
        "gates": Gates(**{gate.name: values.pop(gate.name) for gate in fields(Gates)}),
    }
    settings = _without_idle_gates(Settings(**values), config)
    _require_sense(settings)
    return settings


def _without_idle_gates(settings: Settings, config: pytest.Config) -> Settings:
    """Gates of the ini file don't apply to what the command line leaves out."""
    idle = {"only": _GATES_OF_CASES, "off": _GATES_OF_TRIGGERS}.get(settings.triggers or "", {})
    for one in OPTIONS:
        if one.setting in idle and one.is_given(config):
            raise _contradiction(one.setting, "triggers")  # it could only fail, once all is paid
    return replace(settings, gates=replace(settings.gates, **idle))


_GATES_OF_TRIGGERS: Final[Mapping[str, Any]] = {"min_recall": None, "max_false_alarms": None}
_GATES_OF_CASES: Final[Mapping[str, Any]] = {
    "min_lift": None,
    "min_pass_rate": None,
    "max_token_growth": None,
    "no_worse": False,
}


def _require_sense(settings: Settings) -> None:
    """Find out before the first call which settings contradict each other."""
    runs, first_runs, gates = settings.runs, settings.first_runs, settings.gates
    if runs > MOST_RUNS:
        raise SettingsError("runs", f"{runs:,} runs (limit {MOST_RUNS:,})", "Use fewer runs.")
    if settings.trigger_runs > MOST_RUNS:
        problem = f"{settings.trigger_runs:,} runs (limit {MOST_RUNS:,})"
        raise SettingsError("trigger_runs", problem, "Use fewer runs.")
    if settings.noise:
        _require_noise(settings.noise)
    if first_runs and not settings.baseline:
        raise SettingsError(
            "runs",
            "needs a baseline: more runs are added depending on the lift",
            ("Give one number, or drop ", Setting("baseline"), "."),
            value=f"{first_runs}..{runs}",
        )
    if settings.cluster_send_keys and not settings.cluster:
        hint = ("Add ", Setting("cluster"), " ADDRESS.")
        raise SettingsError("cluster_send_keys", "there is no cluster to send keys to", hint)
    if settings.record_file and settings.replay_file:
        raise _contradiction("record_file", "replay_file")
    _require_batch_sense(settings)
    needs_baseline = {"min_lift": gates.min_lift, "max_token_growth": gates.max_token_growth}
    for setting, limit in needs_baseline.items():
        if limit is not None and not settings.baseline:
            raise _contradiction(setting, "baseline")  # it could only fail, once all is paid for
    if gates.no_worse and not settings.against:
        hint = ("Add ", Setting("against"), " REF.")
        raise SettingsError("no_worse", "there is nothing to compare with", hint)


def _require_batch_sense(settings: Settings) -> None:
    if settings.batch is None:
        if settings.batch_fallback:
            hint = ("Add ", Setting("batch"), ".")
            raise SettingsError("batch_fallback", "there is no batch to fall back from", hint)
        return
    if settings.replay_file:
        raise _contradiction("batch", "replay_file")
    if settings.batch == "wait":
        return
    # Each of these asks for more depending on answers, while tests run, or asks all again.
    given = {
        "runs": settings.first_runs is not None,
        "fresh": settings.fresh,
        "matrix": settings.matrix,
        "ablate": settings.ablate,
    }
    for setting, is_given in given.items():
        if is_given:
            problem = ("can't be combined with ", Setting("batch"), "=submit")
            value = f"{settings.first_runs}..{settings.runs}" if setting == "runs" else ""
            hint = ("Wait for the batch: ", Setting("batch"), ".")
            raise SettingsError(setting, problem, hint, value=value)


def _require_noise(wanted: int) -> None:
    from ..skills.noise import noise_skills

    if wanted > (most := len(noise_skills())):
        problem = f"only {most} unrelated skills come with pytest-upskill"
        raise SettingsError("noise", problem, "Ask for fewer.", value=str(wanted))


def _contradiction(setting: str, other: str) -> SettingsError:
    return SettingsError(setting, ("can't be combined with ", Setting(other)), "Drop one of them.")
