"""Text by the columns that it takes on a terminal, which are not its characters."""

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import groupby, takewhile, zip_longest
from typing import Final

from ..._util.texts import one_line

_LONGEST_NAME: Final = 1000
_NO_COLUMN: Final = ("Mn", "Me", "Cf")  # marks above and below a letter, and what is not seen


def width_of(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in _NO_COLUMN:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Blanks up to the width, behind the text or (``right``) before it."""
    blanks = " " * (width - width_of(text))
    return blanks + text if right else text + blanks


def cut(text: str, width: int, mark: str) -> str:
    """The beginning of a text that is too broad."""
    if width_of(text) <= width:
        return text
    return text[: _end(text, 0, width - width_of(mark))] + mark


def cut_inside(text: str, width: int, mark: str) -> str:
    """The beginning and the end of a name that is too broad: they tell most."""
    if width_of(text) <= width:
        return text
    room = max(width - width_of(mark), 0)
    head = text[: _end(text, 0, room - room // 2)]
    tail = text[::-1][: _end(text[::-1], 0, room // 2)][::-1]
    return f"{head}{mark}{tail}"


def told_apart(names: Collection[str], width: int, mark: str) -> dict[str, str]:
    """Names made harmless and no broader than the width, so that different ones look different:
    without the provider or folder that all have in common, else cut where they are alike."""
    whole = {name: _named(name, width) for name in names}
    if _all_differ(whole) and all(width_of(text) <= width for text in whole.values()):
        return whole
    lead = _common_lead(whole.values(), ":/")
    texts = {name: text[lead:] for name, text in whole.items()}
    found = {name: cut_inside(text, width, mark) for name, text in texts.items()}
    for _, group in groupby(sorted(found, key=found.__getitem__), key=found.__getitem__):
        alike = list(group)
        if len(alike) > 1:
            start = _common_lead([texts[name] for name in alike], ":/-_. ")
            found |= {name: cut(mark + texts[name][start:], width, mark) for name in alike}
    return found if _all_differ(found) else _numbered(texts, width, mark)


def _named(name: str, width: int) -> str:
    """A name of marks that take no column could be endless: a long one goes without them."""
    text = one_line(name, _LONGEST_NAME)
    return text if len(text) <= width else "".join(filter(_width, text))


def _all_differ(shown: Mapping[str, str]) -> bool:
    return len(set(shown.values())) == len(shown)


def _common_lead(texts: Collection[str], ends: str) -> int:
    """How much all begin with, up to a mark that ends a part of a name; none becomes empty."""
    first, last = min(texts, default=""), max(texts, default="")  # all others are between them
    alike = len(list(takewhile(lambda both: both[0] == both[1], zip(first, last, strict=False))))
    lead = max(first.rfind(end, 0, alike) for end in ends) + 1 if len(texts) > 1 else 0
    return lead if all(len(text) > lead for text in texts) else 0


def _numbered(texts: Mapping[str, str], width: int, mark: str) -> dict[str, str]:
    tags = [f"{mark}{number}" for number in range(1, len(texts) + 1)]
    return {
        name: text[: min(_end(text, 0, width - width_of(tag)), width - len(tag))] + tag
        for (name, text), tag in zip(texts.items(), tags, strict=True)
    }


def wrapped(
    line: str, width: int, *, first: str = "", rest: str = "", around: tuple[str, str] | None = None
) -> list[str]:
    """A line as several, broken at a blank where there is one; each begins as told.

    The marks ``around`` something stay whole, and beside it.
    """
    lines, start, lead = list[str](), 0, first
    while True:
        end = _end(line, start, width - width_of(lead))
        if end == len(line):
            return [*lines, lead + line[start:]]
        end = max(end, start + 1)  # a room of no column would be endless
        blank = line.rfind(" ", start, end + 1)
        if blank > start + (end - start) // 3:
            end, after = blank, blank + 1
        else:
            after = end = _beside_marks(line, start, end, around) if around else end
        lines.append(lead + line[start:end])
        start, lead = after, rest


def _beside_marks(line: str, start: int, end: int, around: tuple[str, str]) -> int:
    """Where to break instead of at ``end``, if that is inside a mark or between it and its text."""
    opens, closes = around
    closed = line.find(closes, max(start + 2, end - len(closes) + 1), end + len(closes))
    if closed != -1:
        end = closed - 1
        while end > start + 1 and not _width(line[end]):
            end -= 1
    opened = line.rfind(opens, start + 1, end + len(opens) - 1)
    return opened if opened != -1 and end <= opened + len(opens) else end


def broken(name: str, width: int) -> list[str]:
    """A long name on several lines, broken where its own punctuation allows it."""
    lines, start = list[str](), 0
    while (end := _end(name, start, width)) < len(name):
        end = max(end, start + 1)
        at = max(name.rfind(mark, start, end) for mark in "/:-_.") + 1
        at = at if at > start + width // 3 else end
        lines.append(name[start:at])
        start = at
    return [*lines, name[start:]]


def beside(blocks: Sequence[Sequence[str]], width: int, wall: str) -> list[str]:
    """Blocks of lines side by side; none of their lines may be broader than the width."""
    rows = zip_longest(*blocks, fillvalue="")
    return [wall.join(padded(line, width) for line in row).rstrip() for row in rows]


def _end(text: str, start: int, width: int) -> int:
    """Where a text must end that begins at ``start`` and takes so many columns at most."""
    if text.isascii():
        return min(start + max(width, 0), len(text))
    taken = 0
    for number in range(start, len(text)):
        taken += _width(text[number])
        if taken > width:
            return number
    return len(text)


@dataclass(frozen=True)
class Marks:
    full: str = "█"
    empty: str = "░"
    arrow: str = "→"
    dot: str = "·"
    times: str = "×"
    rule: str = "─"
    cut: str = "…"
    wall: str = "│"  # between two texts that stand side by side
    opens: str = "»"  # around what a check found in an answer
    closes: str = "«"


UNICODE_MARKS: Final = Marks()
ASCII_MARKS: Final = Marks("#", ".", "->", "-", "x", "-", "~", "|", ">>", "<<")


def marks_for(encoding: str) -> Marks:
    """Block characters where the terminal has them, else plain ASCII."""
    try:
        "".join(astuple(UNICODE_MARKS)).encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return ASCII_MARKS
    return UNICODE_MARKS
