"""Text from outside, as lines to be shown: harmless, cut, and marked where something was found."""

from collections.abc import Iterable, Sequence

from ..._util.texts import WORTH_CUTTING, harmless
from .marks import Marks

Span = tuple[int, int]


def quoted(text: str, limit: int | None, marks: Marks, spans: Sequence[Span] = ()) -> list[str]:
    """The lines of a text; of a long one the beginning and the end, and how much was cut."""
    if limit is None or len(text) < limit + WORTH_CUTTING:
        return harmless(_marked(text, 0, len(text), spans, marks)).split("\n")
    head, tail = limit * 3 // 4, len(text) - limit // 4
    hidden = any(head <= start and stop <= tail for start, stop in spans)
    among = ", something that was found among them" if hidden else ""
    return [
        *harmless(_marked(text, 0, head, spans, marks)).split("\n"),
        f"[{marks.cut} {tail - head:,} characters left out{among} {marks.cut}]",
        *harmless(_marked(text, tail, len(text), spans, marks)).split("\n"),
    ]


def _marked(text: str, start: int, stop: int, spans: Iterable[Span], marks: Marks) -> str:
    """A part of a text, in which the parts of spans that are in it stand between marks."""
    parts, at = [], start
    for first, last in spans:
        first, last = max(first, start), min(last, stop)
        if first < last:
            parts += [text[at:first], marks.opens, text[first:last], marks.closes]
            at = last
    return "".join([*parts, text[at:stop]])
