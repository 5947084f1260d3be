"""The tables of a routing, for the terminal, Markdown and the page."""

from collections.abc import Mapping, Set
from typing import Final

from .._util.texts import one_line
from ..results.routing import Routing, RoutingTable, SkillRouting
from .study_tables import StudyTable

LEGEND: Final = (
    "Recall is over the queries for a skill, precision over those that opened it; the skill that "
    "is opened first decides"
)
_UNKNOWN: Final = "–"
_MOST_NAMES: Final = 3


def skill_table(routing: Routing, most: int | None = None) -> StudyTable:
    """A row for each skill; of more than ``most``, only those of which something is wrong."""
    rows = list(routing.by_skill)
    if most is not None and len(rows) > most:
        rows = sorted(filter(_is_wrong, rows), key=_rank)[:most]
    hidden = [row for row in routing.by_skill if row not in rows]
    counts = {
        "wrong": sum(map(_is_wrong, hidden)),
        "right": sum(not _is_wrong(row) and row.queries > 0 for row in hidden),
        "without a query": sum(not _is_wrong(row) and not row.queries for row in hidden),
    }
    words = ", ".join(f"{number:,} {word}" for word, number in counts.items() if number)
    headers = ("skill", "right", "recall", "precision", "opened instead")
    if not rows:
        return StudyTable((), (), folded=f"{len(hidden):,} skills: {words}")
    folded = f"{len(hidden):,} more: {words}" if hidden else ""
    return StudyTable.of(headers, [_row(row) for row in rows], folded=folded)


def _is_wrong(row: SkillRouting) -> bool:
    return any(share is not None and share.rate < 1 for share in (row.recall, row.precision))


def _rank(row: SkillRouting) -> tuple[float, float]:
    """The worst first."""
    return (
        row.recall.rate if row.recall else 1.0,
        row.precision.rate if row.precision else 1.0,
    )


def _row(row: SkillRouting) -> tuple[str, ...]:
    """``pdf``, ``3 of 5``, ``60% (23% to 88%)``, ``75% (30% to 95%)``, ``docx 1, (none) 1``."""
    return (
        row.name,
        f"{row.right:,} of {row.queries:,}" if row.queries else _UNKNOWN,
        row.recall.words if row.recall else _UNKNOWN,
        row.precision.words if row.precision else _UNKNOWN,
        instead_words(row.instead) or _UNKNOWN,
    )


def instead_words(instead: Mapping[str, int]) -> str:
    """``docx 3, (none) 1``."""
    named = [f"{one_line(name, 30)} {runs:,}" for name, runs in [*instead.items()][:_MOST_NAMES]]
    hidden = len(instead) - _MOST_NAMES
    return ", ".join([*named, *([f"{hidden:,} more"] if hidden > 0 else [])])


def confused_table(routing: Routing, most: int | None = None) -> RoutingTable:
    """The rows and columns of the table with something wrong, of at most so many rows."""
    rows = dict.fromkeys(pair.expected for pair in routing.confusions)
    chosen = set([*rows][:most])
    pairs = [pair for pair in routing.confusions if pair.expected in chosen]
    columns = chosen | {pair.opened for pair in pairs}
    columns |= {name for query in routing.queries if query.row in chosen for name in query.expected}
    places = [place for place, name in enumerate(routing.table.opened) if name in columns]
    return RoutingTable(
        tuple(routing.table.opened[place] for place in places),
        {
            row: tuple(runs[place] for place in places)
            for row, runs in routing.table.rows.items()
            if row in chosen
        },
    )


def wrong_cells(routing: Routing) -> Set[tuple[str, str]]:
    """Rows and columns of the table where what was opened is wrong."""
    return {(pair.expected, pair.opened) for pair in routing.confusions}


def facts_of(routing: Routing, dot: str = "·") -> str:
    """``haiku · 24 skills, 61 queries × 1 run · 61 trials``."""
    return f" {dot} ".join((one_line(routing.label, 60), routing.size, routing.spent))
