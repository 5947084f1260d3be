"""The records of a run as CSV (RFC 4180): a row for each, for spreadsheets and scripts."""

import csv
import io
import re
from typing import Final

from ..._util.texts import plain
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
_LONGEST: Final = 32_000  # a spreadsheet's cell holds 32,767 units of UTF-16
# Not expected by programs that read CSV: controls but tab and newlines, lone surrogates.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# A spreadsheet takes these for a formula; in East Asian locales the wide forms too.
_FORMULA: Final = tuple("=+-@\t\r\n＝＋－＠")


def csv_text(results: RunResults) -> str:
    """A header, then a row for each record, in the order of the run."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)  # ends lines as RFC 4180 wants it
    writer.writerow(COLUMNS)
    for record in results.records:
        writer.writerow(_row(record, results.model_ids.get(record.model, "")))
    return text.getvalue()


def _row(record: Record, model_id: str) -> list[str | int | float | None]:
    failed = [grade.check for grade in record.checks if not grade.passed]
    return [
        safe_cell(record.skill),
        safe_cell(record.case),
        safe_cell(record.model),
        safe_cell(model_id),
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
        safe_cell("; ".join(failed)),
        record.judge_calls,
        safe_cell(record.error or ""),
        safe_cell(record.output or ""),
    ]


def safe_cell(text: str) -> str:
    """Text from outside: never a formula, never longer than a cell."""
    text = _CONTROLS.sub(lambda match: ascii(match.group())[1:-1], text)
    if text.startswith(_FORMULA):
        text = f"'{text}"
    units = text.encode("utf-16-le")
    if len(units) <= 2 * _LONGEST:
        return text
    kept = units[: 2 * _LONGEST].decode("utf-16-le", "ignore")
    return f"{kept}\n[… {len(text) - len(kept):,} more characters]"
