"""Checks of an answer: each passes or fails, with a reason.

A new kind is one entry in the ``KINDS`` of text_checks, data_checks or code_checks, or
of activity_checks if it looks at what an agent did. All of them are in ``kinds``.
"""

from .check import (
    AnyCheck,
    Check,
    CheckContext,
    CheckKind,
    Combined,
    places,
    spans,
    walk,
)
from .grading import grade
from .judging import rubric_of
from .parse import (
    CheckedCase,
    checked_suite,
    checks_of,
    load_checked_cases,
    parse_checks,
    runnable_in,
    why_agent,
)
from .python_checks import CheckFunction, function_kind, python_kind

__all__ = [
    "AnyCheck",
    "Check",
    "CheckContext",
    "CheckFunction",
    "CheckKind",
    "CheckedCase",
    "Combined",
    "checked_suite",
    "checks_of",
    "function_kind",
    "grade",
    "load_checked_cases",
    "parse_checks",
    "places",
    "python_kind",
    "rubric_of",
    "runnable_in",
    "spans",
    "walk",
    "why_agent",
]
