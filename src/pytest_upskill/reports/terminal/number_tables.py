"""Tables of numbers on the terminal: a row for each model,
with bars where there is room.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..._util.texts import harmless, percent
from ...results.summary_row import SummaryRow
from ..numbers import COST, KEEP, SINCE_REF, TOKENS, Number, field_of
from .layout import Marks, TerminalLook, cut, split_name, text_width
from .tables import Cell, Column, Style, Table, fitted

_COLOURS: Final = {
    "helps": "green",
    "better": "green",
    "hurts": "red",
    "worse": "red",
    "incomplete": "red",
}


def word_style(word: str | None) -> Style:
    """The colour of a verdict."""
    return {_COLOURS[word]: True, "bold": True} if word in _COLOURS else {}


def lift_style(word: str | None) -> Style:
    """Painted only if the verdict says that the lift is shown:
    a lift alone may be chance.
    """
    return word_style(word) if word != "incomplete" else {}


@dataclass(frozen=True)
class _Layout:
    bar: int
    name: int
    gap: str = ""  # around an arrow
    between: str = "  "  # the columns
    stacked: bool = False
    split: bool = False  # values without and with the skill on lines of their own
    drop_below: int = 0


_LAYOUTS: Final = (
    *(_Layout(bar, 60, " ") for bar in (20, 16, 12, 10)),
    *(_Layout(bar, 36, " ") for bar in (10, 6)),
    *(
        _Layout(bar, name, drop_below=limit)
        for limit in (0, 11, 36, 40, 44)
        for bar, name in ((6, 24), (5, 16))
    ),
    _Layout(8, 14, stacked=True, drop_below=44),
    _Layout(4, 9, stacked=True, drop_below=44),
    _Layout(4, 9, stacked=True, split=True, drop_below=44),
    _Layout(4, 9, stacked=True, split=True, drop_below=61),
    _Layout(4, 8, between=" ", stacked=True, split=True, drop_below=KEEP),
)


def number_table(
    names: Mapping[str, Sequence[str]],
    rows: Sequence[SummaryRow],
    numbers: Sequence[Number],
    look: TerminalLook,
) -> list[str]:
    """With as many columns as there is room for; ``names`` are those of the rows,
    by header.
    """
    layouts = (_table(names, rows, numbers, layout, look) for layout in _LAYOUTS)
    return fitted(layouts, look.width).lines(look)


def _table(
    names: Mapping[str, Sequence[str]],
    rows: Sequence[SummaryRow],
    numbers: Sequence[Number],
    layout: _Layout,
    look: TerminalLook,
) -> Table:
    columns = [Column(header) for header in names]
    cells = [
        [Cell("\n".join(split_name(harmless(name), layout.name))) for name in row_names]
        for row_names in zip(*names.values(), strict=True)
    ]

    def add(column: Column, texts: Iterable[Cell]) -> None:
        columns.append(column)
        for row, cell in zip(cells, texts, strict=True):
            row.append(cell)

    for number in numbers:
        width = layout.bar if layout.stacked else layout.bar + 5
        header = harmless(number.header_of(rows))
        if number.of_ref and text_width(header) > width:  # any name of a ref
            header = (
                number.name
                if number is SINCE_REF
                else cut(header, width, look.marks.cut)
            )
        right = not number.bar and len(number.fields) == 1
        priority = KEEP if number.alarm else number.priority
        add(
            Column(header, right, priority),
            (_cell(number, row, layout, look) for row in rows),
        )
        bounds = (
            [number.bounds_text(row) for row in rows]
            if number.interval_priority
            else []
        )
        if any(bounds):
            column = Column("interval", priority=number.interval_priority)
            add(column, (Cell(text or "-") for text in bounds))
    return Table(columns, cells, layout.between, layout.drop_below)


def _cell(number: Number, row: SummaryRow, layout: _Layout, look: TerminalLook) -> Cell:
    marks = look.marks
    if number.bar:
        rate = number.amount(row)
        return Cell(
            number.text(row) or "-" if rate is None else _bar(rate, layout, marks)
        )
    # Costs are long, so they are the first to take two lines.
    split = layout.split or (layout.stacked and number is COST)
    arrow = f"{marks.arrow}\n" if split else f"{layout.gap}{marks.arrow}{layout.gap}"
    text = number.text(row, arrow) or "-"
    # Of all growths, that of tokens has room.
    growth = (
        number.growth_text(row, marks.times, bounds=False) if number is TOKENS else None
    )
    if change := growth or number.lift_text(row, bounds=False):
        text += f"{chr(10) if layout.stacked else ' '}{change}"
    if number.painted_by:
        return Cell(text, lift_style(field_of(row, number.painted_by)))
    return Cell(text, {"red": True} if number.alarm and number.amount(row) else {})


def _bar(rate: float, layout: _Layout, marks: Marks) -> str:
    bar, number = marks.bar(rate, layout.bar), percent(rate).rjust(4)
    if not layout.stacked:
        return f"{bar} {number}"
    return f"{bar}\n{number.rjust(layout.bar)}"
