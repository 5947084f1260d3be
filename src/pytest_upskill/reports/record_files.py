"""The records of a run as files: CSV (RFC 4180),
and a transcript for each trial of an agent.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .._util.json_forms import json_values
from .._util.texts import plain
from ..results.run import RunResults
from ..trials.records import Record

COLUMNS: Final = (
    "skill",
    "case",
    "model",
    "model_id",
    "arm",
    "run",
    "outcome",
    "score",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cost",
    "seconds",
    "stored",
    "checks_passed",
    "checks_total",
    "failed_checks",
    "judge_calls",
    "error",
    "answer",
    "agent",
    "turns",
    "tool_calls",
    "activated",
    "tags",
    "opened",
)
_LONGEST: Final = 32_000  # a spreadsheet's cell holds 32,767 units of UTF-16
# Not expected by programs that read CSV: controls but tab and newlines,
# lone surrogates.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# A spreadsheet takes these for a formula, in East Asian locales the wide forms too, and
# some drop what can't be seen before them.
_FORMULA: Final = re.compile(
    "[\t\r\n]|[\\s\xad\u200b-\u200f\u2060\ufeff]*[=+@＝＋－＠-]"
)
_NUMBER: Final = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?(e[+-]?[0-9]{1,3})?")


def csv_text(results: RunResults) -> str:
    """A header, then a row for each record, in the order of the run."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)  # with the line ends of RFC 4180
    writer.writerow(COLUMNS)
    tags = {(test.pair, test.case): " ".join(test.tags) for test in results.tests}
    for record in results.records:
        row = _row(record, results.model_ids.get(record.label, ""))
        tags_of_test = tags.get((record.pair, record.case), "")
        writer.writerow(map(safe_cell, [*row, tags_of_test, _opened(record)]))
    return text.getvalue()


def _row(record: Record, model_id: str) -> list[str | int | float | None]:
    failed = [grade.label for grade in record.checks if not grade.passed]
    activity = record.activity
    return [
        record.skill,
        record.case,
        record.model,
        model_id,
        record.arm,
        record.run,
        record.outcome,
        record.score,
        record.input_tokens,
        record.output_tokens,
        record.cached_tokens,
        None if record.cost is None else plain(record.cost),
        record.seconds,
        "true" if record.stored else "false",
        len(record.checks) - len(failed),
        len(record.checks),
        "; ".join(failed),
        record.judge_calls,
        record.error or "",
        record.output or "",
        record.agent,
        activity.turns if activity else None,
        activity.tool_calls if activity else None,
        _truth(activity.activated if activity else None),
    ]


def _truth(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def _opened(record: Record) -> str:
    """The skills that were opened."""
    return "; ".join(record.activity.opened) if record.activity else ""


def safe_cell(value: object) -> str:
    """Any value as text that is no formula and fits a cell; numbers stay numbers."""
    text = "" if value is None else str(value)
    if _NUMBER.fullmatch(text):
        return text
    text = _CONTROLS.sub(lambda match: ascii(match.group())[1:-1], text)
    if _FORMULA.match(text):
        text = f"'{text}"
    units = text.encode("utf-16-le")
    if len(units) <= 2 * _LONGEST:
        return text
    cut = units[: 2 * _LONGEST].decode("utf-16-le", "ignore")
    return f"{cut}\n[… {len(text) - len(cut):,} more characters]"


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
