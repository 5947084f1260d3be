"""Tables of text, and the one way to fit them to a width.

A table offers layouts, from wide to narrow. In each of them, columns of low
priority may be dropped; the first layout that fits is taken. A matrix is split
into several tables instead.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest

from ..numbers import KEEP
from .layout import ASCII_MARKS, Paint, TerminalLook, text_width

Style = dict[str, bool]


@dataclass(frozen=True)
class Cell:
    """Text of a table, perhaps of several lines, and how it is painted."""

    text: str
    style: Style = field(default_factory=dict)
    painted: str = ""  # the part of a line that is painted; all of it if empty


@dataclass(frozen=True)
class Column:
    header: str = ""
    right: bool = False
    priority: int = KEEP  # columns with the lowest are dropped first


@dataclass(frozen=True)
class Table:
    """Rows of cells below their headers."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    between: str = "  "
    drop_below: int = 0  # columns of lower priority may be dropped

    @cached_property
    def widths(self) -> list[int]:
        headers = [Cell(column.header) for column in self.columns]
        return [
            max(text_width(line) for cell in cells for line in cell.text.split("\n"))
            for cells in zip(headers, *self.rows, strict=True)
        ]

    @property
    def width(self) -> int:
        return sum(self.widths) + len(self.between) * (len(self.widths) - 1)

    def narrowed(self, width: int) -> "Table":
        """Without the least important columns, as far as needed and allowed."""
        table = self
        for priority in sorted({column.priority for column in self.columns}):
            if table.width <= width or priority >= self.drop_below:
                break
            table = table.selected(
                [
                    n
                    for n, column in enumerate(table.columns)
                    if column.priority > priority
                ]
            )
        return table

    def selected(self, numbers: Sequence[int]) -> "Table":
        """The columns with these numbers."""
        rows = [[row[number] for number in numbers] for row in self.rows]
        return replace(
            self, columns=[self.columns[number] for number in numbers], rows=rows
        )

    def split(self, width: int) -> Iterator["Table"]:
        """Tables that fit, each with the first column and at least one of the
        others.
        """
        others = list[int]()
        for number in range(1, len(self.columns)):
            if others and self.selected([0, *others, number]).width > width:
                yield self.selected([0, *others])
                others = []
            others.append(number)
        yield self.selected([0, *others])

    def body(self, paint: Paint) -> list[str]:
        """The rows without headers."""
        return [line for row in self.rows for line in self._drawn(row, paint)]

    def lines(self, look: TerminalLook) -> list[str]:
        """Headers, a rule and the rows."""
        headers = self._drawn(
            [Cell(column.header) for column in self.columns], look.paint
        )
        return [*headers, look.marks.rule * self.width, *self.body(look.paint)]

    def _drawn(self, row: Sequence[Cell], paint: Paint) -> list[str]:
        """The lines of a row. Only the words are painted, not the blanks around
        them.
        """
        lines = []
        for texts in zip_longest(
            *(cell.text.split("\n") for cell in row), fillvalue=""
        ):
            cells = []
            for text, cell, width, column in zip(
                texts, row, self.widths, self.columns, strict=True
            ):
                blanks = " " * (width - text_width(text))
                words = cell.painted or text
                painted = text
                if words and cell.style and words in text:
                    painted = paint(words, **cell.style).join(text.rsplit(words, 1))
                cells.append(blanks + painted if column.right else painted + blanks)
            lines.append(self.between.join(cells).rstrip())
        return lines


def fitted(layouts: Iterable[Table], width: int) -> Table:
    """The first layout that fits; if none does, the last."""
    for layout in layouts:
        table = layout.narrowed(width)
        if table.width <= width:
            break
    return table


def text_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table without colours, in ASCII."""
    cells = [[Cell(str(value)) for value in row] for row in rows]
    return "\n".join(
        Table([*map(Column, headers)], cells).lines(TerminalLook(marks=ASCII_MARKS))
    )
