"""What studies found, on the terminal: the matrix of neighbours, parts, shorter versions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..._util.texts import counted, harmless, one_line
from ...results.effects import spent
from ...results.neighbours import (
    Matrix,
    Word,
    conclusion,
    listing_sentence,
    neighbour_only,
    open_sentences,
    shown_sentences,
)
from ...results.parts import Parts, conclusions, part_sentence
from ...results.run import RunResults
from ..study_tables import (
    ALONE,
    CURVE_HEADERS,
    PART_HEADERS,
    PartRow,
    PartWord,
    alone_cell,
    column_name,
    curve_rows,
    curve_title,
    matrix_legend,
    opening_lines,
    pair_cell,
    part_rows,
    parts_legend,
    parts_title,
)
from .layout import Look, distinct_names, wrapped
from .tables import Cell, Column, Table, first_that_fits


def study_lines(results: RunResults, look: Look) -> list[str]:
    """A block for each study, with a blank line before it; nothing without one."""
    blocks = [neighbour_lines(one, look) for one in results.matrices]
    for one in results.parts:
        blocks += [part_lines(one, look), curve_lines(one, look)]
    return [line for block in filter(None, blocks) for line in ("", *block)]


def curve_lines(found: Parts, look: Look) -> list[str]:
    """The table for a terminal, below its title."""
    rows = curve_rows(found)
    if not rows:
        return []
    columns = [Column(name, right=name == "tokens") for name in CURVE_HEADERS]
    styles = {"loses": {"red": True}, "no loss shown": {"green": True}}
    cells = [
        [*map(Cell, row.cells[:-1]), Cell(row.loss, styles.get(row.state, {}))] for row in rows
    ]
    return [curve_title(found), *Table(columns, cells).lines(look)]


_MATRIX_STYLES: Final[dict[Word, dict[str, bool]]] = {
    "hurts": {"red": True, "bold": True},
    "helps": {"green": True, "bold": True},
    "unknown": {"light": True},
    "incomplete": {"red": True},
}
_MANY: Final = 8  # skills: beyond that, the table has one column, and sentences tell the rest
_MOST_SHOWN: Final = 12
_MOST_OPEN: Final = 4  # sentences about pairs of which nothing is known
_LONGEST_NAME: Final = 24
_SHORTEST_NAME: Final = 12


def neighbour_lines(matrix: Matrix, look: Look) -> list[str]:
    """A table, then sentences; with -v all of them."""
    blocks = [
        _matrix_title(matrix, look),
        *_matrix_tables(matrix, look),
        _sentence_lines([matrix_legend(matrix)], look),
    ]
    if look.verbosity > 0:
        blocks.append(_opened(matrix, look))
    whole = look.verbosity > 0
    blocks.append(_sentence_lines(shown_sentences(matrix, None if whole else _MOST_SHOWN), look))
    rest = [*open_sentences(matrix, None if whole else _MOST_OPEN), *neighbour_only(matrix)]
    blocks.append(_sentence_lines(rest, look))
    blocks.append(_sentence_lines([listing_sentence(matrix), conclusion(matrix)], look))
    lines: list[str] = []
    for block in filter(None, blocks):
        lines += ["", *block] if lines else block
    return [line.replace("…", look.marks.cut) for line in lines]


def _matrix_title(matrix: Matrix, look: Look) -> list[str]:
    label = look.paint("Neighbours", bold=True)
    return [
        f"{label} {look.marks.dot} {one_line(matrix.model, 40)} {look.marks.dot} {spent(matrix)}"
    ]


def _sentence_lines(sentences: Sequence[str], look: Look) -> list[str]:
    return [
        line for one in sentences for line in wrapped(f"{harmless(one)}.", look.width, rest="  ")
    ]


def _matrix_tables(matrix: Matrix, look: Look) -> Iterator[list[str]]:
    """One table, or several with some of the columns each."""
    room = max(_SHORTEST_NAME, min(_LONGEST_NAME, look.width // 4))
    names = distinct_names([*matrix.skills], room, look.marks.cut)
    many = len(matrix.skills) > _MANY and look.verbosity <= 0
    columns, left = list[str | None](), [None] if many else [*matrix.columns]
    while left:
        wider = _matrix_table(matrix, [*columns, left[0]], names)
        if columns and wider.width > look.width:
            yield _matrix_table(matrix, columns, names).lines(look)
            columns = []
        columns.append(left.pop(0))
    yield _matrix_table(matrix, columns, names).lines(look)
    if many:
        yield _sentence_lines(
            ["Pairs are told below if something is shown; the HTML page has all"], look
        )


def _matrix_table(matrix: Matrix, columns: Sequence[str | None], names: Mapping[str, str]) -> Table:
    heads = [names[one] if one is not None else column_name(None) for one in columns]
    rows = [
        [
            Cell(names[one.skill]),
            Cell("\n".join(alone_cell(one))),
            *(_pair_cell(matrix, one.skill, other) for other in columns),
        ]
        for one in matrix.alone
    ]
    return Table([Column("skill"), Column(ALONE), *(Column(f"+ {head}") for head in heads)], rows)


def _pair_cell(matrix: Matrix, skill: str, other: str | None) -> Cell:
    pair = matrix.pair(skill, other)
    if pair is None:
        return Cell("-" if skill == other else "")
    return Cell("\n".join(pair_cell(pair).lines), _MATRIX_STYLES[pair.word])


def _opened(matrix: Matrix, look: Look) -> list[str]:
    """Which skill was opened where."""
    found = [(f"{one.skill} alone", one.openings) for one in matrix.alone]
    found += [(f"{one.skill} with {column_name(one.other)}", one.openings) for one in matrix.pairs]
    lines = []
    for where, openings in found:
        said = "; ".join(opening_lines(openings)) or "no skill was opened"
        if openings.trials:
            lines += wrapped(harmless(f"{where}: {said}"), look.width, rest="  ")
    return lines


_PART_STYLES: Final[dict[PartWord, dict[str, bool]]] = {
    "missed": {"red": True, "bold": True},
    "could go": {"green": True, "bold": True},
    "better without": {"green": True, "bold": True},
    "not known": {"light": True},
    "incomplete": {"red": True},
}
_RIGHT: Final = ("line", "tokens", "tokens/point")
# Columns that are dropped, and the room for names that is tried then.
_PART_LAYOUTS: Final[tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]] = (
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
    blocks = [_parts_heading(found, look)]
    if found.parts:
        table = _parts_table(found, look)
        told = parts_legend(found, [column.header for column in table.columns])
        blocks += [table.lines(look), _sentence_lines([told], look)]
        blocks.append(_sentences(found, look))
    blocks.append(_sentence_lines(last, look))
    lines: list[str] = []
    for block in filter(None, blocks):
        lines += ["", *block] if lines else block
    return [line.replace("…", look.marks.cut) for line in lines]


def _parts_heading(found: Parts, look: Look) -> list[str]:
    dot = look.marks.dot
    told = f"Parts {dot} {harmless(parts_title(found))} {dot} {spent(found)}"
    first, *rest = wrapped(told.replace("×", look.marks.times), look.width, rest="  ")
    return [first.replace("Parts", look.paint("Parts", bold=True), 1), *rest]


def _parts_table(found: Parts, look: Look) -> Table:
    rows = part_rows(found)
    layouts = ((room, dropped) for dropped, rooms in _PART_LAYOUTS for room in rooms)
    tables = (_parts_layout(rows, look, room, dropped) for room, dropped in layouts)
    return first_that_fits(tables, look.width)


def _parts_layout(rows: Sequence[PartRow], look: Look, room: int, dropped: Sequence[str]) -> Table:
    names = distinct_names([row.whole_name for row in rows], room, look.marks.cut)
    kept = [place for place, name in enumerate(PART_HEADERS) if name not in dropped]
    columns = [Column(PART_HEADERS[place], right=PART_HEADERS[place] in _RIGHT) for place in kept]
    cells = [
        [
            Cell(names[row.whole_name]),
            *map(Cell, row.cells[1:-1]),
            Cell(row.cells[-1], _PART_STYLES[row.word]),
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
    return _sentence_lines(
        [*told, *([f"{counted(more, 'more part')} in the table"] if more else [])], look
    )
