"""The settings of a run: frozen, and independent of where they were written.

A setting is one field. ``setting`` says how pytest and the commands take it: see
``options``. Every pytest run imports this module.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

from .options import (
    AGE,
    DAY,
    NAMES,
    OFF_SWITCH,
    PATH,
    PATHS,
    POSITIVE,
    RATE,
    SHARE,
    SWITCH,
    TEXT,
    at,
    choice,
    lift,
    number,
    setting,
    whole,
)
from .registry import take

MOST_RUNS: Final = 1000  # a file of cases from anywhere must not fill the memory
MOST_TURNS: Final = 1000
DEFAULT_MAX_OUTPUT: Final = 2048
DEFAULT_AGENT_OUTPUT: Final = 8192  # a turn may have to write a whole file
DEFAULT_TIMEOUT: Final = 120.0
DEFAULT_CONCURRENCY: Final = 64
DEFAULT_AGENT_TIMEOUT: Final = 600.0
DEFAULT_MAX_TURNS: Final = 30
DEFAULT_TRIGGER_RUNS: Final = 3
ACCEPTED_RUNS: Final = 3  # by default: fewer are no evidence about a single case
ENOUGH_QUERIES: Final = 10  # of a kind: with fewer, even a perfect result shows little
TRIGGER_TURNS: Final = 5  # of an agent, until a query counts as decided
MOST_REFERENCE_TOKENS: Final = 20_000  # estimated, of all files together
INI_FILES: Final = (  # where pytest looks for its settings, in its order
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg"),
)

# The base of a lift: pass rates, or shares of checks passed
Score = Literal["pass", "checks"]

_TAUGHT: Final = "generate refine cases"  # commands that measure skills by cases
_AS_UPSKILL: Final = "eval benchmark"  # commands that run pytest
_ALLOW_CODE: Final = (
    "let agents have the packages, images, folders and limits that cases ask for"
)
TAKEN_BY_STUDIES: Final = (  # what all studies take
    take("sandbox", "--sandbox"),
    take("allow_code", "--allow-code", help=_ALLOW_CODE),
    take("max_cost", "--max-cost"),
    take("base_url", "--base-url"),
    take("login", "--login"),
    take("json_file", "--json", help="write the results as JSON, without answers"),
    take("html_file", "--html", help="write an HTML page with plots and verdicts"),
    take("markdown_file", "--markdown"),
)


@dataclass(frozen=True, kw_only=True)
class CommonSettings:
    """Settings of runs, of studies and of the commands that teach."""

    judge: str | None = setting(  # a model, or an agent on one
        TEXT,
        "grading",
        "the model that grades rubrics; claude/haiku is an agent on one",
        "--skill-judge",
        at(f"{_TAUGHT} lint", "--judge"),
        metavar="MODEL",
    )
    agents: tuple[str, ...] = setting(
        NAMES,
        "agents",
        "who carries out the cases: chat, one completion with the skill's text in"
        " context; loop, an agent with tools in a sandbox; or a real agent: claude,"
        " codex, opencode and others; claude@2.1.325 is just this version",
        "--skill-agent",
        at(f"{_TAUGHT} describe", "--eval-agent"),
        at(_AS_UPSKILL, "--skill-agent"),
        ini="skill_agents",
        default=("chat",),
    )
    sandbox: str = setting(
        choice("auto", "bwrap", "docker", "podman", "none"),
        "agents",
        "where agents run: bwrap, docker, podman, none (no protection at all), or auto,"
        " the first of bwrap, docker and podman that works",
        "--skill-sandbox",
        at(f"{_TAUGHT} describe", "--sandbox"),
        metavar="NAME",
        default="auto",
    )
    allow_code: bool = setting(
        SWITCH,
        "skills and cases",
        'run Python of a skill: checks ("python": "checks.py:function"), tests and'
        " conftest files in its folder, conftest files on the way to it, and the"
        " packages that its scripts need. Also let cases build images, agents read"
        " folders outside of /opt and /usr that a skill names, and trials have more"
        " memory, files and time than usual",
        "--skill-allow-code",
        at(f"{_TAUGHT} describe", "--allow-code", help=_ALLOW_CODE),
    )
    max_turns: int = setting(
        whole(1, MOST_TURNS),
        "agents",
        "maximum replies of the model in a trial of an agent",
        "--skill-max-turns",
        at(_TAUGHT, "--max-turns"),
        default=DEFAULT_MAX_TURNS,
    )
    with_skills: tuple[Path, ...] = setting(
        PATHS,
        "agents",
        "other skills that agents have in all arms: a skill's folder, or a folder of"
        " skills",
        "--skill-with",
        at("describe", "--with"),
    )
    noise: int = setting(
        whole(0),
        "agents",
        "also install N unrelated skills that come with pytest-upskill, in all arms, to"
        " see if the description stands out",
        "--skill-noise",
        at("describe", "--noise"),
        default=0,
    )
    max_output: int | None = setting(
        whole(1),
        "models",
        "maximum output tokens per answer, or per turn of an agent",
        "--skill-max-output",
        at(_TAUGHT, "--max-output"),
        default_text=(
            f"{DEFAULT_MAX_OUTPUT}; agents {DEFAULT_AGENT_OUTPUT}; local has its own"
        ),
    )
    max_cost: float | None = setting(
        POSITIVE,
        "budget",
        "budget in USD: calls that could exceed it are not made; needs the prices of"
        " all models",
        "--skill-max-cost",
        at(f"{_TAUGHT} triggers describe", "--max-cost"),
        metavar="USD",
    )
    fresh: bool = setting(
        SWITCH,
        "answers",
        "ignore cached answers and replace them",
        "--skill-fresh",
        at(f"{_TAUGHT} triggers describe", "--fresh"),
    )


@dataclass(frozen=True, kw_only=True)
class Gates:
    """What a run must reach to pass; rates and growth are shares of 1,
    None is no limit.
    """

    min_lift: float | None = setting(
        lift(),
        "gates",
        "fail if the lift of a skill is lower: 20 points, or 0.2",
        "--skill-min-lift",
        at("report", "--min-lift"),
    )
    min_pass_rate: float | None = setting(
        SHARE,
        "gates",
        "fail if the mean pass rate with the skill is lower: 0.9 is 90 %. Failed cases"
        " fail the run anyway, unless accepted",
        "--skill-min-pass-rate",
        at("report", "--min-pass-rate"),
    )
    max_token_growth: float | None = setting(
        number("a number"),
        "gates",
        "fail if tokens per answer grow by more with the skill: 0.5 is half as many"
        " again",
        "--skill-max-token-growth",
        at("report", "--max-token-growth"),
    )
    confident: bool = setting(
        SWITCH,
        "gates",
        "apply these gates to the bound of the 95 % interval instead of the estimate",
        "--skill-confident",
        at("report", "--confident"),
    )
    no_worse: bool = setting(
        SWITCH,
        "gates",
        "fail if a skill got worse since the ref of --skill-against",
        "--skill-no-worse",
    )
    min_recall: float | None = setting(
        RATE,
        "gates",
        "fail if the skill is opened less often for queries that need it: 0.8 is 80 %"
        " of runs",
        "--skill-min-recall",
        at("report", "--min-recall"),
    )
    max_false_alarms: float | None = setting(
        RATE,
        "gates",
        "fail if the skill is opened more often for queries that don't need it",
        "--skill-max-false-alarms",
        at("report", "--max-false-alarms"),
    )

    @property
    def of_cases(self) -> bool:
        numbers = (self.min_lift, self.min_pass_rate, self.max_token_growth)
        return self.no_worse or numbers != (None, None, None)

    @property
    def of_triggers(self) -> bool:
        return (self.min_recall, self.max_false_alarms) != (None, None)

    def any(self) -> bool:
        return self.of_cases or self.of_triggers


@dataclass(frozen=True, kw_only=True)
class Settings(CommonSettings):
    """All settings of a run, with their defaults."""

    skill_paths: tuple[Path, ...] = setting(
        PATHS,
        "skills and cases",
        "a skill, by its folder, its SKILL.md or its name, or a folder of skills."
        " Without other paths, only these are collected",
        "--skill",
        ini="skill_paths",
    )
    bundle: bool = setting(
        SWITCH,
        "skills and cases",
        "test every folder of skills that --skill names as one: all of its skills are"
        " there, or none. A plugin with cases of its own needs no such setting",
        ini="skill_bundle",
        default=False,
        default_text="false",
    )
    tests_file: Path | None = setting(
        PATH,
        "skills and cases",
        "use the cases of another file",
        "--skill-tests",
        at(_AS_UPSKILL, "-t --tests"),
    )
    baseline: bool = setting(
        OFF_SWITCH,
        "skills and cases",
        "ask only with the skill, not without it",
        "--skill-no-baseline",
        at(_AS_UPSKILL, "--no-baseline"),
    )
    aa: bool = setting(
        SWITCH,
        "skills and cases",
        "ask with the skill and with the same skill again, in place of the baseline,"
        " and say how often such a run would show an effect by chance",
        "--skill-aa",
    )
    references: bool = setting(
        SWITCH,
        "skills and cases",
        "also put the text files that SKILL.md refers to in context, up to about "
        f"{MOST_REFERENCE_TOKENS:,} tokens",
        "--skill-references",
    )
    against: str | None = setting(  # a git ref
        TEXT,
        "skills and cases",
        "also ask with the skill as of this git ref, and compare",
        "--skill-against",
        metavar="REF",
    )
    models: tuple[str, ...] = setting(
        NAMES,
        "models",
        "a model to ask: haiku, sonnet, opus, anthropic:ID, openai:ID, gemini:ID,"
        " hf:ORG/NAME, ollama:NAME, openrouter:ID, local, local:FILE.gguf, or any name"
        " that the server at the base URL knows",
        "--model",
        at("eval", "-m --model"),
        at("benchmark", "-m --model", required=True, default_text=""),
        ini="skill_models",
        default_text="local",
    )
    models_folder: Path = Path()  # files in model names are relative to it
    # The upskill.config.yaml that named the models, if it did
    models_file: Path | None = None
    # Of models with an output limit of their own
    model_outputs: tuple[tuple[str, int], ...] = ()
    base_url: str | None = setting(  # the server for model names that no provider knows
        TEXT,
        "models",
        "an OpenAI-compatible server (llama-server, vLLM, Ollama, LM Studio); for"
        " agents one that speaks their protocol",
        "--skill-base-url",
        at(_AS_UPSKILL, "--base-url"),
        metavar="URL",
    )
    prices: tuple[str, ...] = setting(
        NAMES,
        "models",
        "prices of models, one per line: NAME INPUT OUTPUT [CACHED [WRITTEN]], in USD"
        " per million tokens",
        ini="skill_prices",
    )

    login: bool = setting(
        SWITCH,
        "agents",
        "ask models of claude and codex on your own login to them (claude setup-token,"
        " codex login) in place of a key",
        "--skill-login",
        at(_AS_UPSKILL, "--skill-login"),
    )
    logins: tuple[str, ...] = ()  # labels of the subjects that are asked on a login
    judge_agent: str = ""  # the agent that the judge is, if it is one
    image: str | None = setting(
        TEXT,
        "agents",
        "the container image that agents run in, with docker or podman; pulled if it is"
        " not there",
        "--skill-image",
        metavar="IMAGE",
        default_text="python:3.13-slim",
    )
    user_model: str | None = setting(
        TEXT,
        "agents",
        "the model that plays the user of cases with facts, and answers agents"
        " that ask",
        ini="skill_user_model",
        default_text="the judge",
    )
    agents_at_once: int | None = setting(
        whole(1),
        "agents",
        "maximum trials of agents that run at once. On this machine, never more than"
        " there is memory for",
        ini="skill_agents_at_once",
        default_text="two per core",
    )
    cluster: str | None = setting(
        TEXT,
        "agents",
        "run trials of agents on a Dask cluster: tls://HOST:8786, or local:N for N"
        " worker processes here. Workers use their own keys",
        "--skill-cluster",
        metavar="ADDRESS",
    )
    cluster_send_keys: bool = setting(
        SWITCH,
        "agents",
        "send the keys of the models to the workers of the cluster, for their trials",
        ini="skill_cluster_keys",
    )
    allow_network: bool = setting(
        SWITCH,
        "agents",
        "allow the network for verifiers, and for cases that say they need it",
        "--skill-allow-network",
    )

    runs: int = setting(
        whole(1, MOST_RUNS),
        "runs and attempts",
        "ask every question N times; a case passes if more than half of its runs do",
        "--skill-runs",
        at("eval", "--runs", config="runs"),
        at("benchmark", "--runs", default=3, config="runs"),
        default=1,
    )
    trigger_runs: int = setting(
        whole(1, MOST_RUNS),
        "runs and attempts",
        "ask every query of triggers N times",
        ini="skill_trigger_runs",
        default=DEFAULT_TRIGGER_RUNS,
    )
    case_threshold: float | None = setting(
        SHARE,
        "grading",
        "share of a case's runs that must pass",
        ini="skill_case_threshold",
        default_text="more than half",
    )
    score: Score | None = setting(
        choice("pass", "checks"),
        "grading",
        "the base of lift and verdict: the pass rate of cases, or the share of checks"
        " passed",
        "--skill-score",
        default_text="checks for evals.json and tasks, else pass",
    )

    timeout: float | None = setting(
        POSITIVE,
        "models",
        "maximum seconds per answer, or for all that an agent does in a trial",
        "--skill-timeout",
        metavar="S",
        default_text=(
            f"{DEFAULT_TIMEOUT:g}; agents {DEFAULT_AGENT_TIMEOUT:g}; local has its own"
        ),
    )
    concurrency: int | None = setting(
        whole(1),
        "models",
        "maximum calls in flight, over all xdist workers; lowered while a server is"
        " busy",
        "--skill-concurrency",
        at(_AS_UPSKILL, "--max-parallel", config="max_parallel"),
        default_text=str(DEFAULT_CONCURRENCY),
    )
    max_tokens: int | None = setting(
        whole(1),
        "budget",
        "token budget of the run; calls that could exceed it are not made",
        "--skill-max-tokens",
    )

    prompt_cache: bool = setting(
        SWITCH,
        "answers",
        "use the prompt caches of Anthropic and OpenAI, which make the text of a skill"
        " cheaper from its second use on; it changes nothing that a model reads",
        ini="skill_prompt_cache",
        default=True,
        default_text="true",
    )
    max_age: float = setting(  # seconds
        AGE,
        "answers",
        "how far apart the answers of two arms may be: what is older is asked again"
        " before it is compared. 12h, 1d, 2w; forever is for models that never change,"
        " such as local files",
        ini="skill_max_age",
        default=DAY,
        default_text="1d",
    )
    record_file: Path | None = setting(
        PATH,
        "answers",
        "write the answers of this run to a file, for --skill-replay",
        "--skill-record",
    )
    replay_file: Path | None = setting(
        PATH,
        "answers",
        "answer only from a recorded file: no key, no network",
        "--skill-replay",
    )

    gates: Gates = Gates()
    accept: bool = setting(
        SWITCH,
        "gates",
        "accept the results of this run: write skill_results.json, the baseline for"
        f" later runs; asks {ACCEPTED_RUNS} times unless --skill-runs says otherwise",
        "--skill-accept",
    )
    # An option of its own: one with an optional value would take
    # the path that follows it.
    accept_lower: bool = setting(
        SWITCH,
        "gates",
        "the same, also where it lowers or drops what was accepted",
        "--skill-accept=lower",
        ini="skill_accept_lower",
    )

    json_file: Path | None = setting(
        PATH,
        "reports",
        "write all results as JSON",
        "--skill-json",
        at("report", "--json"),
    )
    html_file: Path | None = setting(
        PATH,
        "reports",
        "write an HTML page with plots, verdicts and every answer",
        "--skill-html",
        at("report", "--html"),
    )
    markdown_file: Path | None = setting(
        PATH,
        "reports",
        "write a Markdown summary, for a comment on a pull request",
        "--skill-markdown",
        at("report", "--markdown"),
    )
    transcripts_folder: Path | None = setting(
        PATH,
        "reports",
        "write the transcript of each trial of an agent to a file in this folder, as"
        " JSON lines",
        at("report", "--transcripts"),
        metavar="DIR",
    )
    badge_folder: Path | None = setting(
        PATH,
        "reports",
        "write a badge of each skill to this folder, as an endpoint of shields.io",
        at("report", "--badge"),
        metavar="DIR",
    )
    benchmark_md: bool = setting(
        SWITCH,
        "reports",
        "write BENCHMARK.md beside each SKILL.md",
        at("report", "--benchmark-md"),
    )
    history: bool = setting(
        SWITCH,
        "reports",
        "keep runs in the history (`pytest-upskill runs`)",
        at(
            "eval",
            "--no-log-runs",
            kind=OFF_SWITCH,
            help="don't keep this run",
            default_text="",
        ),
        ini="skill_history",
        default=True,
        default_text="true",
    )
    runs_folder: Path | None = setting(
        PATH,
        "reports",
        "the folder of the run history",
        at("eval", "--runs-dir"),
        at("benchmark", "-o --output"),
        at("runs", "-d --dir"),
        metavar="DIR",
        ini="skill_runs_dir",
        default_text=".upskill/runs in the rootdir",
    )
    history_mb: int = setting(
        whole(1),
        "reports",
        "maximum size of the history in MB; the oldest runs are deleted first",
        ini="skill_history_size",
        default=200,
    )

    def answer_output(self, model: str) -> int:
        """Output tokens of an answer."""
        usual = dict(self.model_outputs).get(model, DEFAULT_MAX_OUTPUT)
        return usual if self.max_output is None else self.max_output

    @property
    def agent_output(self) -> int:
        """Output tokens of each reply of an agent's model."""
        return DEFAULT_AGENT_OUTPUT if self.max_output is None else self.max_output

    @property
    def model_of_users(self) -> str:
        """The model that plays users who have facts; empty if there is none."""
        return self.user_model or ("" if self.judge_agent else self.judge or "")

    @property
    def calls_at_once(self) -> int:
        """Calls that may be in flight."""
        return self.concurrency or DEFAULT_CONCURRENCY

    @property
    def call_timeout(self) -> float:
        """Seconds for an answer of a model."""
        return DEFAULT_TIMEOUT if self.timeout is None else self.timeout

    @property
    def agent_timeout(self) -> float:
        """Seconds for all that an agent does in a trial."""
        return DEFAULT_AGENT_TIMEOUT if self.timeout is None else self.timeout


def settings_of(values: Mapping[str, Any]) -> Settings:
    """Settings from the values of options, without those that are None."""
    values = {name: value for name, value in values.items() if value is not None}
    gates = {
        gate.name: values.pop(gate.name)
        for gate in fields(Gates)
        if gate.name in values
    }
    if values.get("accept_lower"):
        values["accept"] = True
    if values.get("accept"):
        values.setdefault("runs", ACCEPTED_RUNS)
    return Settings(gates=Gates(**gates), **values)
