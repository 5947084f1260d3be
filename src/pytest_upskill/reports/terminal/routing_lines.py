"""The routing of a catalogue on a terminal: skills, what was confused, and sentences."""

from collections.abc import Sequence
from typing import Final

from ..._util.texts import harmless, one_line
from ...results.routing import Routing
from ..routing_tables import LEGEND, confused_table, facts_of, skill_table, wrong_cells
from .layout import TerminalLook, distinct_names, spaced, wrapped
from .tables import Cell, Column, Table

_MOST_ROWS: Final = 12  # with -v all
_NAMES: Final = (48, 40, 32, 24, 18)  # lengths, of which the first that fits is taken
_LONGEST_COLUMN: Final = 16
_EXPECTED: Final = "expected"


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


def _skills(headers: Sequence[str], rows: Sequence[Sequence[str]], look: TerminalLook) -> list[str]:
    """What was opened instead is in the other table, too, so it goes first."""
    if not rows:
        return []
    columns = [
        Column(name, name == "right", 20 if name == "opened instead" else 100) for name in headers
    ]
    for longest in _NAMES:
        names = distinct_names([row[0] for row in rows], longest, look.marks.cut)
        cells = [[Cell(names[name]), *(Cell(harmless(c)) for c in more)] for name, *more in rows]
        table = Table(columns, cells, drop_below=30).narrowed(look.width)
        if table.width <= look.width:
            break
    return table.lines(look)


def _confusions(routing: Routing, look: TerminalLook, most: int | None) -> list[list[str]]:
    """What should be opened × what was, where something is wrong; split if it is too wide."""
    table = confused_table(routing, most)
    if not table.rows:
        return []
    wrong, cut = wrong_cells(routing), look.marks.cut
    rows = distinct_names([*table.rows], _NAMES[-2], cut)
    names = distinct_names(table.opened, _LONGEST_COLUMN, cut)
    columns = [Column(_EXPECTED), *(Column(names[name], right=True) for name in table.opened)]
    cells = [
        [
            Cell(rows[row]),
            *(
                Cell(f"{number:,}" if number else ".", _style(number, (row, name) in wrong))
                for name, number in zip(table.opened, runs, strict=True)
            ),
        ]
        for row, runs in table.rows.items()
    ]
    hidden = len({pair.expected for pair in routing.confusions}) - len(table.rows)
    more = f"; {hidden:,} more with -v" if hidden > 0 else ""
    title = f"Trials by what was opened, of queries where that was wrong{more}"
    blocks = [part.lines(look) for part in Table(columns, cells).split(look.width)]
    return [sentences([one_line(title, None)], look), *blocks]


def _style(number: int, is_wrong: bool) -> dict[str, bool]:
    if not number:
        return {"light": True}
    return {"red": True, "bold": True} if is_wrong else {"green": True}


def sentences(lines: Sequence[str], look: TerminalLook) -> list[str]:
    return [
        line
        for sentence in lines
        for line in wrapped(f"{harmless(sentence)}.", look.width, rest="  ")
    ]
