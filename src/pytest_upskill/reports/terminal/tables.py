"""Tables of text. What has no room is dropped: the first of several layouts that fits is taken."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest

from .layout import Look, Paint, text_width


@dataclass(frozen=True)
class Cell:
    """Text of a table, perhaps of several lines, and how it is painted."""

    text: str
    style: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    header: str = ""
    right: bool = False
    priority: int = 0  # columns with the lowest are dropped first


@dataclass(frozen=True)
class Table:
    """Rows of cells below their headers."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    between: str = "  "

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

    def body(self, paint: Paint) -> list[str]:
        """The rows without headers."""
        return [line for row in self.rows for line in self._drawn(row, paint)]

    def lines(self, look: Look) -> list[str]:
        """Headers, a rule and the rows."""
        headers = self._drawn([Cell(column.header) for column in self.columns], look.paint)
        return [*headers, look.marks.rule * self.width, *self.body(look.paint)]

    def _drawn(self, row: Sequence[Cell], paint: Paint) -> list[str]:
        """The lines of a row. Only the words are painted, not the blanks around them."""
        lines = []
        for parts in zip_longest(*(cell.text.split("\n") for cell in row), fillvalue=""):
            cells = []
            for part, cell, width, column in zip(
                parts, row, self.widths, self.columns, strict=True
            ):
                blanks = " " * (width - text_width(part))
                text = paint(part, **cell.style) if part and cell.style else part
                cells.append(blanks + text if column.right else text + blanks)
            lines.append(self.between.join(cells).rstrip())
        return lines


def first_that_fits(tables: Iterable[Table], width: int) -> Table:
    """From the widest layout to the narrowest; if none fits, the last."""
    for table in tables:
        if table.width <= width:
            break
    return table
