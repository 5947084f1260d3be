"""evals/triggers.json: the queries that are there, and those that are added."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from .._util.files import read_file, resolved, save_file, why_unwritable
from .._util.json_forms import read_json
from ..errors import CasesError, InputError
from ..skills.triggers import TRIGGERS_NAME, Trigger, load_triggers
from .query_writing import Query

_MORE_NAME: Final = "evals/more-triggers.json"  # if the file has another form than a list
_FORM: Final = 'Make it a list of {"query": "…", "should_trigger": true}, or remove it.'


def read_queries(folder: Path) -> tuple[Trigger, ...]:
    """All queries of a skill, wherever they are; CasesError if one can't be read."""
    loaded = load_triggers(folder)
    for one in loaded.broken:
        if one.error.problems or not _is_empty(folder / TRIGGERS_NAME):
            raise one.error
    return loaded.triggers


def queries_of(triggers: Sequence[Trigger]) -> list[Query]:
    return [Query(one.query, one.should_trigger) for one in triggers]


def require_growable(folder: Path) -> Path:
    """The file that queries are added to; InputError if they can't be."""
    file = _own(folder, TRIGGERS_NAME)
    if file.is_file() and isinstance(read_json(file, CasesError, _FORM)[1], dict):
        file = _own(folder, _MORE_NAME)
    if problem := why_unwritable(file):
        raise InputError(file, problem, "Check the file and its folder.")
    _entries(file)
    return file


def _own(folder: Path, name: str) -> Path:
    file = folder / name
    if not resolved(file).is_relative_to(resolved(folder)):
        raise InputError(file, "this is a link out of the skill's folder", "Remove the link.")
    return file


def add_queries(file: Path, queries: Sequence[Query]) -> None:
    """Add queries to those that the file has now; it is written whole or not at all."""
    new = [{"query": one.text, "should_trigger": one.should_trigger} for one in queries]
    text = json.dumps([*_entries(file), *new], indent=2, ensure_ascii=False)
    save_file(file, f"{text}\n")


def _entries(file: Path) -> list[Any]:
    if not file.exists():
        return []
    data = read_json(file, CasesError, _FORM)[1]
    if not isinstance(data, list):
        raise CasesError(file, "queries can only be added to a list", _FORM)
    return data


def _is_empty(file: Path) -> bool:
    """Whether it is a list without a query yet."""
    try:
        return bool(json.loads(read_file(file)) == [])
    except (OSError, ValueError, RecursionError):
        return False
