"""Checks of the text of an answer."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter

from .._util.texts import counted, one_line
from ..trials.answer import Answer
from . import found
from .folding import folded
from .kind import COUNT, TEXT, TEXTS, Given, Hold, Kind, Said, Text, one_or_more, quoted
from .patterns import compiled, search, took_too_long, word_pattern

Pattern = tuple[str, dict[bool, Any]]  # as written, and compiled by whether case counts


def _both(answer: Answer, text: str, given: Given) -> tuple[str, str]:
    return folded(answer.text, given.case_sensitive), folded(text, given.case_sensitive)


def _contains(answer: Answer, texts: list[str], given: Given) -> Iterator[Said]:
    for text in texts:
        whole, part = _both(answer, text, given)
        inside = part in whole
        yield inside, f"{quoted(text)} is {'' if inside else 'not '}in the answer"


def _not_contains(answer: Answer, texts: list[str], given: Given) -> Iterator[Said]:
    return ((not inside, reason) for inside, reason in _contains(answer, texts, given))


def _contains_any(answer: Answer, texts: list[str], given: Given) -> Iterator[Said]:
    said = list(_contains(answer, texts, given))
    inside = [reason for passed, reason in said if passed]
    names = one_line(", ".join(map(quoted, texts)), 200)
    yield bool(inside), inside[0] if inside else f"none of {names} is in the answer"


def _words(answer: Answer, texts: list[str], given: Given) -> Iterator[Said]:
    for text in texts:
        whole, part = _both(answer, text, given)
        try:
            is_word = search(word_pattern(part), whole) is not None
        except TimeoutError:
            yield took_too_long(text)
            continue
        if is_word:
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
                match = search(pattern[given.case_sensitive], folded(answer.text, True))
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
    return len(folded(text, True).strip())


def _with_its_pattern(text: str) -> Pattern:
    return text, compiled(text)


_PATTERNS: TypeAdapter[Any] = TypeAdapter(
    Annotated[list[Annotated[Text, AfterValidator(_with_its_pattern)]], *one_or_more]
)

KINDS = (
    Kind("contains", TEXTS, _contains, found.texts),
    Kind("contains_any", TEXTS, _contains_any, found.texts),
    Kind("not_contains", TEXTS, _not_contains, found.texts),
    Kind("words", TEXTS, _words, found.words),
    Kind("equals", TEXT, _compared("is", "is not", str.__eq__)),
    Kind(
        "starts_with",
        TEXT,
        _compared("starts with", "does not start with", str.startswith),
        found.start,
    ),
    Kind("ends_with", TEXT, _compared("ends with", "does not end with", str.endswith), found.end),
    Kind("regex", _PATTERNS, _matched(wanted=True), found.patterns),
    Kind("not_regex", _PATTERNS, _matched(wanted=False), found.patterns),
    Kind("min_words", COUNT, _min_words),
    Kind("max_words", COUNT, _at_most("word", _words_in)),
    Kind("max_chars", COUNT, _at_most("character", _characters_in)),
)
