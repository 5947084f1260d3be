"""Text that fits a terminal: measured, cut and wrapped by columns,
which are not characters.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Final

import wcwidth

from ..._util.texts import one_line

Paint = Callable[..., str]  # paint(text, bold=True, red=True)

_LONGEST_NAME: Final = 1000
_MIN_TEXT_WIDTH: Final = 8  # of a wrapped line, behind its prefix


@dataclass(frozen=True)
class Marks:
    """The characters of tables and lines that ASCII does not have."""

    arrow: str = "→"
    dot: str = "·"
    times: str = "×"
    rule: str = "─"
    cut: str = "…"
    opens: str = "»"  # around what a check found in an answer
    closes: str = "«"
    good: str = "✔"
    bad: str = "✘"


UNICODE_MARKS: Final = Marks()
ASCII_MARKS: Final = Marks(
    arrow="->",
    dot="-",
    times="x",
    rule="-",
    cut="~",
    opens=">>",
    closes="<<",
    good="ok",
    bad="FAIL",
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

    def wrap(self, text: str) -> list[str]:
        return wrapped(text, self.width, rest="  ")

    def show(self, text: str) -> str:
        """A text with the marks that this terminal has."""
        if self.marks == UNICODE_MARKS:
            return text

        for mark, in_ascii in zip(
            astuple(UNICODE_MARKS), astuple(self.marks), strict=True
        ):
            text = text.replace(mark, in_ascii)

        return text


def text_width(text: str) -> int:
    """How many columns a text takes, without its colours."""
    return wcwidth.width(text)


def cut(text: str, width: int, mark: str) -> str:
    """The beginning of a text that is too wide."""
    if text_width(text) <= width:
        return text

    return _clip(text, 0, max(width - text_width(mark), 0)) + mark


def cut_middle(text: str, width: int, mark: str) -> str:
    """Both ends of a name that is too wide."""
    full = text_width(text)
    if full <= width:
        return text

    room = max(width - text_width(mark), 0)
    head = _clip(text, 0, room - room // 2)
    tail = _clip(text, full - room // 2, full)
    return f"{head}{mark}{tail}"


def _clip(text: str, start: int, end: int) -> str:
    """Half a wide character is left out."""
    return wcwidth.clip(text, start, end, fillchar="") or ""


def distinct_names(names: Collection[str], width: int, mark: str) -> dict[str, str]:
    """Names that fit the width, are harmless and never look the same.

    If they are too wide, they lose the provider or folder that all of them share.
    """
    full = {name: one_line(name, _LONGEST_NAME) for name in names}
    if _fit(full.values(), width):
        return full

    lead = _find_shared_lead(list(full.values()))
    short = {name: cut_middle(text[lead:], width, mark) for name, text in full.items()}
    if _fit(short.values(), width):
        return short

    numbered = {}
    for number, (name, text) in enumerate(full.items(), start=1):
        numbered[name] = cut(text[lead:], width - len(str(number)), mark) + str(number)

    return numbered


def _find_shared_lead(texts: Sequence[str]) -> int:
    """The length of a provider or folder that all names begin with."""
    lead = 0
    first = texts[0]
    for end, character in enumerate(first, start=1):
        is_shared = all(
            text.startswith(first[:end]) and len(text) > end for text in texts
        )
        if len(texts) > 1 and is_shared and character in ":/":
            lead = end

    return lead


def _fit(texts: Collection[str], width: int) -> bool:
    differ = len(set(texts)) == len(texts)
    return differ and all(text_width(text) <= width for text in texts)


def wrapped(line: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Wrap a line, at blanks if possible, with the prefixes ``first`` and ``rest``."""
    widest_prefix = max(text_width(first), text_width(rest))
    lines = wcwidth.wrap(
        line,
        max(width, widest_prefix + _MIN_TEXT_WIDTH),
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
    )
    return lines or [first]


def wrap_all(lines: Iterable[str], width: int, rest: str = "  ") -> list[str]:
    """All lines, each wrapped on its own."""
    return [part for line in lines for part in wrapped(line, width, rest=rest)]


def spaced(blocks: Iterable[Sequence[str]]) -> list[str]:
    """The lines of all blocks, with a blank line between them;
    empty blocks are left out.
    """
    lines: list[str] = []
    for block in filter(None, blocks):
        if lines:
            lines.append("")
        lines += block

    return lines
