"""The settings of a run: frozen, with no knowledge of where they were written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEFAULT_RUNS: Final = 1
# A file of cases may come from anywhere: it must not fill the memory with what is to be asked.
MOST_RUNS: Final = 1000
DEFAULT_MAX_OUTPUT: Final = 2048
DEFAULT_TIMEOUT: Final = 120.0
DEFAULT_CONCURRENCY: Final = 64
DEFAULT_HISTORY_MB: Final = 200


@dataclass(frozen=True)
class Gates:
    """What a run must reach to pass; None asks for nothing."""

    min_lift: float | None = None
    min_pass_rate: float | None = None
    max_token_growth: float | None = None
    confident: bool = False  # by the interval's bound, not by the estimate
    no_worse: bool = False  # than the skill at the ref of --skill-against

    def any(self) -> bool:
        numbers = (self.min_lift, self.min_pass_rate, self.max_token_growth)
        return self.no_worse or numbers != (None, None, None)


@dataclass(frozen=True)
class Settings:
    """What the command line and the ini file say."""

    skill_paths: tuple[Path, ...] = ()
    models: tuple[str, ...] = ()
    models_folder: Path = Path()  # what files in the names of models are relative to
    models_file: Path | None = None  # of upskill, if nothing of ours names a model
    base_url: str | None = None
    runs: int = DEFAULT_RUNS  # at most, if there are first_runs
    first_runs: int | None = None  # the rest only where the verdict is open
    tests_file: Path | None = None
    baseline: bool = True
    against: str | None = None  # the git ref of the arm ``previous``
    max_output: int = DEFAULT_MAX_OUTPUT
    timeout: float = DEFAULT_TIMEOUT
    concurrency: int = DEFAULT_CONCURRENCY
    max_tokens: int | None = None
    max_cost: float | None = None
    judge: str | None = None
    json_file: Path | None = None
    csv_file: Path | None = None
    markdown_file: Path | None = None
    benchmark_folder: Path | None = None
    html_file: Path | None = None
    fresh: bool = False
    record_file: Path | None = None
    replay_file: Path | None = None
    accept: bool = False  # what is reached becomes what is expected
    allow_code: bool = False
    gates: Gates = Gates()
    case_threshold: float | None = None  # None is more than half of the runs
    prices: tuple[str, ...] = ()  # as written; models/prices reads them
    history: bool = True  # whether the run is kept
    runs_folder: Path | None = None  # where; None is where history says
    history_mb: int = DEFAULT_HISTORY_MB
