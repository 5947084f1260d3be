"""Skills in JUnit files: properties of each test case, and of the suite."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from .._util.texts import one_line, plain
from ..options import DAY
from ..results.run import RunResults
from ..results.summary import summarize
from ..results.summary_row import SummaryRow, row_of
from ..results.verdict import verdicts_of
from ..settings import Score
from ..trials.records import Record
from ..trials.subject import CHAT
from .numbers import NUMBERS

Property = tuple[str, str]
_LONGEST_NAME: Final = 200
# Meaningless for one case, or said by other numbers.
_NOT_OF_CASES: Final = ("_low", "_high", "_change", "rate_lift", "score_lift")
_OTHER_FIELDS: Final = (
    "activated",
    "activated_trials",
    "possible_lift_low",
    "possible_lift_high",
)
# In addition to what one_line escapes
_NOT_IN_XML: Final = re.compile("[\ufffe\uffff]")


def case_properties(
    records: Sequence[Record],
    score: Score = "pass",
    tags: Sequence[str] = (),
    max_age: float = DAY,
) -> Iterator[Property]:
    """The numbers of a case on a model; unknown ones are left out.
    The lift is of the ``score``.
    """
    first = records[0]
    summary = summarize(
        records, first.pair, model_id="", not_run=0, score=score, max_age=max_age
    )
    row = row_of(verdicts_of([summary])[0])
    yield "upskill_skill", first.skill
    yield "upskill_model", first.label
    if first.agent != CHAT:
        yield "upskill_agent", first.agent
    if tags:
        yield "upskill_tags", " ".join(tags)
    numbers = {**_numbers(row), "cost": _total_cost(records)}
    of_case = {
        name: value
        for name, value in numbers.items()
        if not name.endswith(_NOT_OF_CASES)
    }
    yield from _known_values("upskill_", of_case)


def suite_properties(results: RunResults) -> Iterator[Property]:
    """``upskill:SKILL:MODEL:name`` for each skill on each model, and the gate."""
    for row in results.summary:
        yield from _of_pair(results, row)
    if results.interrupted is not None:
        yield "upskill_interrupted", one_line(results.interrupted, _LONGEST_NAME)
    if results.gate.passed is not None:
        yield "upskill_gate", "passed" if results.gate.passed else "not passed"
        for number, reason in enumerate(results.gate.reasons, start=1):
            yield f"upskill_gate_reason_{number}", reason


def _of_pair(results: RunResults, row: SummaryRow) -> Iterator[Property]:
    records = [record for record in results.records if record.pair == row.pair]
    prefix = _prefix(row.skill, row.label)
    if row.verdict:
        yield f"{prefix}verdict", row.verdict
    yield f"{prefix}score", row.score
    yield from _known_values(prefix, {**_numbers(row), "cost": _total_cost(records)})


def _numbers(row: SummaryRow) -> dict[str, float | None]:
    """What tables show, by the keys of the JSON."""
    fields = [field for number in NUMBERS for field in number.field_names(row)]
    return {field: getattr(row, field) for field in (*fields, *_OTHER_FIELDS)}


def _prefix(skill: str, model: str) -> str:
    return _NOT_IN_XML.sub("?", one_line(f"upskill:{skill}:{model}:", _LONGEST_NAME))


def _known_values(prefix: str, values: dict[str, float | None]) -> Iterator[Property]:
    for name, value in values.items():
        if value is not None:
            yield f"{prefix}{name}", plain(round(value, 6)) if value else "0"


def _total_cost(records: Sequence[Record]) -> float | None:
    """The cost of all answers; None if a price is unknown."""
    costs = [record.cost for record in records if record.output is not None]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None
