"""What studies found, on the terminal: the matrix of neighbours, parts, shorter versions."""

from collections.abc import Sequence
from typing import Final

from ..._util.texts import counted, harmless, one_line
from ...results.neighbours import (
    Matrix,
    PairVerdict,
    conclusion,
    listing_sentence,
    neighbour_only,
    open_sentences,
    shown_sentences,
)
from ...results.part_effects import Parts, part_conclusions, part_sentence
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
from .layout import TerminalLook, distinct_names, spaced, wrapped
from .tables import KEEP, Cell, Column, Style, Table, fitted


def study_lines(results: RunResults, look: TerminalLook) -> list[str]:
    """A block for each study, with a blank line before it; nothing without one."""
    blocks = [neighbour_lines(matrix, look) for matrix in results.matrices]
    for parts in results.parts:
        blocks += [part_lines(parts, look), curve_lines(parts, look)]
    return [line for block in filter(None, blocks) for line in ("", *block)]


def _sentences(sentences: Sequence[str], look: TerminalLook) -> list[str]:
    return [
        line
        for sentence in sentences
        for line in wrapped(f"{harmless(sentence)}.", look.width, rest="  ")
    ]


# The matrix of neighbours.

_MATRIX_STYLES: Final[dict[PairVerdict, Style]] = {
    "hurts": {"red": True, "bold": True},
    "helps": {"green": True, "bold": True},
    "unknown": {"light": True},
    "incomplete": {"red": True},
}
_MANY: Final = 8  # skills: beyond that, the table has one column, and sentences name the pairs
_MOST_SHOWN: Final = 12
_MOST_OPEN: Final = 4  # sentences about pairs of which nothing is known
_LONGEST_NAME: Final = 24
_SHORTEST_NAME: Final = 12


def neighbour_lines(matrix: Matrix, look: TerminalLook) -> list[str]:
    """A table, then sentences; with -v all of them."""
    verbose = look.verbosity > 0
    few = len(matrix.skills) <= _MANY or verbose
    label, dot = look.paint("Neighbours", bold=True), look.marks.dot
    title = f"{label} {dot} {one_line(matrix.label, 40)} {dot} {matrix.spent}"
    table = _matrix_table(matrix, matrix.columns if few else [None], look)
    hint = "Only pairs with an effect are listed below; the HTML page has all"
    unclear = [*open_sentences(matrix, None if verbose else _MOST_OPEN), *neighbour_only(matrix)]
    blocks = [
        [title],
        *(split.lines(look) for split in table.split(look.width, repeated=2)),
        [] if few else _sentences([hint], look),
        _sentences([matrix_legend(matrix)], look),
        _openings(matrix, look) if verbose else [],
        _sentences(shown_sentences(matrix, None if verbose else _MOST_SHOWN), look),
        _sentences(unclear, look),
        _sentences([listing_sentence(matrix), conclusion(matrix)], look),
    ]
    return [line.replace("…", look.marks.cut) for line in spaced(blocks)]


