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


_TYPED: Final = 0.03  # seconds per character of the command
_DOTS: Final = 1.5  # seconds for a row of dots
_ROW: Final = 0.1  # seconds between other rows
# Without motion everything is there from the start: rows only start hidden if they move.
_STYLE: Final = """<style>
@media (prefers-reduced-motion: no-preference) {
  .row { animation: appear 0.01s backwards }
  .cover { animation: uncover backwards }
}
.cover { opacity: 0 }
@keyframes appear { from { opacity: 0 } }
@keyframes uncover { from { opacity: 1 } to { opacity: 1; transform: translateX(100%) } }
</style>"""


def terminal_svg(written: str, columns: int, title: str) -> str:
    """Render everything written to a terminal, including escape sequences."""
    rows = _rows(written, columns)
    return _drawn([line for y, row in enumerate(rows) for line in _line(row, y)], rows, title)


def animated_svg(written: str, columns: int, title: str) -> str:
    """The same, row after row as in a run, once: the command is typed, and dots come one by one."""
    rows, lines, now = _rows(written, columns), [_STYLE], 0.5
    for y, row in enumerate(rows):
        text = "".join(cell.data for cell in row).rstrip()
        seconds = _TYPED * len(text) if y == 0 else _DOTS if text.endswith("%]") else 0.0
        lines.append(f'<g class="row" style="animation-delay:{now:.2f}s">')
        lines += _line(row, y)
        if seconds:
            lines.append(_cover(y, len(row), now, seconds))
        lines.append("</g>")
        now += max(seconds + 0.5 if seconds else 0, _ROW)
    return _drawn(lines, rows, title)


def _cover(y: int, columns: int, start: float, seconds: float) -> str:
    """A rectangle that leaves the row to the right, character by character."""
    place = f'x="{_MARGIN:g}" y="{_MARGIN + y * _HIGH:g}" width="{columns * _WIDE:g}"'
    when = f"animation-delay:{start:.2f}s;animation-duration:{seconds:.2f}s"
    how = f"animation-timing-function:steps({columns});transform-box:fill-box"
    return f'<rect class="cover" {place} height="{_HIGH}" fill="{_BEHIND}" style="{when};{how}"/>'


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
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{wide:g}" height="{high:g}" rx="8" fill="{_BEHIND}"/>',
            '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, '
            'DejaVu Sans Mono, monospace" font-size="14">',
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
            place = f'x="{left:g}" y="{_MARGIN + 14 + y * _HIGH:g}" textLength="{wide:g}"'
            style = f'lengthAdjust="spacingAndGlyphs" fill="{fill}"{weight}'
            found.append(f"<text {place} {style}>{escape(part.group())}</text>")
        x += len(text)
    return found
