"""Where in a JSON text something stands: from a JSON path to a line."""

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


def line_of(text: str, location: Iterable[str | int]) -> int:
    """The line, from 1 on, where a place of a text that is JSON begins.

    For the value of a key it is the line of the key. Of a place that is not there (a key that is
    missing, say) it is the line of what should hold it.
    """
    return text.count("\n", 0, _value_at(text, location)[0]) + 1


def lines_inside(text: str, location: Iterable[str | int]) -> list[int]:
    """The line of each thing that the object or list at a place holds, found in one go."""
    value = _value_at(text, location)[1]
    lines, line, counted = list[int](), 1, 0
    for _, start, _ in _inside(text, value):
        line += text.count("\n", counted, start)
        counted = start
        lines.append(line)
    return lines


def _value_at(text: str, location: Iterable[str | int]) -> tuple[int, int]:
    """Where a place begins, or the last one on the way to it that is there, and its value."""
    start = value = _after_space(text, 0)
    for part in location:
        found = _all_inside(text, value).get(part)
        if found is None:
            break
        start, value = found
    return start, value


@lru_cache(maxsize=16)  # many places of a file are asked for one after the other, all in one list
def _all_inside(text: str, start: int) -> dict[str | int, tuple[int, int]]:
    return {key: (begin, value) for key, begin, value in _inside(text, start)}


def _inside(text: str, start: int) -> Iterator[tuple[str | int, int, int]]:
    """What an object or a list holds: its key or number, where that begins, where its value does.

    The json module reads each value whole and says where it ends, so nothing is parsed here.
    """
    opening = text[start]
    if opening not in "[{":
        return
    at, number = _after_space(text, start + 1), 0
    while text[at] not in "]}":
        begin, key = at, None
        if opening == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # over the colon
        yield (number if key is None else key), begin, at
        at = _after_space(text, _DECODER.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _after_space(text, at + 1)
        number += 1


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
