"""Skills in JUnit files: properties of each test case, and of the suite."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..._util.texts import one_line, plain
from ...options import DAY
from ...results.row import Row
from ...results.run import RunResults
from ...results.summary import RowFacts, summarize
from ...results.verdict import judge_rows
from ...settings import Score
from ...trials.records import Record
from ...trials.subject import CHAT

Property = tuple[str, str]
_MAX_NAME_LENGTH: Final = 200
# By their names in the JSON.
_NUMBERS_OF_CASE: Final = (
    "runs",
    "baseline_rate",
    "skill_rate",
    "lift",
    "baseline_tokens",
    "skill_tokens",
    "baseline_cost",
    "skill_cost",
    "checks_passed",
    "checks_total",
)
_VALUES_OF_ROW: Final = (
    *_NUMBERS_OF_CASE,
    "verdict",
    "score",
    "cases",
    "lift_low",
    "lift_high",
    "p_value",
    "token_change",
    "errored",
)
_SHARES_OF_ROW: Final = ("activation", "recall", "false_alarms")
# In addition to what one_line escapes
_NOT_IN_XML: Final = re.compile("[\ufffe\uffff]")


def case_properties(
    records: Sequence[Record],
    score: Score = "pass",
    *,
    tags: Sequence[str] = (),
    max_age: float = DAY,
) -> Iterator[Property]:
    """The numbers of a case on a model; unknown ones are left out."""
    facts = RowFacts(score=score, tests={}, max_age=max_age)
    (row,) = judge_rows([summarize(records, records[0].pair, facts)], {})

    yield "upskill_skill", row.skill
    yield "upskill_model", row.label
    if row.agent != CHAT:
        yield "upskill_agent", row.agent
    if tags:
        yield "upskill_tags", " ".join(tags)

    for case in row.by_case:
        if case.signal:
            yield "upskill_signal", case.signal
            yield "upskill_signal_shown", str(case.signal_shown).lower()
    yield from _known_values("upskill_", row, _NUMBERS_OF_CASE)


def suite_properties(results: RunResults) -> Iterator[Property]:
    """``upskill:SKILL:MODEL:name`` for each skill on each model, and the gate."""
    for row in results.summary:
        name = one_line(f"upskill:{row.skill}:{row.label}:", _MAX_NAME_LENGTH)
        prefix = _NOT_IN_XML.sub("?", name)
        yield from _known_values(prefix, row, _VALUES_OF_ROW)
        for share in _SHARES_OF_ROW:
            if value := getattr(row, share):
                yield prefix + share, plain(round(value.rate, 6))

    if results.interrupted is not None:
        yield "upskill_interrupted", one_line(results.interrupted, _MAX_NAME_LENGTH)
    if results.gate.passed is not None:
        yield "upskill_gate", "passed" if results.gate.passed else "not passed"
        for number, reason in enumerate(results.gate.reasons, start=1):
            yield f"upskill_gate_reason_{number}", reason


def _known_values(prefix: str, row: Row, names: Sequence[str]) -> Iterator[Property]:
    for name in names:
        value: Any = getattr(row, name)
        if isinstance(value, float):
            value = plain(round(value, 6))
        if value is not None:
            yield prefix + name, str(value)
