"""Text from models and files inside of Markdown: as words, inside of HTML, and in fences."""

import html
import re

from ..._util.texts import harmless, one_line

# GitHub makes links of these, mentions and references to issues, wherever they stand in a text.
# The number sign of a character reference (&#x27;) is left to it.
_CALLS = re.compile(r"@|:(?=//)|www(?=\.)|(?<!&)#", re.IGNORECASE)


def escaped(text: str, limit: int | None = None) -> str:
    """Text from outside as plain words: no markup, no HTML, no row of a table, no mention."""
    flat = " ".join(harmless(text).split()) if limit is None else one_line(text, limit)
    marked = re.sub(r"([\\`*_{}\[\]|~#!])", r"\\\1", html.escape(flat, quote=False))
    # What would begin a list or a line across the page, at the beginning of a line.
    marked = re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", marked)
    return _quiet(marked)


def in_html(text: str, limit: int) -> str:
    """The same between HTML tags, where Markdown's own marks are plain text."""
    return _quiet(html.escape(one_line(text, limit)))


def fenced(text: str) -> str:
    """A text as it is, in a fence that is longer than any inside."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{harmless(text)}\n{fence}"


def _quiet(text: str) -> str:
    # An invisible character after them keeps a mention from calling people, a link from forming.
    return _CALLS.sub(lambda match: f"{match.group()}&#8203;", text)
