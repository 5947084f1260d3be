"""The frame of a page that needs nothing but itself: its policy, its look, its data."""

import base64
import hashlib
import json
import zlib
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
