"""The queries of a skill on disk: read, required, and added to."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from ..._util.files import resolved, save_file, why_unwritable
from ..._util.json_forms import read_json
from ...checks import checks_of
from ...checks.kinds import KINDS
from ...errors import CasesError, InputError
from ...skills.case import Case
from ...skills.suites.reading import read_suites
from ...teach.case_writing import UsableCase
from . import TRIGGERS_NAME

_FEWEST: Final = 2  # queries of a kind: one to learn from, one to hold out
_FORM: Final = 'Make it a list of {"query": "…", "should_trigger": true}, or remove it.'


def read_queries(folder: Path) -> tuple[Case, ...]:
    """All queries of a skill, wherever they are; CasesError if one can't be read."""
    suites = read_suites(folder)
    for broken in (case for of_file in suites.triggers for case in of_file.broken):
        raise broken.error
    return suites.all_triggers


def old_queries(folder: Path, file: Path) -> list[UsableCase]:
    if file.exists() and not _entries(file):
        return []
    return [UsableCase({}, trigger, ()) for trigger in read_queries(folder)]


def growable_file(folder: Path) -> Path:
    """The file that queries are added to; InputError if they can't be."""
    file = folder / TRIGGERS_NAME
    if not resolved(file).is_relative_to(resolved(folder)):
        raise InputError(
            file, "this is a link out of the skill's folder", "Remove the link."
        )
    if problem := why_unwritable(file):
        raise InputError(file, problem, "Check the file and its folder.")
    return file


def _entries(file: Path) -> list[Any]:
    if not file.exists():
        return []
    data = read_json(file, CasesError, _FORM)[1]
    if not isinstance(data, list):
        raise CasesError(file, "queries can only be added to a list", _FORM)
    return data


def required_queries(folder: Path) -> list[UsableCase]:
    queries = read_queries(folder)
    should_open = sum(query.should_open for query in queries)
    if min(should_open, len(queries) - should_open) < _FEWEST:
        raise InputError(
            folder,
            f"too few queries: {should_open} that should open the skill,"
            f" {len(queries) - should_open} that should not, and at least {_FEWEST} of"
            " each are needed",
            "Run pytest-upskill triggers first.",
        )
    return [UsableCase({}, query, checks_of(query, KINDS, {})) for query in queries]


def add_queries(file: Path, written: Iterable[UsableCase]) -> None:
    entries = [*_entries(file), *(usable.data for usable in written)]
    save_file(file, json.dumps(entries, indent=2, ensure_ascii=False) + "\n")
