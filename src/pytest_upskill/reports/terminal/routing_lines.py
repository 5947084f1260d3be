"""The routing of a catalogue on a terminal: skills, what was confused, and
sentences.
"""

import sys
from collections.abc import Sequence
from typing import Final

from ..._util.texts import harmless
from ...results.routing import Routing, RoutingTable
from ..routing_tables import LEGEND, facts_of, skill_table, wrong_table
from .layout import TerminalLook, distinct_names, spaced, wrapped
from .tables import Cell, Column, Table

_MOST_ROWS: Final = 12  # with -v all
_MOST_COLUMNS: Final = 12
# lengths, of which the first that fits is taken
_NAMES: Final = (48, 40, 32, 24, 18, 12)
_LONGEST_ROW: Final = 24
_LONGEST_COLUMN: Final = 16
_NONE: Final = Cell(".", {"light": True})


def routing_lines(routings: Sequence[Routing], look: TerminalLook) -> list[str]:
    """A block for each routing, with a blank line before it."""
    return [line for routing in routings for line in ("", *_routing(routing, look))]


def _routing(routing: Routing, look: TerminalLook) -> list[str]:
    dot, verbose = look.marks.dot, look.verbosity > 0
    title = harmless(f"{routing.title} {dot} {facts_of(routing, dot)}")
    first, *more = wrapped(title.replace("×", look.marks.times), look.width, rest="  ")
    most = None if verbose else _MOST_ROWS
    skills = skill_table(routing, most)
    folded = [f"{skills.folded} (-v shows them)"] if skills.folded else []
    blocks = [
        [look.paint(first, bold=True), *more],
        _skills(skills.headers, skills.rows, look),
        sentences([*folded, LEGEND], look),
        *_confusions(routing, look, most),
        sentences(routing.conclusions, look),
    ]
    return [line.replace("…", look.marks.cut) for line in spaced(blocks)]


def _skills(
    headers: Sequence[str], rows: Sequence[Sequence[str]], look: TerminalLook
) -> list[str]:
    """What was opened instead is in the other table, too, so it goes first."""
    if not rows:
        return []
    columns = [
        Column(name, name == "right", 20 if name == "opened instead" else 100)
        for name in headers
    ]
    for longest in _NAMES:
        names = distinct_names([row[0] for row in rows], longest, look.marks.cut)
        cells = [
            [Cell(names[name]), *(Cell(harmless(c)) for c in more)]
            for name, *more in rows
        ]
        table = Table(columns, cells, drop_below=30).narrowed(look.width)
        if table.width <= look.width:
            break
    return table.lines(look)


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


def sentences(lines: Sequence[str], look: TerminalLook) -> list[str]:
    return [
        line
        for sentence in lines
        for line in wrapped(f"{harmless(sentence)}.", look.width, rest="  ")
    ]
