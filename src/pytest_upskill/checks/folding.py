"""Texts as checks compare them, and the way back to the text as it was.

They are compared in Unicode's form NFC: é is é, however it is made up. Not in NFKC, for which
10² is 102. Case is folded as Unicode says, so that STRASSE is Straße.
"""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple


@lru_cache(maxsize=8)  # the checks of a case ask for the same answer, which may be long
def folded(text: str, case_sensitive: bool) -> str:
    if not case_sensitive:
        text = text if text.isascii() else unicodedata.normalize("NFD", text)
        text = text.casefold()
    return unicodedata.normalize("NFC", text)


class Folded(NamedTuple):
    """``starts`` and ``stops`` say for each character where in the text it comes from."""

    text: str
    starts: Sequence[int]
    stops: Sequence[int]

    def span(self, start: int, stop: int) -> tuple[int, int] | None:
        """What a part of the folded text was before; None if that part is empty."""
        return (self.starts[start], self.stops[stop - 1]) if start < stop else None


@lru_cache(maxsize=2)
def folded_with_places(text: str, case_sensitive: bool) -> Folded:
    whole = folded(text, case_sensitive)
    if text.isascii():
        return Folded(whole, range(len(text)), range(1, len(text) + 1))
    pieces, starts, stops, start = list[str](), list[int](), list[int](), 0
    for stop in range(1, len(text) + 1):
        if stop < len(text) and unicodedata.combining(text[stop]):
            continue  # it belongs to the letter before it
        piece = folded.__wrapped__(text[start:stop], case_sensitive)
        pieces.append(piece)
        starts += [start] * len(piece)
        stops += [stop] * len(piece)
        start = stop
    if "".join(pieces) != whole:  # letters that become one, as those of Korean may
        return Folded("", [], [])
    return Folded(whole, starts, stops)
