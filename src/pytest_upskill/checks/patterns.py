"""Regular expressions of a skill's author, none of which can hang a run."""

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from .kind import Said, quoted

if TYPE_CHECKING:
    import regex

SECONDS: Final = 1.0
_MOST_CHARACTERS: Final = 2_000
# The compiler unrolls what is counted, and would fill the memory with ((a{999}){999}){999}.
_MOST_UNROLLED: Final = 100_000
_PIECE: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d{1,9})(?:,\d*)?\}|.", re.S)


def compiled(text: str) -> "dict[bool, regex.Pattern[str]]":
    """A pattern by whether case counts; ValueError that says where it is broken."""
    import regex  # is not imported before a check needs it

    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"a pattern of more than {_MOST_CHARACTERS:,} characters")
    if _unrolled(text) > _MOST_UNROLLED:
        raise ValueError("the counts of this pattern, such as {999}, are too large")
    normal = unicodedata.normalize("NFC", text)
    try:
        return {
            True: regex.compile(normal),
            False: regex.compile(normal, regex.IGNORECASE | regex.FULLCASE),
        }
    except regex.error as error:
        raise ValueError(f"a broken pattern: {error}") from None
    except Exception as error:  # for some patterns it raises whatever its own code stumbles over
        raise ValueError(f"a pattern that can't be compiled: {type(error).__name__}") from None


def _unrolled(text: str) -> int:
    """How long a pattern is when everything is written as often as it is counted."""
    sizes, last = [0], 0  # of the groups that are open; of what a count would stand behind
    for piece in _PIECE.finditer(text):
        if piece[1]:
            more = last * (int(piece[1]) - 1)
            last += more
            sizes[-1] += more
        elif piece[0] == "(":
            sizes.append(0)
        elif piece[0] == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        else:
            last = 1
            sizes[-1] += 1
        if sizes[-1] > _MOST_UNROLLED:
            break
    return sum(sizes)


def word_pattern(text: str) -> "regex.Pattern[str]":
    """A text as whole words, however they are spaced."""
    import regex  # whose \w knows the vowel signs of Hindi, unlike that of re

    spaced = r"\s+".join(map(regex.escape, text.split()))
    return regex.compile(rf"(?<!\w){spaced}(?!\w)")


def search(pattern: "regex.Pattern[str]", text: str) -> "regex.Match[str] | None":
    """TimeoutError after a second, which took_too_long tells."""
    return pattern.search(text, timeout=SECONDS)


def took_too_long(what: str) -> Said:
    return None, f"looking for {quoted(what)} took more than {SECONDS:g} s and was given up"
