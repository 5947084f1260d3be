"""The frame of a page that needs nothing but itself: its policy, its look, its data."""

import base64
import hashlib
import json
import zlib
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Final

from ..._util.texts import harmless

# Three bars, the last one the highest.
_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath fill='%230969da' d='M1 10h4v5H1zM6 6h4v9H6zM11 1h4v14h-4z'/%3E%3C/svg%3E"
)


def shell(title: str, body: str, script: str = "", data: str = "", style: str = "") -> str:
    """A whole page. The script runs and the style counts by their hashes alone, and nothing is
    fetched, so whatever else got into the body could do nothing.

    ``data`` is what ``packed`` made; the script finds it in the element ``data``. ``style`` is
    what this page has besides the look of all.
    """
    style = resource("page.css") + style
    policy = (
        "default-src 'none'",
        f"script-src {_hash(script)}" if script else "script-src 'none'",
        f"style-src {_hash(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape("; ".join(policy))}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{text(title)}</title>",
        f'<link rel="icon" href="{_ICON}">',
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        body,
        f'<script type="text/plain" id="data">{data}</script>' if data else "",
        f'<script type="module">{script}</script>' if script else "",
        "</body>",
        "</html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def packed(value: Any) -> str:
    """JSON, compressed, in letters that can't end the element that holds them."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate becomes \udXXX, which JSON reads back as the same.
    data = zlib.compress(plain.encode("utf-8", "backslashreplace"), 9)
    return base64.b64encode(data).decode("ascii")


def text(words: str) -> str:
    """Text from anywhere, as nothing but text, between tags or in quotes."""
    return escape(harmless(words))


@cache
def resource(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _hash(inlined: str) -> str:
    digest = hashlib.sha256(inlined.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


Header = tuple[str, str]  # its words, its class
Cell = tuple[str, str, str]  # the header that it has on a card, what it holds as HTML, its class
Row = tuple[str, Sequence[Cell]]  # what it is about, as HTML


def table(kind: str, title: str, headers: Sequence[Header], rows: Sequence[Row]) -> str:
    """The roles are those that the elements have anyway, until a style makes cards of them."""
    head = "".join(
        f'<th scope="col" role="columnheader"{_class(of)}>{text(name)}</th>' for name, of in headers
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(title)}">'
        f'<table class="{kind}" role="table"><thead role="rowgroup"><tr role="row">{head}</tr>'
        f'</thead><tbody role="rowgroup">{"".join(map(_row, rows))}</tbody></table></div>'
    )


def _row(row: Row) -> str:
    about, cells = row
    told = "".join(
        f'<td role="cell"{_class(of)} data-name="{text(name)}">{held}</td>'
        for name, held, of in cells
    )
    return f'<tr role="row"><th scope="row" role="rowheader">{about}</th>{told}</tr>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def circle(x: float, y: float, kind: str, radius: float = 6) -> str:
    return f'<circle class="{kind}" cx="{x:.2f}%" cy="{y:.1f}" r="{radius:g}"/>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    ends = f'x1="{x1:.2f}%" y1="{y1:.1f}" x2="{x2:.2f}%" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends}/>'


def diamond(x: float, y: float, kind: str) -> str:
    """A path knows no shares, but what it is inside of does."""
    path = f'<path class="{kind}" d="M0-6 6 0 0 6-6 0z"/>'
    return f'<svg x="{x:.2f}%" y="{y:.1f}" overflow="visible">{path}</svg>'


def words(
    x: float, y: float, shown: str, kind: str, anchor: str = "start", shift: float = 0
) -> str:
    """Text at a share of the width, moved by some pixels."""
    place = f'x="{x:.2f}%" y="{y:.1f}" dx="{shift:g}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{text(shown)}</text>'


def drawing(kind: str, height: float, title: str, told: str, parts: Sequence[str]) -> str:
    """A picture with a name and, for who can't see it, a description."""
    return (
        f'<svg class="plot {kind}" role="img" width="100%" height="{height:g}" overflow="visible">'
        f"<title>{text(title)}</title><desc>{text(told)}</desc>{''.join(parts)}</svg>"
    )
