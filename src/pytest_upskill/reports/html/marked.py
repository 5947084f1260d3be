"""Where in a text of the page is what checks found: after cutting and escaping, in UTF-16."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from ..._util.texts import harmless, shortened
from ...checks.text_checks import KINDS
from ...trials.records import Grade, Record, Span

# Kinds of checks that fail because something is not in the answer.
_LOOKS_FOR: Final = frozenset(kind.name for kind in KINDS if kind.find and not kind.unwanted)
_ESCAPES: Final = {"x": 4, "u": 6, "U": 10}  # the lengths of \x1b and so on


@dataclass(frozen=True)
class Cut:
    """A text of which the middle may be left out, as ``shortened`` does."""

    text: str
    kept: str  # of it, with a note
    head: int  # characters before the note
    tail: int  # and after it

    @classmethod
    def of(cls, text: str, limit: int) -> "Cut":
        kept = shortened(text, limit, saving=1)
        if kept is text:
            return cls(text, text, len(text), 0)
        return cls(text, kept, limit * 3 // 4, limit // 4)

    def parts(self, span: Span) -> list[Span]:
        """What is left of a span, in the text that is kept."""
        start, stop = max(0, span[0]), min(span[1], len(self.text))
        tail_start = len(self.text) - self.tail
        moved = len(self.kept) - len(self.text)
        pieces = [(start, min(stop, self.head)), (max(start, tail_start) + moved, stop + moved)]
        return [(first, last) for first, last in pieces if first < last]


def marked_checks(record: Record, limit: int) -> list[dict[str, Any] | None]:
    """For each check of a trial: where its answer has what was found, whether it lacks something.

    ``found`` and ``unwanted`` are starts and stops in turn; ``hidden`` counts the places that are
    in what was left out.
    """
    if record.output is None:
        return [None] * len(record.checks)
    cut = Cut.of(record.output, limit)
    spans = {
        span: cut.parts(span) for grade in record.checks for span in (*grade.found, *grade.unwanted)
    }
    ends = {end for parts in spans.values() for part in parts for end in part}
    place_of = places_of(cut.kept, ends) if ends else {}

    def ends_in(places: Iterable[Span]) -> list[int]:
        return [place_of[end] for place in places for part in spans[place] for end in part]

    def marks(grade: Grade) -> dict[str, Any] | None:
        if not grade.found and not grade.unwanted:
            missing = not grade.passed and grade.check in _LOOKS_FOR and bool(record.output)
            return {"missing": True} if missing else None
        hidden = sum(not spans[span] for span in (*grade.found, *grade.unwanted))
        lists = {
            "found": ends_in(grade.found),
            "unwanted": ends_in(grade.unwanted),
            "hidden": hidden,
        }
        return {name: value for name, value in lists.items() if value}

    return [marks(grade) for grade in record.checks]


def places_of(text: str, places: Iterable[int]) -> dict[int, int]:
    """Where in the UTF-16 of ``harmless(text)`` are these places of the text."""
    escaped, ordered = harmless(text), sorted({0, *places})
    at = _aligned(text, escaped) if escaped != text else range(len(text) + 1)
    units_at, units = {0: 0}, 0
    for before, place in pairwise(ordered):
        units += _units(escaped[at[before] : at[place]])
        units_at[place] = units
    return units_at


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _aligned(text: str, escaped: str) -> Sequence[int]:
    """For each place of a text, that in its harmless form: characters stay or are escaped."""
    at, places = 0, list[int]()
    for number, letter in enumerate(text):
        places.append(at)
        if escaped[at : at + 1] == letter:
            at += 1
        elif not (letter == "\r" and text[number + 1 : number + 2] == "\n"):
            at += _ESCAPES[escaped[at + 1]]
    return [*places, at]
