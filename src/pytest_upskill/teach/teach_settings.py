"""The settings of the commands that teach, each with the option that sets it.

A field of ``TeachSettings`` is the only place where an option is declared: the commands build
their arguments and help from it, the Python API takes it under the field's name, ``check``
applies its limits and --resume compares it. To add an option, add a field.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal

from ..errors import SettingsError
from ..results.losses import MARGIN
from ..settings import (
    DEFAULT_AGENT_OUTPUT,
    DEFAULT_MAX_OUTPUT,
    DEFAULT_MAX_TURNS,
    DEFAULT_TRIGGER_RUNS,
)
from ..trials.subject import CHAT
from .teach_option import Option, TeachCommand, as_option

DEFAULT_CASES: Final = 12
DEFAULT_VERSIONS: Final = 5  # of distill
FEWEST_CASES: Final = 4  # with fewer there is nothing to learn from and nothing to hold out
DEFAULT_QUERIES: Final = 20
_CASES: Final[tuple[TeachCommand, ...]] = ("generate", "refine", "cases", "distill")
_MEASURED: Final[tuple[TeachCommand, ...]] = (*_CASES, "describe")
_SKILL_LOOP: Final[tuple[TeachCommand, ...]] = ("generate", "refine")
_LOOP: Final[tuple[TeachCommand, ...]] = (*_SKILL_LOOP, "describe")
_SIZED: Final[tuple[TeachCommand, ...]] = (*_SKILL_LOOP, "distill")


@dataclass(frozen=True)
class TeachSettings:
    """All that a person can ask for, wherever it was written."""

    task: str
    examples: tuple[str, ...] = field(
        default=(),
        metadata=as_option(
            *("-e", "--example"),
            metavar="TEXT",
            help='an example: "INPUT -> OUTPUT"',
            group="sources",
            commands=("generate",),
        ),
    )
    source: Path | None = field(
        default=None,
        metadata=as_option(
            *("-f", "--from"),
            metavar="PATH",
            help="the trace of an agent that did the task, or a skill to improve",
            group="sources",
            commands=("generate",),
            parse=Path,
            resume="free",  # what it holds is compared instead
        ),
    )
    tool: str | None = field(
        default=None,
        metadata=as_option(
            "--tool",
            metavar="FILE#NAME",
            help="the schema of an MCP tool to write the skill for",
            group="sources",
            commands=("generate",),
        ),
    )
    traces: tuple[Path, ...] = field(
        default=(),
        metadata=as_option(
            "--from",
            metavar="PATH",
            help="a trace, or a folder of traces, whose user messages show how people ask",
            group="sources",
            commands=("triggers",),
            parse=Path,
            resume="free",  # what they hold is compared instead
        ),
    )
    with_skills: tuple[Path, ...] = field(
        default=(),
        metadata=as_option(
            "--with",
            metavar="PATH",
            help="other skills that are installed, too",
            group="sources",
            commands=("describe",),
            parse=Path,
        ),
    )
    noise: int = field(
        default=0,
        metadata=as_option(
            "--noise",
            metavar="N",
            help="unrelated skills of pytest-upskill that are installed, too",
            group="sources",
            commands=("describe",),
            parse=int,
            within=(0, 1000),
        ),
    )
    teacher: str = field(
        default="opus",
        metadata=as_option(
            *("-m", "--model"),
            metavar="NAME",
            help="the teacher, a strong model that does the writing",
            group="models",
            config="teacher",
        ),
    )
    teacher_url: str | None = field(
        default=None,
        metadata=as_option(
            "--base-url",
            metavar="URL",
            help="an OpenAI-compatible server",
            group="models",
        ),
    )
    students: tuple[str, ...] = field(
        default=("haiku",),
        metadata=as_option(
            "--eval-model",
            metavar="NAME",
            help="a student, on which the skill is measured",
            group="models",
            commands=_MEASURED,
            config="eval_models",
        ),
    )
    student_url: str | None = field(
        default=None,
        metadata=as_option(
            "--eval-base-url",
            metavar="URL",
            help="the students' server (default: --base-url)",
            group="models",
            commands=_MEASURED,
        ),
    )
    agents: tuple[str, ...] = field(
        default=(CHAT,),
        metadata=as_option(
            "--eval-agent",
            metavar="NAME",
            help="who answers on each student: chat (a plain question), loop, claude, …",
            group="models",
            commands=_MEASURED,
        ),
    )
    author: str | None = field(
        default=None,
        metadata=as_option(
            "--test-model",
            metavar="NAME",
            help="the author of the cases (default: the teacher)",
            group="models",
            commands=("generate", "cases"),
            config="test_model",
        ),
    )
    adversary: str | None = field(
        default=None,
        metadata=as_option(
            "--adversary",
            metavar="NAME",
            help="a model that writes more cases, to make the skill fail",
            group="models",
            commands=_SKILL_LOOP,
        ),
    )
    judge: str | None = field(
        default=None,
        metadata=as_option(
            "--judge",
            metavar="NAME",
            help="a model that grades answers by rubrics",
            group="models",
            commands=_CASES,
        ),
    )
    cases: int = field(
        default=DEFAULT_CASES,
        metadata=as_option(
            "--cases",
            metavar="N",
            help="cases to write",
            group="cases and attempts",
            commands=("generate", "cases"),
            parse=int,
            within=(0, 200),
        ),
    )
    queries: int = field(
        default=DEFAULT_QUERIES,
        metadata=as_option(
            "--queries",
            metavar="N",
            help="queries that the set should have in all",
            group="cases and attempts",
            commands=("triggers",),
            parse=int,
            within=(2, 200),
        ),
    )
    runs: int = field(
        default=1,
        metadata=as_option(
            "--runs",
            metavar="N",
            help="runs of each case or query",
            group="cases and attempts",
            commands=_MEASURED,
            parse=int,
            within=(1, 100),
        ),
    )
    holdout: float = field(
        default=1 / 3,
        metadata=as_option(
            "--holdout",
            metavar="R",
            help="share of the cases to hold out: the teacher never sees them",
            group="cases and attempts",
            commands=_SIZED,
            parse=float,
            within=(0, 0.8),
        ),
    )
    attempts: int = field(
        default=3,
        metadata=as_option(
            "--attempts",
            metavar="N",
            help="maximum number of versions to try",
            group="cases and attempts",
            commands=(*_SIZED, "describe"),
            parse=int,
            within=(1, 50),
            config="attempts",
            resume="limit",
        ),
    )
    target: float = field(
        default=1.0,
        metadata=as_option(
            "--target",
            metavar="R",
            help="stop when every student gets this share right",
            group="cases and attempts",
            commands=_LOOP,
            parse=float,
            within=(0, 1),
            zero=False,
            resume="limit",
        ),
    )
    max_skill_tokens: int = field(
        default=1500,
        metadata=as_option(
            "--max-skill-tokens",
            metavar="N",
            help="maximum size of the skill",
            group="limits",
            commands=_SIZED,
            parse=int,
            within=(10, 100_000),
        ),
    )
    margin: float = field(
        default=MARGIN,
        metadata=as_option(
            "--margin",
            metavar="R",
            help="the loss that a shorter skill may have: 0.1 are 10 points",
            group="limits",
            commands=("distill",),
            parse=float,
            within=(0, 1),
            zero=False,
            resume="limit",
        ),
    )
    max_output: int | None = field(
        default=None,
        metadata=as_option(
            "--max-output",
            metavar="N",
            help=f"maximum output tokens of an answer (default: {DEFAULT_MAX_OUTPUT}), or of a "
            f"turn of an agent ({DEFAULT_AGENT_OUTPUT})",
            group="limits",
            commands=_CASES,
            parse=int,
            within=(1, 1_000_000),
        ),
    )
    max_turns: int = field(
        default=DEFAULT_MAX_TURNS,
        metadata=as_option(
            "--max-turns",
            metavar="N",
            help="maximum number of turns of an agent",
            group="limits",
            commands=_CASES,
            parse=int,
            within=(1, 1000),
        ),
    )
    sandbox: str = field(
        default="auto",
        metadata=as_option(
            "--sandbox",
            metavar="NAME",
            help="where agents run: auto, bwrap, docker, podman or none",
            group="limits",
            commands=_MEASURED,
            resume="free",
        ),
    )
    max_cost: float | None = field(
        default=None,
        metadata=as_option(
            "--max-cost",
            metavar="USD",
            help="budget: stop before exceeding it",
            group="limits",
            parse=float,
            within=(0, 1_000_000),
            zero=False,
            resume="limit",
        ),
    )
    output: Path | None = field(
        default=None,
        metadata=as_option(
            *("-o", "--output"),
            metavar="DIR",
            help="the folder of the skill (default: ./skills/NAME)",
            group="output",
            commands=("generate",),
            parse=Path,
            resume="free",
        ),
    )
    name: str | None = field(
        default=None,
        metadata=as_option(
            "--name",
            metavar="NAME",
            help="the name of the skill (default: chosen by the teacher)",
            group="output",
            commands=("generate",),
            resume="limit",
        ),
    )
    force: bool = field(
        default=False,
        metadata=as_option(
            "--force",
            metavar=None,
            help="replace a skill, or improve one in place (the old one is kept)",
            group="output",
            commands=("generate",),
            resume="free",
        ),
    )
    anyway: bool = field(
        default=False,
        metadata=as_option(
            "--anyway",
            metavar=None,
            help="write the best description even if it is not shown to be better",
            group="output",
            commands=("describe",),
            resume="free",
        ),
    )
    resume: bool = field(
        default=False,
        metadata=as_option(
            "--resume",
            metavar=None,
            help="continue a stopped run without asking anything twice",
            group="output",
            resume="free",
        ),
    )

    @property
    def only_agents(self) -> bool:
        """Whether all students are agents, so that cases may look at what they do."""
        return bool(self.agents) and CHAT not in self.agents

    def on_resume(self, *kinds: Literal["same", "limit"]) -> dict[str, Any]:
        """The values that a resumed run compares; the task is always the same."""
        wanted = {name for name, option in OPTIONS.items() if option.resume in kinds}
        wanted |= {"task"} if "same" in kinds else set()
        return {name: value for name, value in asdict(self).items() if name in wanted}


OPTIONS: Final[Mapping[str, Option]] = {
    one.name: one.metadata["option"] for one in fields(TeachSettings) if "option" in one.metadata
}


def defaults_of(command: TeachCommand) -> dict[str, Any]:
    """Cases and queries can be written without students, so they have none by default."""
    defaults = {one.name: one.default for one in fields(TeachSettings) if one.name in OPTIONS}
    own: dict[TeachCommand, dict[str, Any]] = {
        "cases": {"students": ()},
        "distill": {"attempts": DEFAULT_VERSIONS, "holdout": 0.5, "max_skill_tokens": None},
        "triggers": {"students": ()},
        "describe": {"runs": DEFAULT_TRIGGER_RUNS},
    }
    return defaults | own.get(command, {})


def check(settings: TeachSettings, *, fewest_cases: int = 0) -> None:
    """SettingsError for a number out of its limits, or an empty task."""
    for name, option in OPTIONS.items():
        value = getattr(settings, name)
        if option.within is None or value is None:
            continue
        least, most = option.within
        least = max(least, fewest_cases) if name == "cases" else least
        if not least <= value <= most:
            problem = f"not between {least:,} and {most:,}"
            raise SettingsError(name, problem, value=f"{value:g}")
        if not value and not option.zero:
            raise SettingsError(name, "must be above 0", value=f"{value:g}")
    if not settings.task.strip():
        raise SettingsError("task", "must not be empty", "Say in words what the skill is for.")
