"""What is wished for: the task, who teaches, who learns, and how far to go."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..settings import DEFAULT_MAX_OUTPUT

DEFAULT_TEACHER: Final = "opus"
DEFAULT_STUDENT: Final = "haiku"
DEFAULT_CASES: Final = 12
DEFAULT_HOLDOUT: Final = 1 / 3
DEFAULT_ATTEMPTS: Final = 3
DEFAULT_SKILL_TOKENS: Final = 1500
FEWEST_CASES: Final = 4  # with fewer nothing can be learnt and nothing held out


@dataclass(frozen=True)
class Lesson:
    """All that shapes a skill and its cases; with no knowledge of where it was written."""

    task: str
    examples: tuple[str, ...] = ()
    source: Path | None = None  # a trace, or the folder of a skill to improve
    tool: str | None = None  # FILE#NAME of an MCP tool
    teacher: str = DEFAULT_TEACHER
    teacher_url: str | None = None
    students: tuple[str, ...] = (DEFAULT_STUDENT,)  # none: nothing is measured
    student_url: str | None = None  # that of the teacher, if None
    author: str | None = None  # of the cases; the teacher, if None
    adversary: str | None = None
    judge: str | None = None
    cases: int = DEFAULT_CASES
    runs: int = 1
    holdout: float = DEFAULT_HOLDOUT
    attempts: int = DEFAULT_ATTEMPTS
    target: float = 1.0  # the pass rate with the skill at which every student is good enough
    max_skill_tokens: int = DEFAULT_SKILL_TOKENS
    max_output: int = DEFAULT_MAX_OUTPUT
    max_cost: float | None = None
    name: str | None = None
