"""How the routing of a catalogue is shown, in each report."""

import sys
from typing import Any, Final

from ..._util.json_forms import json_values
from ...reports.study_tables import Block
from ...reports.terminal.layout import TerminalLook, distinct_names
from ...reports.terminal.study_lines import block_lines, most_rows, sentences
from ...reports.terminal.tables import Cell, Column, Table
from .results import Routing, RoutingTable
from .tables import (
    LEGEND,
    confused_table,
    facts_of,
    skill_table,
    wrong_cells,
    wrong_table,
)

_MOST_COLUMNS: Final = 12
_LONGEST_ROW: Final = 24
_LONGEST_COLUMN: Final = 16
_NONE: Final = Cell(".", {"light": True})


def block(routing: Routing, most: int | None = None) -> Block:
    return Block(
        routing.title,
        facts_of(routing),
        routing.conclusions,
        skill_table(routing, most),
        LEGEND,
    )


def page_values(routing: Routing) -> dict[str, Any]:
    return {
        "confused": json_values(confused_table(routing)),
        "wrong": sorted(wrong_cells(routing)),
    }


def lines(routing: Routing, look: TerminalLook) -> list[str]:
    """Skills, what was confused, and sentences; with -v all rows."""
    most = most_rows(look)
    details = _confusions(routing, look, most)
    # What was opened instead is in the other table, too, so it goes first.
    priorities = {"opened instead": 10}
    return block_lines(block(routing, most), look, details, {}, priorities)


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
        table = _matrix(wrong_table(routing, most, number), look)
        if table.width <= look.width:
            break
    return [sentences([title], look), table.lines(look)]


def _matrix(contents: RoutingTable, look: TerminalLook) -> Table:
    cut = look.marks.cut
    rows = distinct_names([*contents.rows], _LONGEST_ROW, cut)
    names = distinct_names(contents.opened, _LONGEST_COLUMN, cut)
    columns = [
        Column("expected"),
        *(Column(names[name], right=True) for name in contents.opened),
    ]
    cells = [
        [
            Cell(rows[row]),
            *(_cell(number, place > 0) for place, number in enumerate(runs)),
        ]
        for row, runs in contents.rows.items()
    ]
    return Table(columns, cells)


def _cell(number: int, is_wrong: bool) -> Cell:
    return (
        Cell(f"{number:,}", {"red": True} if is_wrong else {"green": True})
        if number
        else _NONE
    )