def _matrix_table(matrix: Matrix, others: Sequence[str | None], look: TerminalLook) -> Table:
    longest = max(_SHORTEST_NAME, min(_LONGEST_NAME, look.width // 4))
    names = distinct_names([*matrix.skills], longest, look.marks.cut)
    heads = [column_name(None) if other is None else names[other] for other in others]
    rows = [
        [
            Cell(names[alone.skill]),
            Cell("\n".join(alone_cell(alone))),
            *(_matrix_cell(matrix, alone.skill, other) for other in others),
        ]
        for alone in matrix.alone
    ]
    return Table([Column("skill"), Column(ALONE), *(Column(f"+ {head}") for head in heads)], rows)


def _matrix_cell(matrix: Matrix, skill: str, other: str | None) -> Cell:
    pair = matrix.pair(skill, other)
    if pair is None:
        return Cell("-" if skill == other else "")
    return Cell("\n".join(pair_cell(pair).lines), _MATRIX_STYLES[pair.verdict])


def _openings(matrix: Matrix, look: TerminalLook) -> list[str]:
    """Which skill was opened where."""
    places = [(f"{alone.skill} alone", alone.openings) for alone in matrix.alone]
    places += [
        (f"{pair.skill} with {column_name(pair.other)}", pair.openings) for pair in matrix.pairs
    ]
    lines = []
    for place, openings in places:
        opened = "; ".join(opening_lines(openings)) or "no skill was opened"
        if openings.trials:
            lines += wrapped(harmless(f"{place}: {opened}"), look.width, rest="  ")
    return lines


# The parts of a skill.

_PART_STYLES: Final[dict[PartWord, Style]] = {
    "missed": {"red": True, "bold": True},
    "could go": {"green": True, "bold": True},
    "better without": {"green": True, "bold": True},
    "not known": {"light": True},
    "incomplete": {"red": True},
}
_NUMERIC: Final = ("line", "tokens", "tokens/point")
_PRIORITIES: Final = {"saved": 10, "line": 20, "tokens/point": 30}
# The length of names, and which columns may be dropped then.
_PART_LAYOUTS: Final = ((40, 0), (30, 0), (24, 0), (30, 11), (18, 11), (18, 21), (12, 31))
_MOST_SENTENCES: Final = 8


def part_lines(parts: Parts, look: TerminalLook) -> list[str]:
    """A table, then sentences; with -v all of them."""
    last = part_conclusions(parts)
    if not last:
        return []
    dot = look.marks.dot
    heading = f"Parts {dot} {harmless(parts_title(parts))} {dot} {parts.spent}"
    first, *rest = wrapped(heading.replace("×", look.marks.times), look.width, rest="  ")
    blocks = [[first.replace("Parts", look.paint("Parts", bold=True), 1), *rest]]
    if parts.parts:
        rows = part_rows(parts)
        layouts = (_parts_table(rows, look, *layout) for layout in _PART_LAYOUTS)
        table = fitted(layouts, look.width)
        legend = parts_legend(parts, [column.header for column in table.columns])
        blocks += [table.lines(look), _sentences([legend], look)]
        blocks.append(_sentences(_part_sentences(parts, look), look))
    blocks.append(_sentences(last, look))
    return [line.replace("…", look.marks.cut) for line in spaced(blocks)]


def _parts_table(
    rows: Sequence[PartRow], look: TerminalLook, longest: int, drop_below: int
) -> Table:
    names = distinct_names([row.full_name for row in rows], longest, look.marks.cut)
    columns = [Column(name, name in _NUMERIC, _PRIORITIES.get(name, KEEP)) for name in PART_HEADERS]
    cells = [
        [
            Cell(names[row.full_name]),
            *map(Cell, row.cells[1:-1]),
            Cell(row.cells[-1], _PART_STYLES[row.word]),
        ]
        for row in rows
    ]
    return Table(columns, cells, drop_below=drop_below)


def _part_sentences(parts: Parts, look: TerminalLook) -> list[str]:
    shown = parts.sorted
    if look.verbosity <= 0 and len(shown) > _MOST_SENTENCES:
        shown = [part for part in shown if part.standing(parts.margin) != "not known"]
        shown = shown[:_MOST_SENTENCES]
    sentences = [part_sentence(part, parts.margin) for part in shown]
    hidden = len(parts.parts) - len(shown)
    return [*sentences, f"{counted(hidden, 'more part')} in the table"] if hidden else sentences


# Shorter versions of a skill.

_LOSS_STYLES: Final = {"loses": {"red": True}, "no loss shown": {"green": True}}


def curve_lines(parts: Parts, look: TerminalLook) -> list[str]:
    """The table below its title; nothing without versions."""
    rows = curve_rows(parts)
    if not rows:
        return []
    columns = [Column(name, right=name == "tokens") for name in CURVE_HEADERS]
    cells = [
        [*map(Cell, row.cells[:-1]), Cell(row.loss, _LOSS_STYLES.get(row.state, {}))]
        for row in rows
    ]
    return [curve_title(parts), *Table(columns, cells).lines(look)]
