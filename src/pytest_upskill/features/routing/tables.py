"""The tables of a routing, for the terminal, Markdown and the page."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from ..._util.texts import counted, one_line
from ...reports.study_tables import StudyTable
from .results import Routing, RoutingTable, SkillRouting

LEGEND: Final = (
    "Recall is over the queries for a skill, precision over those that opened it; the"
    " skill that is opened first decides"
)
_UNKNOWN: Final = "-"
_MOST_NAMES: Final = 3


def skill_table(routing: Routing, most: int | None = None) -> StudyTable:
    """The skills, the worst first; of more than ``most``,
    only those with something wrong.
    """
    rows = every = sorted(routing.by_skill, key=_rank)
    if most is not None and len(every) > most:
        rows = [row for row in every if _is_wrong(row)][:most]
    hidden = every[len(rows) :]
    counts = Counter(map(_word, hidden))
    words = ", ".join(f"{number:,} {word}" for word, number in counts.items())
    headers = ("skill", "right", "recall", "precision", "opened instead")
    if not rows:
        return StudyTable((), (), folded=f"{len(hidden):,} skills: {words}")
    folded = f"{len(hidden):,} more: {words}" if hidden else ""
    return StudyTable.of(headers, [_row(row) for row in rows], folded=folded)


def _word(row: SkillRouting) -> str:
    if _is_wrong(row):
        return "wrong"
    return (
        "right"
        if row.recall
        else "without a result"
        if row.queries
        else "without a query"
    )


def _is_wrong(row: SkillRouting) -> bool:
    return any(
        share is not None and share.rate < 1 for share in (row.recall, row.precision)
    )


def _rank(row: SkillRouting) -> tuple[bool, float, str]:
    """By the lower of recall and precision, as far as so many queries show them."""
    bounds = [share.interval.high for share in (row.recall, row.precision) if share]
    return not _is_wrong(row), min(bounds, default=1.0), row.name


def _row(row: SkillRouting) -> tuple[str, ...]:
    """``pdf``, ``3 of 5``, ``60% (23% to 88%)``, ``75% (30% to 95%)``, ``docx 1,
    (none) 1``.
    """
    return (
        row.name,
        f"{row.right:,} of {row.queries:,}" if row.queries else _UNKNOWN,
        row.recall.words if row.recall else _UNKNOWN,
        row.precision.words if row.precision else _UNKNOWN,
        instead_words(row.instead) or _UNKNOWN,
    )


def instead_words(instead: Mapping[str, int]) -> str:
    """``docx 3, (none) 1``."""
    named = [
        f"{one_line(name, 30)} {runs:,}"
        for name, runs in [*instead.items()][:_MOST_NAMES]
    ]
    hidden = len(instead) - _MOST_NAMES
    return ", ".join([*named, *([f"{hidden:,} more"] if hidden > 0 else [])])


def wrong_table(
    routing: Routing, most_rows: int | None, most_columns: int
) -> RoutingTable:
    """The rows with something wrong: what was opened wrongly, the most frequent first.

    What was right is the first column, and what there is no room for is the last.
    """
    rows = [*dict.fromkeys(pair.expected for pair in routing.confusions)][:most_rows]
    runs = {(pair.expected, pair.opened): pair.runs for pair in routing.confusions}
    often = Counter[str]()
    for (row, name), number in runs.items():
        often[name] += number if row in rows else 0
    names = [name for name, number in often.most_common() if number]
    others = names[most_columns:]
    names = names[:most_columns]

    def cells(row: str) -> tuple[int, ...]:
        wrong = [runs.get((row, name), 0) for name in names]
        hidden = sum(runs.get((row, name), 0) for name in others)
        right = sum(routing.table.rows[row]) - sum(wrong) - hidden
        return (right, *wrong, *((hidden,) if others else ()))

    columns = ("right", *names, *((counted(len(others), "other"),) if others else ()))
    return RoutingTable(columns, {row: cells(row) for row in rows})


def facts_of(routing: Routing) -> str:
    """``haiku · 24 skills, 61 queries × 1 run · 61 trials``."""
    return " · ".join((one_line(routing.label, 60), routing.size, routing.spent))
