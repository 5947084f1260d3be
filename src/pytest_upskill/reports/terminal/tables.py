"""Tables of text that fit a terminal."""

from collections.abc import Iterable, Sequence
from typing import Final

from tabulate import tabulate

from ..columns import KEEP, Column
from .layout import ASCII_MARKS, TerminalLook, distinct_names, text_width

_LONGEST_NAME: Final = 40
_SHORT_NAME: Final = 24  # before columns are dropped
_SHORTEST_NAME: Final = 8


def table_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], look: TerminalLook
) -> list[str]:
    """Headers, a rule and the rows, which may be painted.

    If they don't fit, names get shorter, then the least important columns go.
    """
    longest = _LONGEST_NAME
    kept = list(range(len(columns)))
    while True:
        lines = _draw(columns, rows, kept=kept, longest=longest, look=look)
        excess = max(map(text_width, lines)) - look.width
        if excess <= 0:
            return lines

        least = min(kept, key=lambda number: columns[number].priority)
        if longest > _SHORT_NAME:
            longest = max(longest - excess, _SHORT_NAME)
        elif columns[least].priority < KEEP:
            kept.remove(least)
        elif longest > _SHORTEST_NAME:
            longest = max(longest - excess, _SHORTEST_NAME)
        else:
            return lines


def _draw(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    kept: Sequence[int],
    longest: int,
    look: TerminalLook,
) -> list[str]:
    cells = []
    for number in kept:
        texts = [look.show(row[number]) for row in rows]
        if columns[number].is_name:
            names = distinct_names(dict.fromkeys(texts), longest, look.marks.cut)
            texts = [names[text] for text in texts]
        cells.append([look.show(columns[number].header), *texts])

    # Headers are a row: tabulate would pad real ones.
    lines = tabulate(
        list(zip(*cells, strict=True)),
        tablefmt="plain",
        disable_numparse=True,
        colalign=["right" if columns[number].right else "left" for number in kept],
    ).splitlines()
    if any(columns[number].header for number in kept):
        rule = look.marks.rule * max(map(text_width, lines))
        lines.insert(1 + max(column[0].count("\n") for column in cells), rule)

    return lines


def text_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of any width without colours, in ASCII."""
    columns = [Column(header) for header in headers]
    texts = [[str(value) for value in row] for row in rows]
    look = TerminalLook(marks=ASCII_MARKS)
    every = range(len(columns))
    return "\n".join(_draw(columns, texts, kept=every, longest=0, look=look))
