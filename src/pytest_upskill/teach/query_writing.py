"""Queries of a trigger set, written by a model: each is checked, and replaced if it is rejected."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from pydantic import ValidationError

from .._util.texts import one_line
from ..errors import BudgetError, UnusableError
from .query_rules import LONGEST_QUERY, QueryRules
from .replies import QUERIES_SCHEMA, Loose, NotUsable, Request, ask_for, objects_in, read_reply
from .secrets import masked
from .teach_models import TeachModels
from .trigger_prompts import QUERY_AUTHOR, queries_prompt

BATCH: Final = 30  # replies with more queries get cut off
_ROUNDS: Final = 3  # of replacing rejected queries
_MOST_REJECTED: Final = 20  # that the author is told of
_MOST_READ: Final = 3  # times as many as were asked for
_SHOWN: Final = 200


@dataclass(frozen=True)
class Query:
    """A query, and whether the skill should be opened for it."""

    text: str
    should_trigger: bool


@dataclass(frozen=True)
class RejectedQuery:
    """A query that can't be in the set, shortened, and why."""

    text: str
    why: str


class QueryForm(Loose):
    query: str
    should_trigger: bool


class QueriesForm(Loose):
    queries: list[Any]  # each is validated on its own, so that one can't spoil the others


@dataclass
class WrittenQueries:
    """Usable queries, all that were rejected, and why it ended early ("" if it did not)."""

    usable: list[Query] = field(default_factory=list)
    rejected: list[RejectedQuery] = field(default_factory=list)
    stop: str = ""


def missing_of(known: Sequence[Query], total: int) -> tuple[int, int]:
    """How many of each kind make the set ``total``, and as balanced as it can be."""
    should = sum(one.should_trigger for one in known)
    more, rest = should, len(known) - should
    for _ in range(total - len(known)):
        more, rest = (more + 1, rest) if more <= rest else (more, rest + 1)
    return more - should, rest - (len(known) - should)


@dataclass(frozen=True)
class QueryAuthor:
    """The model that writes queries, and what it knows of the skill."""

    models: TeachModels
    name: str
    skill: str  # its SKILL.md
    messages: Sequence[str]  # of users
    rules: QueryRules
    session: int

    def write(self, total: int, known: Sequence[Query]) -> WrittenQueries:
        """The queries that are missing; fewer if the model can't write them in some rounds."""
        written, told = WrittenQueries(), list[RejectedQuery]()
        batches = -(-sum(missing_of(known, total)) // BATCH)
        for _ in range(batches + _ROUNDS):
            have = [*known, *written.usable]
            missing = missing_of(have, total)
            if not any(missing):
                return written
            try:
                replies = ask_for(self.models, self._request(have, missing, told), _read)
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
            told = self._add(written, replies, missing, known)
        if any(missing_of([*known, *written.usable], total)):
            written.stop = f"{self.models.author} wrote too few that can be used"
        return written

    def _request(
        self, have: Sequence[Query], missing: tuple[int, int], told: Sequence[RejectedQuery]
    ) -> Request:
        prompt = queries_prompt(
            self.name,
            self.skill,
            self.messages,
            [(one.text, one.should_trigger) for one in have],
            _batch_of(missing),
            [(one.text, one.why) for one in told[-_MOST_REJECTED:]],
        )
        return Request(
            self.models.author, QUERY_AUTHOR, masked(prompt), QUERIES_SCHEMA, self.session
        )

    def _add(
        self,
        written: WrittenQueries,
        replies: Sequence[Any],
        missing: tuple[int, int],
        known: Sequence[Query],
    ) -> list[RejectedQuery]:
        """Add what can be used; return what was rejected of this reply."""
        left = dict(zip((True, False), missing, strict=True))
        rejected = list[RejectedQuery]()
        for reply in islice(replies, _MOST_READ * BATCH):
            others = [one.text for one in (*known, *written.usable)]
            try:
                query = self._checked(reply, others, missing)
            except NotUsable as error:
                said = reply.get("query") if isinstance(reply, dict) else reply
                shown = one_line(masked(str(said)[: LONGEST_QUERY * 2]), _SHOWN)
                rejected.append(RejectedQuery(shown, str(error)))
                continue
            if left[query.should_trigger]:
                left[query.should_trigger] -= 1
                written.usable.append(query)
        written.rejected += rejected
        return rejected

    def _checked(self, reply: Any, others: Sequence[str], missing: tuple[int, int]) -> Query:
        """The query of a reply; NotUsable if it can't be in the set."""
        try:
            form = QueryForm.model_validate(reply)
        except ValidationError:
            what = 'it is no object with a text "query" and a true or false "should_trigger"'
            raise NotUsable([what]) from None
        text, should = form.query, form.should_trigger
        if len(text) <= LONGEST_QUERY:  # a longer one is rejected, and takes long to be masked
            text = " ".join(masked(text).split())
        problem = self.rules.problem(text, others)
        if not problem and not missing[not should]:
            problem = f"only queries with should_trigger {str(not should).lower()} are missing"
        if problem:
            raise NotUsable([problem])
        return Query(text, should)


def _batch_of(missing: tuple[int, int]) -> tuple[int, int]:
    """As many as one reply can hold, of each kind its share."""
    total = sum(missing)
    if total <= BATCH:
        return missing
    first = round(BATCH * missing[0] / total)
    return first, BATCH - first


def _read(text: str) -> list[Any]:
    """The queries of a reply; if it is cut off or a bare list, those that are complete."""
    try:
        queries = read_reply(text, QueriesForm).queries
    except NotUsable:
        queries = [one for one in objects_in(text) if "query" in one]
        if not queries:
            raise
    if not queries:
        raise NotUsable(["it has no queries"])
    return queries
