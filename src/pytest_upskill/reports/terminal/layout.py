"""Text that fits a terminal: measured, cut and wrapped by columns,
which are not characters.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import groupby, takewhile, zip_longest
from typing import Final

from ..._util.texts import one_line

Paint = Callable[..., str]  # paint(text, bold=True, red=True)

_LONGEST_NAME: Final = 1000
_ZERO_WIDTH: Final = ("Mn", "Me", "Cf")  # combining marks and invisible characters


@dataclass(frozen=True)
class Marks:
    """The characters of tables and bars."""

    full: str = "█"
    empty: str = "░"
    arrow: str = "→"
    dot: str = "·"
    times: str = "×"
    rule: str = "─"
    cut: str = "…"
    wall: str = "│"  # between texts side by side
    opens: str = "»"  # around what a check found in an answer
    closes: str = "«"
    good: str = "✔"
    bad: str = "✘"

    def bar(self, share: float, length: int) -> str:
        """A share as a bar of this length."""
        full = round(share * length)
        return self.full * full + self.empty * (length - full)


UNICODE_MARKS: Final = Marks()
ASCII_MARKS: Final = Marks(
    "#", ".", "->", "-", "x", "-", "~", "|", ">>", "<<", "ok", "FAIL"
)


def marks_for(encoding: str) -> Marks:
    """Unicode if the encoding has all marks, else ASCII."""
    try:
        "".join(astuple(UNICODE_MARKS)).encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return ASCII_MARKS
    return UNICODE_MARKS


def unpainted(text: str, **_: bool) -> str:
    return text


@dataclass(frozen=True)
class TerminalLook:
    """The terminal that lines are made for; the verbosity is pytest's."""

    width: int = 80
    marks: Marks = UNICODE_MARKS
    paint: Paint = unpainted
    verbosity: int = 0


def text_width(text: str) -> int:
    """How many columns a text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Pad a text with blanks, on the left if ``right``."""
    blanks = " " * (width - text_width(text))
    return blanks + text if right else text + blanks


def cut(text: str, width: int, mark: str) -> str:
    """The beginning of a text that is too wide."""
    if text_width(text) <= width:
        return text
    return text[: _end(text, 0, width - text_width(mark))] + mark


