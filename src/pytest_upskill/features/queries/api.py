"""The Python API: ``triggers`` and ``describe`` as functions."""

from pathlib import Path
from typing import Unpack

from ...teach.api import AnyPath, TeachOptions, async_of, read_options
from ...teach.outcome import Taught
from ...teach.teach_settings import DEFAULT_QUERIES
from .describing import describe_skill
from .query_writing import write_triggers


def generate_triggers(
    skill: AnyPath, number: int = DEFAULT_QUERIES, **options: Unpack[TeachOptions]
) -> Taught:
    """Write queries to a skill's evals/triggers.json until it has ``number`` in all.

    Half of them should open the skill, half are near misses. ``traces`` are files or
    folders whose user messages show how people ask.
    """
    queries: TeachOptions = {"students": (), **options, "queries": number}
    return write_triggers(Path(skill), *read_options("triggers", None, queries))


def describe(skill: AnyPath, **options: Unpack[TeachOptions]) -> Taught:
    """Improve a skill's description by its queries;
    unchanged if none is shown to be better.

    ``with_skills`` and ``noise`` install other skills beside it. With ``anyway`` the
    best description is written even if it is not shown to be better.
    """
    return describe_skill(Path(skill), *read_options("describe", None, options))


generate_triggers_async = async_of(generate_triggers)
describe_async = async_of(describe)
