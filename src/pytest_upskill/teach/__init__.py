"""From a task, a trace or a skill to a skill that was shown to help."""

from .api import (
    describe,
    describe_async,
    evaluate,
    evaluate_async,
    generate_cases,
    generate_cases_async,
    generate_skill,
    generate_skill_async,
    generate_triggers,
    generate_triggers_async,
    refine,
    refine_async,
)
from .described import Described
from .outcome import Taught
from .trigger_set import TriggerSet

__all__ = [
    "Described",
    "Taught",
    "TriggerSet",
    "describe",
    "describe_async",
    "evaluate",
    "evaluate_async",
    "generate_cases",
    "generate_cases_async",
    "generate_skill",
    "generate_skill_async",
    "generate_triggers",
    "generate_triggers_async",
    "refine",
    "refine_async",
]
