"""Checks of the text of an answer."""

from collections.abc import Iterator

from ..records import Answer
from .kind import TEXTS, Given, Kind, Said


def _contains(answer: Answer, texts: list[str], given: Given) -> Iterator[Said]:
    folded = _folded(answer.text, given)
    for text in texts:
        found = _folded(text, given) in folded
        yield found, f'"{text}" is {"" if found else "not "}in the answer'


def _not_contains(answer: Answer, texts: list[str], given: Given) -> Iterator[Said]:
    return ((not found, reason) for found, reason in _contains(answer, texts, given))


def _folded(text: str, given: Given) -> str:
    return text if given.case_sensitive else text.casefold()


KINDS = (
    Kind("contains", TEXTS, _contains),
    Kind("not_contains", TEXTS, _not_contains),
)
