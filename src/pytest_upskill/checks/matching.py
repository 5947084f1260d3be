"""How checks find texts and patterns in an answer.

Texts are compared in Unicode's form NFC, so that é is é however it is composed; not in NFKC, where
10² would be 102. Case is folded as Unicode says, so that STRASSE is Straße. No pattern of a skill's
author can hang a run.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ..trials.records import Span
from .time_budget import OutOfTimeError, seconds_left

if TYPE_CHECKING:
    import regex

Pattern = tuple[str, "dict[bool, regex.Pattern[str]]"]  # as written; compiled, by case_sensitive

_MAX_PATTERN: Final = 2_000  # characters
# The compiler unrolls repeat counts, and would fill the memory with ((a{999}){999}){999}.
_MAX_UNROLLED: Final = 100_000
_PIECE: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d{1,9})(?:,\d*)?\}|.", re.S)
_MAX_SEARCHED: Final = 200_000  # characters of an answer that are searched for spans
_MAX_SPANS: Final = 20  # per text: highlighting everything would highlight nothing


@lru_cache(maxsize=8)  # the checks of a case fold the same answer, which may be long
def folded(text: str, case_sensitive: bool) -> str:
    if not case_sensitive:
        text = text if text.isascii() else unicodedata.normalize("NFD", text)
        text = text.casefold()
    return unicodedata.normalize("NFC", text)


# Patterns.


def compile_pattern(text: str) -> Pattern:
    """ValueError says where the pattern is invalid."""
    import regex  # slow to import

    if len(text) > _MAX_PATTERN:
        raise ValueError(f"pattern longer than {_MAX_PATTERN:,} characters")
    if _unrolled(text) > _MAX_UNROLLED:
        raise ValueError("repeat counts such as {999} are too large")
    normal = unicodedata.normalize("NFC", text)
    try:
        return text, {
            True: regex.compile(normal),
            False: regex.compile(normal, regex.IGNORECASE | regex.FULLCASE),
        }
    except regex.error as error:
        raise ValueError(f"invalid pattern: {error}") from None
    except Exception as error:  # a bug in the regex compiler can raise anything
        raise ValueError(f"pattern can't be compiled: {type(error).__name__}") from None


def _unrolled(text: str) -> int:
    """The length of a pattern with its repeat counts written out."""
    sizes, last = [0], 0  # of the open groups; of what a count would repeat
    for piece in _PIECE.finditer(text):
        if piece[1]:
            copies = last * (int(piece[1]) - 1)
            last += copies
            sizes[-1] += copies
        elif piece[0] == "(":
            sizes.append(0)
        elif piece[0] == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        else:
            last = 1
            sizes[-1] += 1
        if sizes[-1] > _MAX_UNROLLED:
            break
    return sum(sizes)


def word_pattern(text: str) -> "regex.Pattern[str]":
    """A text as whole words, with any white space between them."""
    import regex  # its \w knows the vowel signs of Hindi, unlike that of re

    spaced = r"\s+".join(map(regex.escape, text.split()))
    return regex.compile(rf"(?<!\w){spaced}(?!\w)")


def search(pattern: "regex.Pattern[str]", text: str) -> "regex.Match[str] | None":
    """The first match; OutOfTimeError if the search takes too long."""
    try:
        match = pattern.search(text, timeout=_time_for_pattern())
    except TimeoutError:
        raise OutOfTimeError from None
    seconds_left()
    return match


def _time_for_pattern() -> float:
    """``regex`` counts the CPU time of the whole process, with other threads."""
    return 2 * seconds_left()


# Where in an answer something was found, to highlight it.


@lru_cache(maxsize=2)
def _placed(answer: str, case_sensitive: bool) -> str:
    """The beginning of an answer, folded as far as each character stays in its place."""
    text = answer[:_MAX_SEARCHED]
    if case_sensitive:
        return text
    return "".join(same if len(same := letter.casefold()) == 1 else letter for letter in text)


def find_texts(answer: str, texts: list[str], case_sensitive: bool) -> Iterator[Span]:
    placed = _placed(answer, case_sensitive)
    for text in texts:
        part, start = folded(text, case_sensitive), 0
        for _ in range(_MAX_SPANS):
            start = placed.find(part, start)
            if start < 0:
                break
            yield start, start + len(part)
            start += len(part)


def find_words(answer: str, texts: list[str], case_sensitive: bool) -> Iterator[Span]:
    for text in texts:
        pattern = word_pattern(folded(text, case_sensitive))
        yield from _matches(pattern, _placed(answer, case_sensitive))


def find_patterns(answer: str, patterns: list[Any], case_sensitive: bool) -> Iterator[Span]:
    for _, pattern in patterns:
        yield from _matches(pattern[case_sensitive], _placed(answer, True))


def find_start(answer: str, text: str, case_sensitive: bool) -> Iterator[Span]:
    placed, part = _placed(answer, case_sensitive), folded(text, case_sensitive).strip()
    at = len(placed) - len(placed.lstrip())
    if placed.startswith(part, at):
        yield at, at + len(part)


def find_end(answer: str, text: str, case_sensitive: bool) -> Iterator[Span]:
    placed, part = _placed(answer, case_sensitive), folded(text, case_sensitive).strip()
    stop = len(placed.rstrip())
    if len(answer) <= _MAX_SEARCHED and placed.endswith(part, 0, stop):
        yield stop - len(part), stop


def _matches(pattern: "regex.Pattern[str]", placed: str) -> Iterator[Span]:
    try:
        for match in islice(pattern.finditer(placed, timeout=_time_for_pattern()), _MAX_SPANS):
            seconds_left()
            if match.start() < match.end():
                yield match.start(), match.end()
    except TimeoutError:
        raise OutOfTimeError from None
