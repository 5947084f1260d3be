"""The records of a run as CSV (RFC 4180): a row for each, for spreadsheets and scripts."""

import csv
import io
import re
from typing import Final

from ..._util.texts import plain
from ...results.run import RunResults
from ...trials.records import Record
from ...trials.subject import Subject

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
    "should_trigger",
    "opened",
)
_LONGEST: Final = 32_000  # a spreadsheet's cell holds 32,767 units of UTF-16
# Not expected by programs that read CSV: controls but tab and newlines, lone surrogates.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# A spreadsheet takes these for a formula, in East Asian locales the wide forms too, and some drop
# what can't be seen before them.
_FORMULA: Final = re.compile("[\t\r\n]|[\\s\xad\u200b-\u200f\u2060\ufeff]*[=+@＝＋－＠-]")
_NUMBER: Final = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?(e[+-]?[0-9]{1,3})?")


def csv_text(results: RunResults) -> str:
    """A header, then a row for each record, in the order of the run."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)  # ends lines as RFC 4180 wants it
    writer.writerow(COLUMNS)
    should = {(*test.pair, test.case): test.should_trigger for test in results.triggers}
    for records, wanted in ((results.records, {}), (results.trigger_records, should)):
        for record in records:
            needs = wanted.get((record.skill, record.model, record.case))
            row = _row(record, results.model_ids.get(record.model, ""))
            writer.writerow(map(safe_cell, [*row, _truth(needs), _opened(record)]))
    return text.getvalue()


def _row(record: Record, model_id: str) -> list[str | int | float | None]:
    failed = [grade.check for grade in record.checks if not grade.passed]
    done = record.activity
    return [
        record.skill,
        record.case,
        Subject.of(record.agent, record.model).model,
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
        done.turns if done else None,
        done.tool_calls if done else None,
        _truth(done.activated if done else None),
    ]


def _truth(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def _opened(record: Record) -> str:
    """The skills that were opened."""
    return "; ".join(record.activity.opened) if record.activity else ""


def safe_cell(value: object) -> str:
    """Any value as text: never a formula, never longer than a cell; a number stays one."""
    text = "" if value is None else str(value)
    if _NUMBER.fullmatch(text):
        return text
    text = _CONTROLS.sub(lambda match: ascii(match.group())[1:-1], text)
    if _FORMULA.match(text):
        text = f"'{text}"
    units = text.encode("utf-16-le")
    if len(units) <= 2 * _LONGEST:
        return text
    kept = units[: 2 * _LONGEST].decode("utf-16-le", "ignore")
    return f"{kept}\n[… {len(text) - len(kept):,} more characters]"
