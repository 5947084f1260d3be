"""The settings of the commands that teach.

The commands make their arguments and help of these fields, the Python API takes them by
name, and ``check`` applies their limits: see ``options``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Literal, get_args

from ..errors import SettingsError
from ..options import (
    NAMES,
    PATH,
    PATHS,
    SHARE,
    SWITCH,
    TEXT,
    Kind,
    at,
    number,
    options_of,
    setting,
    whole,
)
from ..results.contrasts import MARGIN
from ..settings import DEFAULT_TRIGGER_RUNS, CommonSettings
from ..trials.subject import CHAT

TeachCommand = Literal["generate", "refine", "cases", "triggers", "describe"]
DEFAULT_CASES: Final = 12
# With fewer there is nothing to learn from and nothing to hold out
FEWEST_CASES: Final = 4
DEFAULT_QUERIES: Final = 20
DEFAULT_SKILL_TOKENS: Final = 1500
_ALL: Final = " ".join(get_args(TeachCommand))
_MEASURED: Final = "generate refine describe"  # by default, on a student


@dataclass(frozen=True)
class TeachSettings(CommonSettings):
    """All that a person can ask for, wherever it was written."""

    task: str
    examples: tuple[str, ...] = setting(
        NAMES,
        "skills and cases",
        'an example: "INPUT -> OUTPUT"',
        at("generate", "-e --example"),
        metavar="TEXT",
    )
    source: Path | None = setting(
        PATH,
        "skills and cases",
        "the trace of an agent that did the task, or a skill to improve",
        at("generate", "-f --from"),
        metavar="PATH",
    )
    tool: str | None = setting(
        TEXT,
        "skills and cases",
        "the schema of an MCP tool to write the skill for",
        at("generate", "--tool"),
        metavar="FILE#NAME",
    )
    traces: tuple[Path, ...] = setting(
        PATHS,
        "skills and cases",
        "a trace, or a folder of traces, whose user messages show how people ask",
        at("triggers", "--from"),
    )
    teacher: str = setting(
        TEXT,
        "models",
        "the teacher, a strong model that does the writing",
        at(_ALL, "-m --model"),
        metavar="NAME",
        config="teacher",
        default="opus",
    )
    teacher_url: str | None = setting(
        TEXT,
        "models",
        "an OpenAI-compatible server",
        at(_ALL, "--base-url"),
        metavar="URL",
    )
    students: tuple[str, ...] = setting(
        NAMES,
        "models",
        "a student, on which the skill is measured",
        at(_MEASURED, "--eval-model"),
        at("cases", "--eval-model", default=()),  # they can be written without
        config="eval_models",
        default=("haiku",),
    )
    student_url: str | None = setting(
        TEXT,
        "models",
        "the students' server",
        at(f"{_MEASURED} cases", "--eval-base-url"),
        metavar="URL",
        default_text="--base-url",
    )
    author: str | None = setting(
        TEXT,
        "models",
        "the author of the cases",
        at("generate cases", "--test-model"),
        metavar="NAME",
        default_text="the teacher",
        config="test_model",
    )
    adversary: str | None = setting(
        TEXT,
        "models",
        "a model that writes more cases, to make the skill fail",
        at("generate refine", "--adversary"),
        metavar="NAME",
    )
    cases: int = setting(
        whole(0, 200),
        "runs and attempts",
        "cases to write",
        at("generate cases", "--cases"),
        default=DEFAULT_CASES,
    )
    queries: int = setting(
        whole(2, 200),
        "runs and attempts",
        "total number of queries in the set",
        at("triggers", "--queries"),
        default=DEFAULT_QUERIES,
    )
    runs: int = setting(
        whole(1, 100),
        "runs and attempts",
        "runs of each case or query",
        at("generate refine cases", "--runs"),
        at("describe", "--runs", default=DEFAULT_TRIGGER_RUNS),
        default=1,
    )
    holdout: float = setting(
        number("a number between 0 and 0.8", 0, 0.8),
        "runs and attempts",
        "share of the cases to hold out: the teacher never sees them",
        at("generate refine", "--holdout"),
        default=1 / 3,
    )
    attempts: int = setting(
        whole(1, 50),
        "runs and attempts",
        "maximum number of versions to write",
        at("generate refine describe", "--attempts", config="attempts"),
        default=3,
    )
    target: float = setting(
        SHARE,
        "runs and attempts",
        "stop when every student gets this share right",
        at("generate refine describe", "--target"),
        default=1.0,
    )
    max_skill_tokens: int | None = setting(
        whole(10, 100_000),
        "runs and attempts",
        "maximum size of the skill in tokens",
        at(
            "generate",
            "--max-skill-tokens",
            default_text=f"{DEFAULT_SKILL_TOKENS}, plus the size of a skill to change",
        ),
        at(
            "refine",
            "--max-tokens",
            help="make the skill shorter: at most so many tokens",
        ),
        default=None,
    )
    margin: float = setting(
        number("a number between 0 and 1 (0.1 is 10 points)", 0, 1, above=True),
        "runs and attempts",
        "a loss that does not count: 0.1 is 10 points",
        at("refine", "--margin"),
        default=MARGIN,
    )
    output: Path | None = setting(
        PATH,
        "output",
        "the folder of the skill",
        at("generate", "-o --output"),
        metavar="DIR",
        default_text="./skills/NAME",
    )
    name: str | None = setting(
        TEXT,
        "output",
        "the name of the skill",
        at("generate", "--name"),
        metavar="NAME",
        default_text="chosen by the teacher",
    )
    force: bool = setting(
        SWITCH,
        "output",
        "replace a skill, or improve one in place (the old one is kept)",
        at("generate", "--force"),
    )
    anyway: bool = setting(
        SWITCH,
        "output",
        "write the best description even if it is not shown to be better",
        at("describe", "--anyway"),
    )

    @property
    def only_agents(self) -> bool:
        """Whether all students are agents, so that cases may look at what they do."""
        return bool(self.agents) and CHAT not in self.agents


KINDS: Final[Mapping[str, Kind]] = {
    declared.name: declared.metadata["kind"]
    for declared in fields(TeachSettings)
    if declared.metadata
}


def command_words(
    command: TeachCommand, skill: str, settings: TeachSettings
) -> list[str]:
    """A command for a skill, with the models of these settings."""
    options, words = (
        options_of(command, TeachSettings),
        ["pytest-upskill", command, skill],
    )
    for name in ("teacher", "teacher_url", "students", "student_url", "agents"):
        if (value := getattr(settings, name)) != options[name].default:
            words += options[name].words(value)
    return words


def check(settings: TeachSettings, *, fewest_cases: int = 0) -> None:
    """SettingsError for a value out of its limits."""
    kinds = dict(KINDS)
    if fewest_cases:
        kinds["cases"] = whole(fewest_cases, 200)
    for name, kind in kinds.items():
        value = getattr(settings, name)
        if value is not None and not kind.allows(value):
            raise SettingsError(name, f"not {kind.noun}", value=value)


def require_task(settings: TeachSettings) -> None:
    if not settings.task.strip():
        raise SettingsError(
            "task", "must not be empty", "Say in words what the skill is for."
        )
