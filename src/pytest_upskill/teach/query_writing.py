"""Queries of a trigger set, written by a model: each is checked, and replaced if rejected.

A query that names the skill tests nothing: any agent opens a skill that it is told to open.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import islice
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from .._util.texts import one_line, visible
from ..errors import BudgetError, UnusableError
from .prompts import QUERY_AUTHOR, queries_prompt
from .replies import (
    QUERIES_SCHEMA,
    Authored,
    NotUsable,
    Rejected,
    TeachRequest,
    ask_for,
    read_entries,
)
from .secrets import masked
from .teach_models import TeachModels

LONGEST_QUERY: Final = 2_000  # characters: it is asked and paid for often
_SHORTEST: Final = 8
_WORDS: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_MORE_WORDS: Final = 2  # in a query than in the name: "p d f forms" is "pdf-forms", too
_QUOTED: Final = 7  # words in a row that are copied, whatever is around them
_COPIED: Final = 0.75  # share of a query's words that stand in the description, in order
_FEW: Final = 4  # words that any two texts may have in common
_ALIKE: Final = 0.85  # share of words that near duplicates have in common, in order

QUERY_BATCH: Final = 30  # replies with more queries get cut off
_ROUNDS: Final = 3  # of replacing rejected queries
_MOST_REJECTED: Final = 20  # that the author is told of
_MOST_READ: Final = 3  # times as many as were asked for
_SHOWN: Final = 200


@dataclass(frozen=True)
class QueryRules:
    """What the queries of a skill must not say: its names, and the words of its description."""

    names: tuple[str, ...]
    description: str

    def problem(self, query: str, existing: Iterable[str]) -> str | None:
        """Why a query can't be used beside the existing ones; None if it can."""
        return next(self._problems(query, existing), None)

    def _problems(self, query: str, existing: Iterable[str]) -> Iterator[str]:
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
        if any(alike(words, words_of(text)) for text in existing):
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
    visible_chars = (char for char in folded if unicodedata.category(char) not in ("Mn", "Cf"))
    return _WORDS.findall("".join(visible_chars))


def _names(words: Sequence[str], name: Sequence[str]) -> bool:
    """Whether the words of a name stand in a row, joined or split, in the singular or plural."""
    forms = {"".join(name), "".join(map(_singular, name)), _singular("".join(name))}
    longest = max(map(len, forms)) + len(name) * 2  # with plurals
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + len(name) + _MORE_WORDS) + 1):
            row = words[start:end]
            joined = "".join(row)
            if len(joined) > longest:
                break
            if forms & {joined, _singular(joined), "".join(map(_singular, row))}:
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


def alike(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two queries are nearly the same, by their words."""
    if not first or not second:
        return list(first) == list(second)
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    quick = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return all(ratio() >= _ALIKE for ratio in quick)


@dataclass(frozen=True)
class Query:
    """A query, and whether the skill should be opened for it: an entry of evals/triggers.json."""

    query: str
    should_trigger: bool


_QUERY: Final = TypeAdapter(Query)


def missing_of(queries: Sequence[Query], total: int) -> tuple[int, int]:
    """How many of each kind are missing in a set of ``total``, as balanced as it can be."""
    old_should = sum(query.should_trigger for query in queries)
    missing = max(0, total - len(queries))
    should = min(missing, max(0, (len(queries) + missing + 1) // 2 - old_should))
    return should, missing - should


@dataclass(frozen=True)
class QueryAuthor:
    """The model that writes queries, and what it knows of the skill."""

    models: TeachModels
    name: str
    skill: str  # its SKILL.md
    messages: Sequence[str]  # of users
    rules: QueryRules
    session: int

    def write(self, total: int, old: Sequence[Query]) -> Authored[Query]:
        """The queries that are missing; fewer if the model can't write them in some rounds."""
        written, rejected = Authored[Query](), list[Rejected]()
        batches = -(-sum(missing_of(old, total)) // QUERY_BATCH)
        for _ in range(batches + _ROUNDS):
            queries = [*old, *written.usable]
            missing = missing_of(queries, total)
            if not any(missing):
                return written
            try:
                replies = ask_for(
                    self.models, self._request(queries, missing, rejected), _read_queries
                )
            except UnusableError as error:
                if not written.usable:
                    raise
                written.stop = str(error).splitlines()[0].rstrip(":")
                return written
            except BudgetError:
                if not written.usable:
                    raise
                written.stop = f"another round {self.models.past_budget()}"
                return written
            rejected = self._add(written, replies, missing, old)
        if any(missing_of([*old, *written.usable], total)):
            written.stop = f"{self.models.author} wrote too few that can be used"
        return written

    def _request(
        self,
        queries: Sequence[Query],
        missing: tuple[int, int],
        rejected: Sequence[Rejected],
    ) -> TeachRequest:
        prompt = queries_prompt(
            self.name,
            self.skill,
            self.messages,
            [(query.query, query.should_trigger) for query in queries],
            _batch_of(missing),
            [(query.text, query.reason) for query in rejected[-_MOST_REJECTED:]],
        )
        return TeachRequest(self.models.author, QUERY_AUTHOR, prompt, QUERIES_SCHEMA, self.session)

    def _add(
        self,
        written: Authored[Query],
        replies: Sequence[Any],
        missing: tuple[int, int],
        old: Sequence[Query],
    ) -> list[Rejected]:
        """Add what can be used; return what was rejected of this reply."""
        to_add = dict(zip((True, False), missing, strict=True))
        rejected = list[Rejected]()
        for reply in islice(replies, _MOST_READ * QUERY_BATCH):
            existing = [query.query for query in (*old, *written.usable)]
            try:
                query = self._checked(reply, existing, missing)
            except NotUsable as error:
                text = str(reply.get("query") if isinstance(reply, dict) else reply)
                text = one_line(masked(text[: LONGEST_QUERY * 2]), _SHOWN)
                rejected.append(Rejected(text, str(error)))
                continue
            if to_add[query.should_trigger]:
                to_add[query.should_trigger] -= 1
                written.usable.append(query)
        written.rejected += rejected
        return rejected

    def _checked(self, reply: Any, existing: Sequence[str], missing: tuple[int, int]) -> Query:
        """The query of a reply; NotUsable if it can't be in the set."""
        try:
            query = _QUERY.validate_python(reply)
        except ValidationError:
            problem = 'it is no object with a text "query" and a true or false "should_trigger"'
            raise NotUsable([problem]) from None
        text, should = query.query, query.should_trigger
        if len(text) <= LONGEST_QUERY:  # a longer one is rejected, and takes long to be masked
            text = " ".join(masked(text).split())
        problem = self.rules.problem(text, existing) or ""
        if not problem and not missing[not should]:
            problem = f"only queries with should_trigger {str(not should).lower()} are missing"
        if problem:
            raise NotUsable([problem])
        return Query(text, should)


def _batch_of(missing: tuple[int, int]) -> tuple[int, int]:
    """As many as one reply can hold, of each kind its share."""
    total = sum(missing)
    if total <= QUERY_BATCH:
        return missing
    first = round(QUERY_BATCH * missing[0] / total)
    return first, QUERY_BATCH - first


def _read_queries(text: str) -> list[Any]:
    return read_entries(text, "queries", "query")
