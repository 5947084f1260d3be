"""The transcripts of a run as files, one for each trial of an agent."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .._util.json_forms import json_values
from ..results.run import RunResults
from ..trials.records import Record

_LONGEST_NAME: Final = 80  # characters of a name
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._ \[\]-]+")
# Windows takes these for devices, whatever follows the first dot.
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(?![^.])", re.IGNORECASE)


def transcript_files(results: RunResults) -> Iterator[tuple[str, str]]:
    """Path and content of each: ``pdf/invoice[loop-haiku]/skill-1.jsonl``."""
    records = [record for record in results.records if record.transcript]
    skills = safe_names(record.skill for record in records)
    tests = {
        skill: safe_names(_test(record) for record in records if record.skill == skill)
        for skill in skills
    }
    for record in records:
        folder = f"{skills[record.skill]}/{tests[record.skill][_test(record)]}"
        yield f"{folder}/{record.arm}-{record.run}.jsonl", transcript_text(record)


def transcript_text(record: Record) -> str:
    """Which trial it is, then a line for each turn."""
    turns = [json_values(turn, brief=True) for turn in record.transcript]
    lines = [_head(record), *turns]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def _test(record: Record) -> str:
    return f"{record.case}[{record.label}]"


def _head(record: Record) -> dict[str, Any]:
    return {
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


def safe_name(name: str) -> str:
    """A name that any file system accepts."""
    safe = _UNSAFE.sub("-", name)[:_LONGEST_NAME].strip(" .") or "unnamed"
    return f"_{safe}" if _DEVICES.match(safe) else safe


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """A safe name for each, distinct even if case is ignored."""
    safe_by_name: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        base = safe = safe_name(name)
        number = 1
        while safe.casefold() in taken:
            number += 1
            safe = f"{base}-{number}"
        taken.add(safe.casefold())
        safe_by_name[name] = safe
    return safe_by_name
