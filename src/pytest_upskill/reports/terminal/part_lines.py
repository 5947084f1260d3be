"""The parts of a skill in a terminal: a table, then sentences, what could go last."""

from collections.abc import Sequence
from typing import Final

from ..._util.texts import counted, harmless
from ...results.effects import spent
from ...results.parts import Parts, conclusions, part_sentence
from ..parts import HEADERS, PartRow, Word, legend, part_rows, parts_title
from .layout import Look, distinct_names, wrapped
from .tables import Cell, Column, Table, first_that_fits

_STYLES: Final[dict[Word, dict[str, bool]]] = {
    "missed": {"red": True, "bold": True},
    "could go": {"green": True, "bold": True},
    "better without": {"green": True, "bold": True},
    "not known": {"light": True},
    "incomplete": {"red": True},
}
_RIGHT: Final = ("line", "tokens", "tokens/point")
# Columns that are dropped, and the room for names that is tried then.
_LAYOUTS: Final[tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]] = (
    ((), (40, 30, 24)),
    (("saved",), (40, 30, 24, 18)),
    (("saved", "line"), (24, 18, 12)),
    (("saved", "line", "tokens/point"), (24, 18, 12)),
)
_MOST_SENTENCES: Final = 8


def part_lines(found: Parts, look: Look) -> list[str]:
    """A table, then sentences; with -v all of them."""
    last = conclusions(found)
    if not last:
        return []
    blocks = [_title(found, look)]
    if found.parts:
        table = _table(found, look)
        told = legend(found, [column.header for column in table.columns])
        blocks += [table.lines(look), _said([told], look)]
        blocks.append(_sentences(found, look))
    blocks.append(_said(last, look))
    lines: list[str] = []
    for block in filter(None, blocks):
        lines += ["", *block] if lines else block
    return [line.replace("…", look.marks.cut) for line in lines]


def _title(found: Parts, look: Look) -> list[str]:
    dot = look.marks.dot
    told = f"Parts {dot} {harmless(parts_title(found))} {dot} {spent(found)}"
    first, *rest = wrapped(told.replace("×", look.marks.times), look.width, rest="  ")
    return [first.replace("Parts", look.paint("Parts", bold=True), 1), *rest]


def _table(found: Parts, look: Look) -> Table:
    rows = part_rows(found)
    layouts = ((room, dropped) for dropped, rooms in _LAYOUTS for room in rooms)
    tables = (_layout(rows, look, room, dropped) for room, dropped in layouts)
    return first_that_fits(tables, look.width)


def _layout(rows: Sequence[PartRow], look: Look, room: int, dropped: Sequence[str]) -> Table:
    names = distinct_names([row.whole_name for row in rows], room, look.marks.cut)
    kept = [place for place, name in enumerate(HEADERS) if name not in dropped]
    columns = [Column(HEADERS[place], right=HEADERS[place] in _RIGHT) for place in kept]
    cells = [
        [
            Cell(names[row.whole_name]),
            *map(Cell, row.cells[1:-1]),
            Cell(row.cells[-1], _STYLES[row.word]),
        ]
        for row in rows
    ]
    return Table(columns, [[row[place] for place in kept] for row in cells])


def _sentences(found: Parts, look: Look) -> list[str]:
    parts = found.sorted
    if look.verbosity <= 0 and len(parts) > _MOST_SENTENCES:
        parts = [one for one in parts if one.standing(found.margin) != "not known"]
        parts = parts[:_MOST_SENTENCES]
    more = len(found.parts) - len(parts)
    told = [part_sentence(one, found.margin) for one in parts]
    return _said([*told, *([f"{counted(more, 'more part')} in the table"] if more else [])], look)


def _said(sentences: Sequence[str], look: Look) -> list[str]:
    return [
        line for one in sentences for line in wrapped(f"{harmless(one)}.", look.width, rest="  ")
    ]
