"""Render terminal output as SVG text in the terminal's colours."""

import re
from html import escape
from itertools import groupby
from typing import Any, Final

import pyte

_WIDE: Final = 8.4  # width of a character
_HIGH: Final = 18
_MARGIN: Final = 16
_BEHIND: Final = "#0f1720"
_COLOURS: Final = {
    "default": "#d6deeb",
    "black": "#7a8699",
    "red": "#ff7b72",
    "green": "#6fd08c",
    "brown": "#e5c07b",  # what pyte calls yellow
    "blue": "#79b8ff",
    "magenta": "#d2a8ff",
    "cyan": "#76d9e6",
    "white": "#ffffff",
}


def terminal_svg(written: str, columns: int, title: str) -> str:
    """Render everything written to a terminal, including escape sequences."""
    rows = _rows(written, columns)
    return _drawn(
        [line for y, row in enumerate(rows) for line in _line(row, y)], rows, title
    )


def _rows(written: str, columns: int) -> list[list[Any]]:
    """The lines on the screen at the end, and above them those that scrolled off."""
    screen = pyte.HistoryScreen(columns, 24, history=10_000)
    pyte.Stream(screen).feed(written)
    rows = [[line[x] for x in range(columns)] for line in screen.history.top]
    rows += [[screen.buffer[y][x] for x in range(columns)] for y in range(24)]
    while rows and not "".join(cell.data for cell in rows[-1]).strip():
        rows.pop()
    return rows


def _drawn(lines: list[str], rows: list[list[Any]], title: str) -> str:
    wide, high = len(rows[0]) * _WIDE + 2 * _MARGIN, len(rows) * _HIGH + 2 * _MARGIN
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g}'
                f' {high:g}" role="img">'
            ),
            f"<title>{escape(title)}</title>",
            f'<rect width="{wide:g}" height="{high:g}" rx="8" fill="{_BEHIND}"/>',
            (
                '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, '
                'DejaVu Sans Mono, monospace" font-size="14">'
            ),
            *lines,
            "</g>",
            "</svg>",
            "",
        ]
    )


def _line(row: list[Any], y: int) -> list[str]:
    """One text element per stretch of a colour, as wide as in a terminal."""
    found, x = [], 0
    for (colour, bold), group in groupby(row, key=lambda cell: (cell.fg, cell.bold)):
        text = "".join(cell.data for cell in group)
        weight = ' font-weight="bold"' if bold else ""
        fill = _COLOURS.get(colour, _COLOURS["default"])
        # Browsers collapse spaces, so words that are apart are drawn separately.
        for part in re.finditer(r"\S+(?: \S+)*", text):
            left, wide = _MARGIN + (x + part.start()) * _WIDE, len(part.group()) * _WIDE
            place = (
                f'x="{left:g}" y="{_MARGIN + 14 + y * _HIGH:g}" textLength="{wide:g}"'
            )
            style = f'lengthAdjust="spacingAndGlyphs" fill="{fill}"{weight}'
            found.append(f"<text {place} {style}>{escape(part.group())}</text>")
        x += len(text)
    return found
