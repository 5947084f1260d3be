"""From a task, a trace or a skill to a skill that was shown to help."""

from .api import (
    evaluate,
    evaluate_async,
    generate_cases,
    generate_cases_async,
    generate_skill,
    generate_skill_async,
    refine,
    refine_async,
)
from .outcome import Taught

__all__ = [
    "Taught",
    "evaluate",
    "evaluate_async",
    "generate_cases",
    "generate_cases_async",
    "generate_skill",
    "generate_skill_async",
    "refine",
    "refine_async",
]
