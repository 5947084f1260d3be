"""The transcripts of a run as files, one for each trial of an agent."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .._util.json_forms import json_values
from ..results.run import RunResults
from ..trials.records import Record

_MAX_NAME_LENGTH: Final = 80
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._ \[\]-]+")
# Windows takes these for devices, whatever follows the first dot.
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(?![^.])", re.IGNORECASE)


def transcript_files(results: RunResults) -> Iterator[tuple[str, str]]:
    """Path and content of each: ``pdf/invoice[loop-haiku]/skill-1.jsonl``."""
    records = [record for record in results.records if record.transcript]
    skills = safe_names(record.skill for record in records)
    tests = safe_names(_test_name(record) for record in records)

    for record in records:
        folder = f"{skills[record.skill]}/{tests[_test_name(record)]}"
        yield f"{folder}/{record.arm}-{record.run}.jsonl", _transcript_text(record)


def _test_name(record: Record) -> str:
    return f"{record.case}[{record.label}]"


def _transcript_text(record: Record) -> str:
    """Which trial it is, then a line for each turn."""
    head: dict[str, Any] = {
        "skill": record.skill,
        "case": record.case,
        "agent": record.agent,
        "model": record.model,
        "arm": record.arm,
        "run": record.run,
        "outcome": record.outcome,
        "error": record.error,
        "activity": record.activity and json_values(record.activity),
    }
    turns = [json_values(turn, brief=True) for turn in record.transcript]
    lines = [json.dumps(line, ensure_ascii=False) for line in [head, *turns]]
    return "\n".join(lines) + "\n"


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """A name for each that any file system takes, distinct even if case is ignored."""
    safe_by_name: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        base = _safe_name(name)
        safe = base
        number = 1
        while safe.casefold() in taken:
            number += 1
            safe = f"{base}-{number}"
        taken.add(safe.casefold())
        safe_by_name[name] = safe
    return safe_by_name


def _safe_name(name: str) -> str:
    safe = _UNSAFE.sub("-", name)[:_MAX_NAME_LENGTH].strip(" .") or "unnamed"
    return f"_{safe}" if _DEVICES.match(safe) else safe
