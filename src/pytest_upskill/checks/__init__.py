"""Checks of an answer: each passes or fails, with a reason.

A new kind is one entry in the ``KINDS`` of text_checks, data_checks or code_checks, or of
activity_checks if it looks at what an agent did.
"""

from .check import AnyCheck, Check, CheckContext, CheckKind, Combined, places, spans, walk
from .grading import grade
from .judging import rubric_of
from .parse import (
    KINDS,
    TAKEN,
    CheckedCase,
    checks_of,
    load_checked_cases,
    parse_checks,
    why_agent,
)
from .python_checks import CheckFunction, function_kind, python_kind

__all__ = [
    "KINDS",
    "TAKEN",
    "AnyCheck",
    "Check",
    "CheckContext",
    "CheckFunction",
    "CheckKind",
    "CheckedCase",
    "Combined",
    "checks_of",
    "function_kind",
    "grade",
    "load_checked_cases",
    "parse_checks",
    "places",
    "python_kind",
    "rubric_of",
    "spans",
    "walk",
    "why_agent",
]
