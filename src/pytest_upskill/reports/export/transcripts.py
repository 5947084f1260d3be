"""The transcripts of a run, a file of JSON lines for each trial of an agent.

The first line says which trial it is and what came of it, then there is a line for each turn.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ...results.run import RunResults
from ...trials.records import Record
from ...trials.subject import Subject

_LONGEST: Final = 80  # characters of a name
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._ \[\]-]+")
# Windows takes these for devices, whatever follows the first dot.
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(?![^.])", re.IGNORECASE)


def transcript_files(results: RunResults) -> Iterator[tuple[str, str]]:
    """Path and content of each: ``pdf/invoice[loop-haiku]/skill-1.jsonl``."""
    known = [record for record in results.all_records if record.transcript]
    skills = safe_names(record.skill for record in known)
    tests = {
        skill: safe_names(_test(record) for record in known if record.skill == skill)
        for skill in skills
    }
    for record in known:
        folder = f"{skills[record.skill]}/{tests[record.skill][_test(record)]}"
        yield f"{folder}/{record.arm}-{record.run}.jsonl", transcript_text(record)


def transcript_text(record: Record) -> str:
    """Which trial it is, then a line for each turn."""
    lines = [_head(record), *(turn.to_json() for turn in record.transcript)]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def _test(record: Record) -> str:
    return f"{record.case}[{record.model}]"


def _head(record: Record) -> dict[str, Any]:
    done = record.activity.to_json() if record.activity else {}
    return {
        "skill": record.skill,
        "case": record.case,
        "agent": record.agent,
        "model": Subject.of(record.agent, record.model).model,
        "arm": record.arm,
        "run": record.run,
        "outcome": record.outcome,
        "error": record.error,
        **done,
    }


def safe_name(name: str) -> str:
    """One that any file system takes."""
    safe = _UNSAFE.sub("-", name)[:_LONGEST].strip(" .") or "unnamed"
    return f"_{safe}" if _DEVICES.match(safe) else safe


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """One for each, and none the same if letter case is ignored."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        base = safe = safe_name(name)
        number = 1
        while safe.casefold() in taken:
            number += 1
            safe = f"{base}-{number}"
        taken.add(safe.casefold())
        found[name] = safe
    return found
