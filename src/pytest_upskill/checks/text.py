"""Checks of the text of an answer.

Texts are compared in Unicode's form NFC: é is é, however it is made up. Not in NFKC, for which
10² is 102. Case is folded as Unicode says, so that STRASSE is Straße.
"""

import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter

from ..records import Answer
from ..texts import counted, one_line
from .kind import COUNT, TEXT, TEXTS, Given, Hold, Kind, Said, Text, one_or_more, quoted
from .patterns import compiled, search, took_too_long

Pattern = tuple[str, dict[bool, Any]]  # as written, and compiled by whether case counts


@lru_cache(maxsize=8)  # the checks of a case ask for the same answer, which may be long
def _folded(text: str, case_sensitive: bool) -> str:
    if not case_sensitive:
        text = text if text.isascii() else unicodedata.normalize("NFD", text)
        text = text.casefold()
    return unicodedata.normalize("NFC", text)


def _both(answer: Answer, text: str, given: Given) -> tuple[str, str]:
    return _folded(answer.text, given.case_sensitive), _folded(text, given.case_sensitive)


def _contains(answer: Answer, texts: list[str], given: Given) -> Iterator[Said]:
    for text in texts:
        whole, part = _both(answer, text, given)
        found = part in whole
        yield found, f"{quoted(text)} is {'' if found else 'not '}in the answer"


def _not_contains(answer: Answer, texts: list[str], given: Given) -> Iterator[Said]:
    return ((not found, reason) for found, reason in _contains(answer, texts, given))


def _contains_any(answer: Answer, texts: list[str], given: Given) -> Iterator[Said]:
    said = list(_contains(answer, texts, given))
    found = [reason for passed, reason in said if passed]
    names = one_line(", ".join(map(quoted, texts)), 200)
    yield bool(found), found[0] if found else f"none of {names} is in the answer"


def _words(answer: Answer, texts: list[str], given: Given) -> Iterator[Said]:
    import regex  # whose \w knows the vowel signs of Hindi, unlike that of re

    for text in texts:
        whole, part = _both(answer, text, given)
        spaced = r"\s+".join(map(regex.escape, part.split()))
        try:
            found = search(regex.compile(rf"(?<!\w){spaced}(?!\w)"), whole)
        except TimeoutError:
            yield took_too_long(text)
            continue
        if found:
            yield True, f"{quoted(text)} is a word of the answer"
        elif part in whole:
            yield False, f"{quoted(text)} is in the answer only as a part of other words"
        else:
            yield False, f"{quoted(text)} is not in the answer"


def _compared(yes: str, no: str, holds: Callable[[str, str], bool]) -> Hold:
    """White space around the answer and the text is not looked at."""

    def hold(answer: Answer, text: str, given: Given) -> Iterator[Said]:
        whole, part = (side.strip() for side in _both(answer, text, given))
        passed = holds(whole, part)
        yield passed, f"the answer {yes if passed else no} {quoted(text)}"

    return hold


def _matched(wanted: bool) -> Hold:
    def hold(answer: Answer, patterns: list[Pattern], given: Given) -> Iterator[Said]:
        for text, pattern in patterns:
            try:
                match = search(pattern[given.case_sensitive], _folded(answer.text, True))
            except TimeoutError:
                yield took_too_long(text)
                continue
            fits = quoted(match.group()) if match else "nothing"
            yield (match is not None) is wanted, f"{quoted(text)} fits {fits} in the answer"

    return hold


def _at_most(unit: str, count: Callable[[str], int]) -> Hold:
    def hold(answer: Answer, most: int, _: Given) -> Iterator[Said]:
        number = count(answer.text)
        yield number <= most, f"the answer has {counted(number, unit)}; at most {most:,} may be"

    return hold


def _min_words(answer: Answer, least: int, _: Given) -> Iterator[Said]:
    number = _words_in(answer.text)
    yield number >= least, f"the answer has {counted(number, 'word')}; at least {least:,} must be"


def _words_in(text: str) -> int:
    return len(text.split())


def _characters_in(text: str) -> int:
    return len(_folded(text, True).strip())


def _with_its_pattern(text: str) -> Pattern:
    return text, compiled(text)


_PATTERNS: TypeAdapter[Any] = TypeAdapter(
    Annotated[list[Annotated[Text, AfterValidator(_with_its_pattern)]], *one_or_more]
)

KINDS = (
    Kind("contains", TEXTS, _contains),
    Kind("contains_any", TEXTS, _contains_any),
    Kind("not_contains", TEXTS, _not_contains),
    Kind("words", TEXTS, _words),
    Kind("equals", TEXT, _compared("is", "is not", str.__eq__)),
    Kind("starts_with", TEXT, _compared("starts with", "does not start with", str.startswith)),
    Kind("ends_with", TEXT, _compared("ends with", "does not end with", str.endswith)),
    Kind("regex", _PATTERNS, _matched(wanted=True)),
    Kind("not_regex", _PATTERNS, _matched(wanted=False)),
    Kind("min_words", COUNT, _min_words),
    Kind("max_words", COUNT, _at_most("word", _words_in)),
    Kind("max_chars", COUNT, _at_most("character", _characters_in)),
)
