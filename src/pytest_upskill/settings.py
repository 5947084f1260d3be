"""The settings of a run: frozen, and independent of where they were written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

DEFAULT_RUNS: Final = 1
STUDY_RUNS: Final = (2, 8)  # of a study: at first, and at most
MOST_RUNS: Final = 1000  # a file of cases from anywhere must not fill the memory
DEFAULT_MAX_OUTPUT: Final = 2048
DEFAULT_AGENT_OUTPUT: Final = 8192  # a turn may have to write a whole file
DEFAULT_TIMEOUT: Final = 120.0
DEFAULT_AGENT_TIMEOUT: Final = 600.0
DEFAULT_MAX_TURNS: Final = 30
DEFAULT_TRIGGER_RUNS: Final = 3
ENOUGH_QUERIES: Final = 10  # of a kind: with fewer, even a perfect result shows little
TRIGGER_TURNS: Final = 5  # of an agent, until a query counts as decided
DEFAULT_CONCURRENCY: Final = 64
DEFAULT_HISTORY_MB: Final = 200
MOST_REFERENCE_TOKENS: Final = 20_000  # estimated, of all files together
INI_FILES: Final = (  # where pytest looks for its settings, in its order
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg"),
)

Triggers = Literal["only", "also", "off"]  # whether queries of triggers are tested
Batch = Literal["wait", "submit"]  # whether a run waits for its batches, or ends
Score = Literal["pass", "checks"]  # what a lift is of: pass rates, or shares of checks passed


@dataclass(frozen=True)
class Gates:
    """What a run must reach to pass; rates and growth are shares of 1, None is no limit."""

    min_lift: float | None = None  # lowest lift of each skill on each model
    min_pass_rate: float | None = None  # lowest pass rate with the skill
    max_token_growth: float | None = None  # highest growth of tokens with the skill
    confident: bool = False  # compare the bound of the interval, not the estimate
    no_worse: bool = False  # fail if the skill got worse since the ref of ``against``
    min_recall: float | None = None  # lowest share of opening where the skill should be opened
    max_false_alarms: float | None = None  # highest share of opening where it should not

    @property
    def of_cases(self) -> bool:
        numbers = (self.min_lift, self.min_pass_rate, self.max_token_growth)
        return self.no_worse or numbers != (None, None, None)

    @property
    def of_triggers(self) -> bool:
        return (self.min_recall, self.max_false_alarms) != (None, None)

    def any(self) -> bool:
        return self.of_cases or self.of_triggers


@dataclass(frozen=True)
class Settings:
    """All settings of a run, with their defaults."""

    skill_paths: tuple[Path, ...] = ()  # skills, or folders of skills

    models: tuple[str, ...] = ()  # names of the models under test
    models_folder: Path = Path()  # files in model names are relative to it
    models_file: Path | None = None  # the upskill.config.yaml that named the models, if it did
    base_url: str | None = None  # the server for model names that no provider knows
    judge: str | None = None  # the model that grades rubrics
    prices: tuple[str, ...] = ()  # lines "NAME INPUT OUTPUT [CACHED [WRITTEN]]", USD per million

    agents: tuple[str, ...] = ("chat",)  # who carries out the cases
    sandbox: str = "auto"  # where agents run
    image: str | None = None  # of a sandbox that is a container
    with_skills: tuple[Path, ...] = ()  # other skills that agents have in both arms
    noise: int = 0  # bundled skills that agents have in both arms, too
    max_turns: int = DEFAULT_MAX_TURNS  # of an agent
    agents_at_once: int | None = None  # None: twice the cores; memory limits both
    cluster: str | None = None  # the address of a Dask cluster that carries out trials of agents
    cluster_send_keys: bool = False  # its workers get the keys of this process
    allow_network: bool = False  # for cases that say they need it

    runs: int = DEFAULT_RUNS  # of each trial; with first_runs, the most
    first_runs: int | None = None  # then up to ``runs`` where the verdict is open
    tests_file: Path | None = None  # cases from this file in place of the skill's own
    baseline: bool = True  # also ask without the skill
    references: bool = False  # put the files that SKILL.md refers to in context too
    against: str | None = None  # a git ref: also ask with the skill as it was there
    score: Score | None = None  # None: checks for cases of evals.json, else pass
    case_threshold: float | None = None  # share of runs that must pass; None: more than half
    allow_code: bool = False  # run checks from the skill's folder
    triggers: Triggers | None = None  # whether to ask queries of triggers; None: only of agents
    trigger_runs: int = DEFAULT_TRIGGER_RUNS  # of each query

    max_output: int | None = None  # output tokens of a reply; None: by default, more for agents
    timeout: float | None = None  # seconds for an answer; None: by default, more for agents
    concurrency: int = DEFAULT_CONCURRENCY  # calls in flight, over all workers
    max_tokens: int | None = None  # budget of the run
    max_cost: float | None = None  # budget of the run in USD

    prompt_cache: bool = True  # use the providers' caches of what questions start with
    batch: Batch | None = None  # ask through the provider's batch API
    batch_fallback: bool = False  # ask one by one what failed there

    fresh: bool = False  # ignore stored answers and replace them
    record_file: Path | None = None  # write the answers here
    replay_file: Path | None = None  # answer from this file alone

    matrix: bool = False  # also measure what the skills do to each other
    ablate: bool = False  # also measure what the parts of the skills are good for

    gates: Gates = Gates()
    accept: bool = False  # write the results as the accepted ones

    json_file: Path | None = None
    csv_file: Path | None = None
    markdown_file: Path | None = None
    html_file: Path | None = None
    benchmark_folder: Path | None = None  # in skill-creator's layout
    transcripts_folder: Path | None = None  # of agents, a file per trial

    history: bool = True  # keep this run
    runs_folder: Path | None = None  # where runs are kept; None is .upskill/runs
    history_mb: int = DEFAULT_HISTORY_MB  # the oldest runs are deleted beyond this size

    def asks_triggers(self, agent: str) -> bool:
        """Whether an agent, or ``chat``, is asked the queries of triggers."""
        return agent != "chat" if self.triggers is None else self.triggers != "off"

    @property
    def answer_output(self) -> int:
        """Output tokens of an answer."""
        return DEFAULT_MAX_OUTPUT if self.max_output is None else self.max_output

    @property
    def agent_output(self) -> int:
        """Output tokens of each reply that an agent gets of its model."""
        return DEFAULT_AGENT_OUTPUT if self.max_output is None else self.max_output

    @property
    def call_timeout(self) -> float:
        """Seconds for an answer of a model."""
        return DEFAULT_TIMEOUT if self.timeout is None else self.timeout

    @property
    def agent_timeout(self) -> float:
        """Seconds for all that an agent does in a trial."""
        return DEFAULT_AGENT_TIMEOUT if self.timeout is None else self.timeout
