"""Building blocks of self-contained pages: the frame, escaped text, tables and pieces of SVG."""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from html import escape
from importlib.resources import files
from math import floor, log10
from typing import Any, Final

from ..._util.git import Commit
from ..._util.keys import without_keys
from ..._util.texts import harmless

# Three bars of growing height.
_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath fill='%230969da' d='M1 10h4v5H1zM6 6h4v9H6zM11 1h4v14h-4z'/%3E%3C/svg%3E"
)
_SEPARATED: Final = re.compile(r"(?<=[^_/:.@=,\s]{3}[_/:.@=,])(?=[^_/:.@=,\s]{3})")


def shell(title: str, body: str, script: str = "", data: str = "", style: str = "") -> str:
    """A whole page. Its policy allows only this script and style, by their hashes, and fetches
    nothing, so anything else that got into the body could do no harm.

    ``data`` comes from ``packed``; the script finds it in the element ``data``. ``style`` is added
    to the style that all pages share.
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
    """Compressed JSON as base64, which can't close the element around it."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate becomes \udXXX, which JSON reads back unchanged.
    data = zlib.compress(without_keys(plain).encode("utf-8", "backslashreplace"), 9)
    return base64.b64encode(data).decode("ascii")


def text(words: str) -> str:
    """Untrusted text, escaped for use between tags or in quotes."""
    return escape(harmless(words))


def time_tag(moment: datetime) -> str:
    day = f"{moment.day} {moment:%B %Y, %H:%M %Z}"
    return f'<time datetime="{moment.isoformat(timespec="seconds")}">{text(day)}</time>'


def commit_tag(commit: Commit) -> str:
    dirty = " with uncommitted changes" if commit.dirty else ""
    return f"commit <code>{text(commit.id[:9])}</code>{dirty}"


def breakable(words: str) -> str:
    """A name that may go on in the next line after a separator, rather than within a word."""
    return "<wbr>".join(map(text, _SEPARATED.split(words)))


@cache
def resource(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _hash(inlined: str) -> str:
    digest = hashlib.sha256(inlined.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


# Tables, which scroll if they are too wide and turn into cards on a phone.

Header = tuple[str, str]  # its text and its class
_Row = tuple[str, Sequence[str]]  # as HTML: the header of the row, then its cells


def table(kind: str, title: str, headers: Sequence[Header], rows: Sequence[_Row]) -> str:
    """With explicit roles, which would be lost when a style turns rows into cards."""
    head = "".join(
        f'<th scope="col" role="columnheader"{_class(of)}>{breakable(name)}</th>'
        for name, of in headers
    )
    body = "".join(_row(headers[1:], row) for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(title)}">'
        f'<table class="{kind}" role="table"><thead role="rowgroup"><tr role="row">{head}</tr>'
        f'</thead><tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _row(headers: Sequence[Header], row: _Row) -> str:
    about, cells = row
    cells_html = "".join(
        f'<td role="cell"{_class(of)} data-name="{text(name)}">{cell}</td>'
        for (name, of), cell in zip(headers, cells, strict=True)
    )
    name = f'<th scope="row" role="rowheader"><div class="name">{about}</div></th>'
    return f'<tr role="row">{name}{cells_html}</tr>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


# Pieces of SVG. Places are shares of the width, so that text keeps its size on a phone.


def circle(x: float, y: float, kind: str, radius: float = 6) -> str:
    return f'<circle class="{kind}" cx="{x:.2f}%" cy="{y:.1f}" r="{radius:g}"/>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    ends = f'x1="{x1:.2f}%" y1="{y1:.1f}" x2="{x2:.2f}%" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends}/>'


def diamond(x: float, y: float, kind: str) -> str:
    """A path can't be placed by shares, but an element around it can."""
    path = f'<path class="{kind}" d="M0-6 6 0 0 6-6 0z"/>'
    return f'<svg x="{x:.2f}%" y="{y:.1f}" overflow="visible">{path}</svg>'


def label(
    x: float, y: float, words: str, kind: str, anchor: str = "start", shift: float = 0
) -> str:
    """Text at a share of the width, shifted by some pixels."""
    place = f'x="{x:.2f}%" y="{y:.1f}" dx="{shift:g}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{text(words)}</text>'


def ticks(low: float, high: float) -> list[float]:
    """Some round numbers in between."""
    rough = (high - low) / 5
    size = 10 ** floor(log10(rough))
    step = next(size * number for number in (1, 2, 5, 10) if size * number >= rough * 0.999)
    first, last = floor(low / step + 0.999), floor(high / step + 0.001)
    return [number * step for number in range(first, last + 1)]


def drawing(kind: str, height: float, title: str, description: str, parts: Sequence[str]) -> str:
    """A picture with a name, and a description for screen readers."""
    return (
        f'<svg class="plot {kind}" role="img" width="100%" height="{height:g}" overflow="visible">'
        f"<title>{text(title)}</title><desc>{text(description)}</desc>{''.join(parts)}</svg>"
    )


def figure(title: str, picture: str, keys: Sequence[str]) -> str:
    """A picture below its title, with its legend."""
    legend = f'<p class="legend">{"".join(keys)}</p>'
    return f"<figure><figcaption>{title}</figcaption>{picture}{legend}</figure>"


def key(kind: str, words: str) -> str:
    """An entry of a legend."""
    return f'<span><i class="{kind}" aria-hidden="true"></i>{text(words)}</span>'
