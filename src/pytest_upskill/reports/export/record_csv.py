"""The records of a run as CSV (RFC 4180): a row for each, for spreadsheets and scripts."""

import csv
import io
import re
from typing import Final

from ...results.run import RunResults
from ...trials.records import Record

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
)
# A cell of a spreadsheet holds 32,767 units of UTF-16, and what it says of the rest needs room.
_LONGEST: Final = 32_000
# What no program that reads CSV expects: controls but tab and the ends of lines, lone surrogates.
_ODD: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# What a spreadsheet takes for a formula, in East Asian locales in its wide forms too.
_FORMULA: Final = tuple("=+-@\t\r\n＝＋－＠")


def csv_text(results: RunResults) -> str:
    """A header, then a row for each record, in the order of the run."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)  # its ends of lines are those of RFC 4180
    writer.writerow(COLUMNS)
    for record in results.records:
        writer.writerow(_row(record, results.model_ids.get(record.model, "")))
    return text.getvalue()


def _row(record: Record, model_id: str) -> list[str | int | float | None]:
    failed = [grade.check for grade in record.checks if not grade.passed]
    return [
        _cell(record.skill),
        _cell(record.case),
        _cell(record.model),
        _cell(model_id),
        record.arm,
        record.run,
        record.outcome,
        record.score,
        record.input_tokens,
        record.output_tokens,
        record.cached_tokens,
        record.cost,
        record.seconds,
        "true" if record.stored else "false",
        len(record.checks) - len(failed),
        len(record.checks),
        _cell("; ".join(failed)),
        record.judge_calls,
        _cell(record.error or ""),
        _cell(record.output or ""),
    ]


def _cell(text: str) -> str:
    """Text from models and files: never a formula, never longer than a cell."""
    text = _ODD.sub(lambda match: ascii(match.group())[1:-1], text)
    if text.startswith(_FORMULA):
        text = f"'{text}"
    units = text.encode("utf-16-le")
    if len(units) <= 2 * _LONGEST:
        return text
    kept = units[: 2 * _LONGEST].decode("utf-16-le", "ignore")
    return f"{kept}\n[… {len(text) - len(kept):,} more characters]"
