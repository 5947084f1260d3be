"""The characters that drawings are made of."""

from dataclasses import astuple, dataclass
from typing import Final


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
