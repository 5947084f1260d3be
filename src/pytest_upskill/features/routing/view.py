"""How the routing of a catalogue is shown, in each report."""

import sys
from typing import Final

from ...reports.columns import Column
from ...reports.study_tables import Block
from ...reports.terminal.layout import TerminalLook, distinct_names, text_width
from ...reports.terminal.study_lines import block_lines, max_rows, sentences
from ...reports.terminal.tables import table_lines
from .results import Routing, RoutingTable
from .tables import (
    LEGEND,
    facts_of,
    skill_table,
    wrong_table,
)

_MOST_COLUMNS: Final = 12
_LONGEST_COLUMN: Final = 16


def block(routing: Routing, most: int | None = None) -> Block:
    return Block(
        routing.title,
        facts_of(routing),
        routing.conclusions,
        skill_table(routing, most),
        LEGEND,
    )


def lines(routing: Routing, look: TerminalLook) -> list[str]:
    """Skills, what was confused, and sentences; with -v all rows."""
    most = max_rows(look)
    details = _confusions(routing, look, most)
    # What was opened instead is in the other table, too, so it goes first.
    priorities = {"opened instead": 10, "precision": 20}
    shown = block(routing, most)
    return block_lines(shown, look, details, styles={}, priorities=priorities)


def _confusions(
    routing: Routing, look: TerminalLook, most: int | None
) -> list[list[str]]:
    """What should be opened × what was, where that was wrong,
    with as many columns as fit.
    """
    if not routing.confusions:
        return []
    hidden = len({pair.expected for pair in routing.confusions}) - (most or sys.maxsize)
    more = f" ({hidden:,} more rows: -v shows them)" if hidden > 0 else ""
    title = f"Trials, by what should be opened and what was{more}"
    for number in range(_MOST_COLUMNS, 0, -1):
        matrix = _matrix(wrong_table(routing, most, number), look)
        if max(map(text_width, matrix)) <= look.width:
            break

    return [sentences([title], look), matrix]


def _matrix(contents: RoutingTable, look: TerminalLook) -> list[str]:
    names = distinct_names(contents.opened, _LONGEST_COLUMN, look.marks.cut)
    columns = [Column("expected", is_name=True)]
    for name in contents.opened:
        columns.append(Column(names[name], right=True))

    rows = []
    for name, runs in contents.rows.items():
        rows.append([name, _cell(runs[0], look, green=True)])
        rows[-1] += [_cell(number, look, red=True) for number in runs[1:]]

    return table_lines(columns, rows, look)


def _cell(number: int, look: TerminalLook, **style: bool) -> str:
    return look.paint(f"{number:,}", **style) if number else "."