def cut_middle(text: str, width: int, mark: str) -> str:
    """Both ends of a name that is too wide."""
    if text_width(text) <= width:
        return text
    width_left = max(width - text_width(mark), 0)
    head = text[: _end(text, 0, width_left - width_left // 2)]
    tail = text[::-1][: _end(text[::-1], 0, width_left // 2)][::-1]
    return f"{head}{mark}{tail}"


def distinct_names(names: Collection[str], width: int, mark: str) -> dict[str, str]:
    """Names that fit the width, are harmless and never look the same.

    If they are too wide, they lose the provider or folder that all of them share; if
    that is not enough, they are cut where they are alike.
    """
    full = {name: _harmless_name(name, width) for name in names}
    if _all_differ(full) and all(text_width(text) <= width for text in full.values()):
        return full
    lead = _common_lead(full.values(), ":/")
    texts = {name: text[lead:] for name, text in full.items()}
    short = {name: cut_middle(text, width, mark) for name, text in texts.items()}
    for _, group in groupby(
        sorted(short, key=short.__getitem__), key=short.__getitem__
    ):
        alike = list(group)
        if len(alike) > 1:
            start = _common_lead([texts[name] for name in alike], ":/-_. ")
            short |= {
                name: cut(mark + texts[name][start:], width, mark) for name in alike
            }
    return short if _all_differ(short) else _numbered(texts, width, mark)


def _harmless_name(name: str, width: int) -> str:
    """Without zero-width characters if it is long: they would make it endless."""
    text = one_line(name, _LONGEST_NAME)
    return text if len(text) <= width else "".join(filter(_width, text))


def _all_differ(texts: Mapping[str, str]) -> bool:
    return len(set(texts.values())) == len(texts)


def _common_lead(texts: Collection[str], ends: str) -> int:
    """The length of the common prefix up to one of ``ends``; it leaves no text
    empty.
    """
    # All others sort between them
    first, last = min(texts, default=""), max(texts, default="")
    alike = len(
        list(takewhile(lambda both: both[0] == both[1], zip(first, last, strict=False)))
    )
    lead = max(first.rfind(end, 0, alike) for end in ends) + 1 if len(texts) > 1 else 0
    return lead if all(len(text) > lead for text in texts) else 0


def _numbered(texts: Mapping[str, str], width: int, mark: str) -> dict[str, str]:
    tags = [f"{mark}{number}" for number in range(1, len(texts) + 1)]
    return {
        name: (
            text[: min(_end(text, 0, width - text_width(tag)), width - len(tag))] + tag
        )
        for (name, text), tag in zip(texts.items(), tags, strict=True)
    }


def wrapped(
    line: str,
    width: int,
    *,
    first: str = "",
    rest: str = "",
    around: tuple[str, str] | None = None,
) -> list[str]:
    """Wrap a line, at blanks if possible, with the prefixes ``first`` and ``rest``.

    A passage keeps the marks ``around`` it.
    """
    lines, start, lead = list[str](), 0, first
    while True:
        end = _end(line, start, width - text_width(lead))
        if end == len(line):
            return [*lines, lead + line[start:]]
        end = max(end, start + 1)  # make progress even if there is no room at all
        blank = line.rfind(" ", start, end + 1)
        if blank > start + (end - start) // 3:
            end, after = blank, blank + 1
        else:
            after = end = _beside_marks(line, start, end, around) if around else end
        lines.append(lead + line[start:end])
        start, lead = after, rest


def clipped(text: str, look: TerminalLook, most: int) -> list[str]:
    """A text on at most so many lines."""
    lines = wrapped(text, look.width, rest="  ")
    if len(lines) <= most:
        return lines
    last = f"{lines[most - 1]} {lines[most].strip()}"
    return [*lines[: most - 1], cut(last, look.width, look.marks.cut)]


def _beside_marks(line: str, start: int, end: int, around: tuple[str, str]) -> int:
    """Where to break if ``end`` is inside a mark or between a mark and its passage."""
    opens, closes = around
    closed = line.find(closes, max(start + 2, end - len(closes) + 1), end + len(closes))
    if closed != -1:
        end = closed - 1
        while end > start + 1 and not _width(line[end]):
            end -= 1
    opened = line.rfind(opens, start + 1, end + len(opens) - 1)
    return opened if opened != -1 and end <= opened + len(opens) else end


def split_name(name: str, width: int) -> list[str]:
    """A long name on several lines, broken at its punctuation if possible."""
    lines, start = list[str](), 0
    while (end := _end(name, start, width)) < len(name):
        end = max(end, start + 1)
        at = max(name.rfind(mark, start, end) for mark in "/:-_.") + 1
        at = at if at > start + width // 3 else end
        lines.append(name[start:at])
        start = at
    return [*lines, name[start:]]


def spaced(blocks: Iterable[Sequence[str]]) -> list[str]:
    """The lines of all blocks, with a blank line between them;
    empty blocks are left out.
    """
    lines: list[str] = []
    for block in filter(None, blocks):
        lines += ["", *block] if lines else block
    return lines


def side_by_side(blocks: Sequence[Sequence[str]], width: int, wall: str) -> list[str]:
    """Blocks of lines beside each other; no line may be wider than ``width``."""
    rows = zip_longest(*blocks, fillvalue="")
    return [wall.join(padded(line, width) for line in row).rstrip() for row in rows]


def _end(text: str, start: int, width: int) -> int:
    """Where the part of a text ends that begins at ``start``
    and fits ``width`` columns.
    """
    if text.isascii():
        return min(start + max(width, 0), len(text))
    taken = 0
    for number in range(start, len(text)):
        taken += _width(text[number])
        if taken > width:
            return number
    return len(text)
