"""Which queries can be in a trigger set: real questions that neither name nor quote the skill.

A query that names the skill tests nothing: any agent opens a skill that it is told to open.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Final

from .._util.texts import visible

LONGEST_QUERY: Final = 2_000  # characters: it is asked and paid for often
_SHORTEST: Final = 8
_WORDS: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_MORE_WORDS: Final = 2  # in a query than in the name: "p d f forms" is "pdf-forms", too
_QUOTED: Final = 7  # words in a row that are copied, whatever is around them
_COPIED: Final = 0.75  # share of a query's words that stand in the description, in order
_FEW: Final = 4  # words that any two texts may have in common
_ALIKE: Final = 0.85  # share of words that near duplicates have in common, in order


@dataclass(frozen=True)
class QueryRules:
    """What the queries of a skill must not say: its names, and the words of its description."""

    names: tuple[str, ...]
    description: str

    def problem(self, query: str, others: Iterable[str]) -> str | None:
        """Why a query can't be used beside the others; None if it can."""
        return next(self._problems(query, others), None)

    def _problems(self, query: str, others: Iterable[str]) -> Iterator[str]:
        if len(query) > LONGEST_QUERY:
            yield f"it has {len(query):,} characters (limit {LONGEST_QUERY:,})"
            return
        if visible(query) != query:
            yield "it has control or invisible characters"
        if len(query) < _SHORTEST:
            yield "it is too short for a real query"
        words = words_of(query)
        if any(_names(words, name) for name in self._names):
            yield f"it names the skill ({self.names[0]}): a user does not know that name"
        if _copies(words, self._words):
            yield "it copies the description: say what the user wants, in other words"
        if any(alike(words, words_of(other)) for other in others):
            yield "it asks nearly the same as another query"

    @cached_property
    def _words(self) -> list[str]:
        return words_of(self.description)

    @cached_property
    def _names(self) -> list[list[str]]:
        return [words for words in map(words_of, self.names) if words]


def words_of(text: str) -> list[str]:
    """Words in lower case, each Chinese or Japanese character by itself."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    shown = (char for char in folded if unicodedata.category(char) not in ("Mn", "Cf"))
    return _WORDS.findall("".join(shown))


def _names(words: Sequence[str], name: Sequence[str]) -> bool:
    """Whether the words of a name stand in a row, joined or split, in the singular or plural."""
    wanted = {"".join(name), "".join(map(_singular, name)), _singular("".join(name))}
    longest = max(map(len, wanted)) + len(name) * 2  # with plurals
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + len(name) + _MORE_WORDS) + 1):
            row = words[start:end]
            joined = "".join(row)
            if len(joined) > longest:
                break
            if wanted & {joined, _singular(joined), "".join(map(_singular, row))}:
                return True
    return False


def _singular(word: str) -> str:
    for end, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("s", "")):
        if word.endswith(end) and len(word) - len(end) >= 2 and not word.endswith("ss"):
            return word[: -len(end)] + instead
    return word


def _copies(words: Sequence[str], description: Sequence[str]) -> bool:
    matcher = SequenceMatcher(None, words, description, autojunk=False)
    rows = [block.size for block in matcher.get_matching_blocks()]
    if max(rows) >= _QUOTED:
        return True
    shared = sum(size for size in rows if size > 1)
    return shared > _FEW and shared >= _COPIED * len(words)


def alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two queries are nearly the same, by their words."""
    if not one or not other:
        return list(one) == list(other)
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    enough = matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE
    return enough and matcher.ratio() >= _ALIKE
