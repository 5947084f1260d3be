"""A table of many skills: a row for each, whatever draws it."""

from collections.abc import Iterable, Sequence

from .._util.texts import points, span
from ..results.row import Row
from ..results.signals import Signal
from ..results.verdict import Verdict
from .columns import LIFT, Column

UNKNOWN = "-"


def skill_columns(labels: Iterable[str]) -> list[Column]:
    """``labels`` are those of the models, which have a column each."""
    columns = [
        Column("skill", is_name=True),
        Column("verdict"),
        Column("lift", right=True),
        Column("interval", right=True, priority=80),
    ]
    for number, label in enumerate(labels):
        columns.append(Column(label, right=True, priority=40 - number))
    columns.append(Column("only without", right=True, priority=70))
    columns.append(Column("both fail", right=True, priority=60))
    return columns


def skill_cells(
    verdicts: Sequence[Verdict], rows: Iterable[Row], labels: Sequence[str]
) -> list[list[str]]:
    by_label = {(row.skill, row.label): row for row in rows}
    cells = []
    for verdict in verdicts:
        lift = UNKNOWN
        interval = UNKNOWN
        if verdict.lift is not None:
            lift = points(verdict.lift)
            interval = span(verdict.lift_low or 0.0, verdict.lift_high or 0.0)
        of_skill = [by_label.get((verdict.skill, label)) for label in labels]
        texts = [verdict.skill, verdict.verdict or UNKNOWN, lift, interval]
        for row in of_skill:
            texts.append((LIFT.text(row) if row else "") or UNKNOWN)
        texts.append(_count("only without", of_skill))
        texts.append(_count("both fail", of_skill))
        cells.append(texts)
    return cells


def _count(signal: Signal, rows: Iterable[Row | None]) -> str:
    return f"{sum(row.signals.get(signal, 0) for row in rows if row):,}"
