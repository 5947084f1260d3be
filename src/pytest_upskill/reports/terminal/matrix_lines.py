"""The matrix of neighbours in a terminal: a table, then sentences, the worst first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..._util.texts import harmless, one_line
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
from ..neighbours import ALONE, alone_cell, column_name, legend, opening_lines, pair_cell
from .layout import Look, distinct_names, wrapped
from .tables import Cell, Column, Table

_STYLES: Final[dict[Word, dict[str, bool]]] = {
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
    blocks = [_title(matrix, look), *_tables(matrix, look), _said([legend(matrix)], look)]
    if look.verbosity > 0:
        blocks.append(_opened(matrix, look))
    whole = look.verbosity > 0
    blocks.append(_said(shown_sentences(matrix, None if whole else _MOST_SHOWN), look))
    rest = [*open_sentences(matrix, None if whole else _MOST_OPEN), *neighbour_only(matrix)]
    blocks.append(_said(rest, look))
    blocks.append(_said([listing_sentence(matrix), conclusion(matrix)], look))
    lines: list[str] = []
    for block in filter(None, blocks):
        lines += ["", *block] if lines else block
    return [line.replace("…", look.marks.cut) for line in lines]


def _title(matrix: Matrix, look: Look) -> list[str]:
    label = look.paint("Neighbours", bold=True)
    return [
        f"{label} {look.marks.dot} {one_line(matrix.model, 40)} {look.marks.dot} {spent(matrix)}"
    ]


def _said(sentences: Sequence[str], look: Look) -> list[str]:
    return [
        line for one in sentences for line in wrapped(f"{harmless(one)}.", look.width, rest="  ")
    ]


def _tables(matrix: Matrix, look: Look) -> Iterator[list[str]]:
    """One table, or several with some of the columns each."""
    room = max(_SHORTEST_NAME, min(_LONGEST_NAME, look.width // 4))
    names = distinct_names([*matrix.skills], room, look.marks.cut)
    many = len(matrix.skills) > _MANY and look.verbosity <= 0
    columns, left = list[str | None](), [None] if many else [*matrix.columns]
    while left:
        wider = _table(matrix, [*columns, left[0]], names)
        if columns and wider.width > look.width:
            yield _table(matrix, columns, names).lines(look)
            columns = []
        columns.append(left.pop(0))
    yield _table(matrix, columns, names).lines(look)
    if many:
        yield _said(["Pairs are told below if something is shown; the HTML page has all"], look)


def _table(matrix: Matrix, columns: Sequence[str | None], names: Mapping[str, str]) -> Table:
    heads = [names[one] if one is not None else column_name(None) for one in columns]
    rows = [
        [
            Cell(names[one.skill]),
            Cell("\n".join(alone_cell(one))),
            *(_cell(matrix, one.skill, other) for other in columns),
        ]
        for one in matrix.alone
    ]
    return Table([Column("skill"), Column(ALONE), *(Column(f"+ {head}") for head in heads)], rows)


def _cell(matrix: Matrix, skill: str, other: str | None) -> Cell:
    pair = matrix.pair(skill, other)
    if pair is None:
        return Cell("-" if skill == other else "")
    return Cell("\n".join(pair_cell(pair).lines), _STYLES[pair.word])


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
