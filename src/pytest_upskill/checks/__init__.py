"""Checks of an answer: each passes or fails, with a reason.

A new kind is one entry in the ``KINDS`` of text_checks, data_checks or code_checks; the one in
judging is for the judge alone.
"""

from .check import AnyCheck, Check, CheckContext, Combined, Kind, Span, spans, walk
from .grading import grade
from .judging import rubric_of
from .parse import KINDS, TAKEN, CheckedCase, checks_of, load_checked_cases, parse_checks
from .python_checks import CheckFunction, python_kind, registered_kinds

__all__ = [
    "KINDS",
    "TAKEN",
    "AnyCheck",
    "Check",
    "CheckContext",
    "CheckFunction",
    "CheckedCase",
    "Combined",
    "Kind",
    "Span",
    "checks_of",
    "grade",
    "load_checked_cases",
    "parse_checks",
    "python_kind",
    "registered_kinds",
    "rubric_of",
    "spans",
    "walk",
]
