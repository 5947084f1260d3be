"""Ids of cases without one: words of the question, and a hash of all that is asked."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from .._util.texts import digest, joined_words, slug_words

_ALIKE: Final = 20  # characters that ids of questions which begin alike would share


def automatic_ids(asked: Sequence[tuple[str, ...]]) -> list[str]:
    """An id for each case: its question, and whatever else it is asked with.

    Of questions that begin alike, the words that differ come first. Other questions change nothing.
    """
    found = [slug_words(question) for question, *_ in asked]
    groups: dict[str, list[list[str]]] = {}
    for words in sorted(found):
        group = groups.setdefault(_beginning(words), [])
        if words not in group[-1:]:
            group.append(words)
    return [
        f"{_telling(words, groups[_beginning(words)]) or 'case'}-{digest(*parts)[:6]}"
        for words, parts in zip(found, asked, strict=True)
    ]


def numbered(ids: Sequence[str]) -> list[str]:
    """The same ids, with a number behind each that was there before."""
    taken, last, out = set(ids), dict[str, int](), list[str]()
    for one in ids:
        name = one
        while one in last and name in taken:
            last[one] += 1
            name = f"{one}-{last[one]}"
        last.setdefault(one, 1)
        taken.add(name)
        out.append(name)
    return out


def _beginning(words: Sequence[str]) -> str:
    """The first words, up to about half of what an id has room for."""
    start = ""
    for word in words:
        start = f"{start}-{word}"
        if len(start) > _ALIKE:
            break
    return start


def _telling(words: list[str], alike: list[list[str]]) -> str:
    """The words to show; ``alike`` is sorted, so those that share the most are neighbours."""
    at = bisect_left(alike, words)
    others = (*alike[max(at - 1, 0) : at], *alike[at + 1 : at + 2])
    shared = max((_shared(words, other) for other in others), default=0)
    differ = shared < len(words) and len("-".join(words[:shared])) > _ALIKE
    return joined_words(words[shared:] if differ else words)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words two questions begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))
