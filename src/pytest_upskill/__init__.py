"""Test Agent Skills with pytest.

Everything meant for users is importable from here; the modules below may change at
any time. A name is imported when it is first used, so that ``import
pytest_upskill`` costs nothing.

PYTEST_DONT_REWRITE, or pytest warns that ``pytest-upskill
eval`` imported this too early.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

__version__ = "0.1.0"

__all__ = [
    "Activity",
    "Agent",
    "AgentJob",
    "Answer",
    "AnswerFile",
    "Case",
    "CheckContext",
    "CheckFunction",
    "CommandAgent",
    "Grade",
    "InputError",
    "Launch",
    "Model",
    "ModelError",
    "ModelSource",
    "ModelSpec",
    "NextStep",
    "Provider",
    "Question",
    "Record",
    "Row",
    "RunResults",
    "Standing",
    "Suite",
    "Taught",
    "ToolCall",
    "Turn",
    "UpskillError",
    "Usage",
    "Verdict",
    "__version__",
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

if TYPE_CHECKING:
    from .agents.agent import Agent
    from .agents.command_agent import AgentJob, CommandAgent, Launch
    from .checks import CheckContext, CheckFunction
    from .errors import InputError, ModelError, UpskillError
    from .features.queries.api import (
        describe,
        describe_async,
        generate_triggers,
        generate_triggers_async,
    )
    from .models import Model, ModelSource, ModelSpec, Provider
    from .plugin.run import NextStep
    from .results.row import Row
    from .results.run import RunResults
    from .results.standings import Standing
    from .results.verdict import Verdict
    from .skills.case import Case
    from .skills.suites.suite import Suite
    from .teach.api import (
        evaluate,
        evaluate_async,
        generate_cases,
        generate_cases_async,
        generate_skill,
        generate_skill_async,
        refine,
        refine_async,
    )
    from .teach.outcome import Taught
    from .trials.answer import Answer, AnswerFile, Usage
    from .trials.records import Grade, Record
    from .trials.transcript import Activity, ToolCall, Turn
    from .trials.trial import Question

_HOMES: Final = {
    "agents.command_agent": ["AgentJob", "CommandAgent", "Launch"],
    "agents.agent": ["Agent"],
    "checks": ["CheckContext", "CheckFunction"],
    "errors": ["InputError", "ModelError", "UpskillError"],
    "features.queries.api": [
        "describe",
        "describe_async",
        "generate_triggers",
        "generate_triggers_async",
    ],
    "models": ["Model", "ModelSource", "ModelSpec", "Provider"],
    "plugin.run": ["NextStep"],
    "results.row": ["Row"],
    "results.run": ["RunResults"],
    "results.standings": ["Standing"],
    "results.verdict": ["Verdict"],
    "skills.case": ["Case"],
    "skills.suites.suite": ["Suite"],
    "teach.outcome": ["Taught"],
    "trials.answer": ["Answer", "AnswerFile", "Usage"],
    "trials.records": ["Grade", "Record"],
    "trials.transcript": ["Activity", "ToolCall", "Turn"],
    "trials.trial": ["Question"],
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((home for home, names in _HOMES.items() if name in names), "teach.api")
    return getattr(import_module(f".{home}", __name__), name)


def __dir__() -> list[str]:
    return __all__
