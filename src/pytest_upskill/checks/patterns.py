"""Regular expressions of a skill's author, none of which can hang a run."""

import math
import re
import unicodedata
from typing import TYPE_CHECKING, Final

from .kind import Said, quoted

if TYPE_CHECKING:
    import regex

SECONDS: Final = 1.0
_MOST_CHARACTERS: Final = 10_000
# The compiler unrolls repeats inside of repeats, and would fill the memory with (a{999}){999}….
_MOST_REPEATS: Final = 1_000_000
_COUNTS: Final = re.compile(r"\{\d*,?(\d+)\}")


def compiled(text: str) -> "dict[bool, regex.Pattern[str]]":
    """A pattern by whether case counts; ValueError that says where it is broken."""
    import regex  # is not imported before a check needs it

    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"a pattern of more than {_MOST_CHARACTERS:,} characters")
    if math.prod(int(count[:9]) or 1 for count in _COUNTS.findall(text)) > _MOST_REPEATS:
        raise ValueError(f"this pattern repeats something more than {_MOST_REPEATS:,} times")
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


def search(pattern: "regex.Pattern[str]", text: str) -> "regex.Match[str] | None":
    """TimeoutError after a second, which took_too_long tells."""
    return pattern.search(text, timeout=SECONDS)


def took_too_long(what: str) -> Said:
    return None, f"looking for {quoted(what)} took more than {SECONDS:g} s and was given up"
