"""Whether a skill is opened when it should be, and only then: per skill, agent and
model.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import Annotated, Final

from pydantic import Field, computed_field

from ..._util import grouped
from ..._util.texts import counted, first_few, one_line, percent, span
from ...results.activation import MORE_ROOM, count_sent, sent_words
from ...results.causes import budget_words
from ...results.row import QueryShare, Row
from ...results.run import RunResults
from ...results.sections import KindSection
from ...settings import ENOUGH_QUERIES, Gates
from ...skills.case import OPENS
from ...stats import wilson
from ...trials.plan import PlannedCase
from ...trials.records import Record, agents_in
from ...trials.subject import CHAT, SkillOnSubject, WithPair
from ...trials.transcript import Sent
from . import QUERY
from .common import MODELS_CHOICE, NO_QUERY, query_reasons

# The share of runs at which a query counts as one that opens the skill
THRESHOLD: Final = 0.5
_GOOD_RECALL: Final = 0.9
_FEW_ALARMS: Final = 0.1
_MAX_NAMES: Final = 3
_MAX_QUERY_LENGTH: Final = 60


@dataclass(frozen=True, kw_only=True)
class QueryRate:
    """How often the skill was opened for a query."""

    case: str  # the id of its test
    query: str
    should_open: bool
    opened: int  # runs that opened the skill
    runs: int  # that were decided; errored ones are not among them
    errored: int
    # Other skills, by the number of runs that opened one and not ours
    instead: Mapping[str, int]
    sample: str = ""  # the same for all queries that ask the same

    @computed_field
    @property
    def rate(self) -> float | None:
        return self.opened / self.runs if self.runs else None

    @property
    def right(self) -> bool | None:
        """Whether it opens the skill if it should, and only then; None if nothing is
        known.
        """
        if self.rate is None:
            return None
        return (self.rate >= THRESHOLD) == self.should_open

    @property
    def words(self) -> str:
        """``"Fill in a form" (1 of 3)``, or the id of its test if the text is not
        known.
        """
        name = one_line(self.case, _MAX_QUERY_LENGTH)
        if self.query:
            name = f'"{one_line(self.query, _MAX_QUERY_LENGTH)}"'
        return f"{name} ({self.opened} of {self.runs})"


@dataclass(frozen=True, kw_only=True)
class QuerySummary(WithPair):
    """What came of the queries of a skill for an agent on a model."""

    skill: str
    model: str
    agent: str = CHAT
    agent_version: str = ""
    # Of the queries that should open it; None if none was decided
    recall: QueryShare | None
    false_alarms: QueryShare | None  # of those that should not
    queries: tuple[QueryRate, ...]  # in the order of the run
    errored: int  # trials
    not_run: int = 0  # queries without a trial
    # Queries that a budget kept from being asked: as if not selected
    over_budget: int = 0
    not_asked: Annotated[int, Field(exclude=True)] = 0  # their trials without an answer
    trials: int = 0  # errored ones, too
    runs: int = 0  # the most that a query has
    # How often the list of an agent showed the skill whole, cut, by name only,
    # or not at all.
    sent: Mapping[Sent, int] = field(default_factory=dict)
    path: Annotated[str, Field(exclude=True)] = ""  # of the skill
    # How the queries were selected
    by_outcome: Annotated[bool, Field(exclude=True)] = False
    # Several skills that are tested as one
    is_bundle: Annotated[bool, Field(exclude=True)] = False

    @property
    def incomplete(self) -> bool:
        return bool(self.errored or self.not_run or self.by_outcome or not self.trials)

    @property
    def missing_words(self) -> str:
        """What is missing; empty if nothing is."""
        parts = []
        if self.errored:
            parts.append(f"{counted(self.errored, 'trial')} without a result")
        if self.not_run:
            parts.append(f"{counted(self.not_run, 'query')} not run")
        if self.by_outcome:
            parts.append("only queries that failed the last time")
        if self.over_budget:
            parts.append(budget_words(len(self.queries), self.over_budget, "query"))
        if not parts and not self.trials:
            return NO_QUERY
        return " and ".join(parts)

    def wrong(self, should_open: bool) -> list[QueryRate]:
        """Queries that should open the skill and don't, or the other way round; the
        worst first.
        """
        wrong = []
        for query in self.queries:
            if query.should_open is should_open and query.right is False:
                wrong.append(query)
        return sorted(
            wrong, key=lambda query: query.rate or 0.0, reverse=not should_open
        )

    @property
    def shares(self) -> dict[str, QueryShare]:
        """Recall and false alarms, as far as they are known."""
        both = {"recall": self.recall, "false alarms": self.false_alarms}
        return {name: share for name, share in both.items() if share}

    @computed_field
    @cached_property
    def instead(self) -> dict[str, int]:
        """Other skills, by the number of trials that opened one where ours should have
        been.
        """
        trials = Counter[str]()
        for query in self.queries:
            if query.should_open:
                trials.update(query.instead)
        return dict(trials.most_common())

    @computed_field
    @property
    def sentence(self) -> str:
        """``opened in 14 of 20 that need it (…), in 1 of 20 that don't (…)``."""
        parts = [self._share_words]
        if shortened := sent_words(self.sent):
            parts.append(shortened)
        if self.missing_words and self.trials:
            parts.append(self.missing_words)
        if self.agent == CHAT:
            parts.append(MODELS_CHOICE)
        return "; ".join(parts)

    @property
    def _share_words(self) -> str:
        parts: list[str] = []
        for name, share in self.shares.items():
            kind = "need it"
            if name != "recall":
                kind = "don't" if parts else "don't need it"
            rate = f"({name} {percent(share.rate)}, {span(*share.interval, percent)})"
            parts.append(f"in {share.opened:,} of {share.queries:,} that {kind} {rate}")
        return f"opened {', '.join(parts)}" if parts else NO_QUERY

    @property
    def advice(self) -> list[str]:
        """The worst queries, what was opened instead, and what to do; empty if all is
        well.
        """
        lines = []
        if queries := self.wrong(should_open=True):
            lines.append(f"not opened for: {_list_queries(queries)}")
        if queries := self.wrong(should_open=False):
            lines.append(f"opened without need for: {_list_queries(queries)}")
        if self.instead:
            names = [
                f"{one_line(name, 60)} in {counted(number, 'trial')}"
                for name, number in self.instead.items()
            ]
            lines.append(f"opened instead: {first_few(names, _MAX_NAMES)}")
        if self.sent.keys() - {"whole"}:
            lines.append(f"to have its description sent: {MORE_ROOM}")
        few = list(self._few_queries())
        return [*lines, *few, *self._find_next(is_few=bool(few))]

    def _few_queries(self) -> Iterator[str]:
        """What so few queries can show."""
        for name, share in self.shares.items():
            if share.queries < ENOUGH_QUERIES:
                best = share.queries if name == "recall" else 0
                interval = wilson(best / share.queries, share.queries)
                bound = interval.low if best else interval.high
                yield (
                    f"{name} of so few queries says little: even with {best} of"
                    f" {share.queries} it could still be {percent(bound)}"
                )

    def _find_next(self, *, is_few: bool) -> list[str]:
        """The command that helps, if one does."""
        is_good = not self.recall or self.recall.rate >= _GOOD_RECALL
        is_quiet = not self.false_alarms or self.false_alarms.rate <= _FEW_ALARMS
        if is_good and is_quiet:
            if is_few and not self.incomplete and not self.is_bundle:
                return [f"to write more queries: {self._command('triggers')}"]
            return []

        if self.is_bundle:
            route = self._command("route")
            return [f"to see which of its skills each query opens: {route}"]
        options = ["--eval-model", self.model]
        if self.agent != CHAT:
            options = ["--eval-agent", self.agent, *options]
        return [f"to improve its description: {self._command('describe', *options)}"]

    def _command(self, name: str, *options: str) -> str:
        words = ["pytest-upskill", name, self.path or self.skill, *options]
        return shlex.join(one_line(word, 200) for word in words)


def _list_queries(queries: Sequence[QueryRate]) -> str:
    return first_few([query.words for query in queries], _MAX_NAMES)


@dataclass(frozen=True)
class Queries(KindSection):
    """What came of the queries of a run."""

    feature = "queries"

    @computed_field
    @cached_property
    def trigger_summaries(self) -> list[QuerySummary]:
        """One per skill, agent and model with queries."""
        run: RunResults = self.results
        tests = [test for test in run.tests if test.kind == QUERY]
        by_pair = grouped(tests, lambda test: test.pair)
        return [_summarize(run, of_pair) for of_pair in by_pair.values()]

    def add_to(self, rows: dict[SkillOnSubject, Row]) -> None:
        run: RunResults = self.results
        digests = {skill.name: skill.digest for skill in run.skills}
        for summary in self.trigger_summaries:
            row = rows.get(summary.pair) or Row(
                skill=summary.skill,
                model=summary.model,
                model_id=run.model_ids.get(summary.label, ""),
                agent=summary.agent,
                agent_version=summary.agent_version,
                runs=summary.runs,
                errored=summary.errored + summary.not_asked,
                verdict="incomplete" if summary.incomplete else None,
                sentence=summary.sentence,
                skill_digest=digests.get(summary.skill, ""),
                interrupted=run.interrupted is not None,
            )
            rows[summary.pair] = replace(
                row, recall=summary.recall, false_alarms=summary.false_alarms
            )

    def gate_reasons(self, gates: Gates) -> list[str]:
        if not gates.of_triggers:
            return []

        reasons = []
        for row in self.trigger_summaries:
            reasons += [f"{row.pair}: {reason}" for reason in query_reasons(row, gates)]
        tested = {row.skill for row in self.trigger_summaries}
        run: RunResults = self.results
        for skill in run.skills:
            if skill.name not in tested:
                reasons.append(f"{skill.name}: can't pass: {NO_QUERY}")
        return reasons or ([] if tested else [f"can't pass: {NO_QUERY}"])

    @property
    def details(self) -> list[str]:
        lines = []
        for row in self.trigger_summaries:
            lines.append(f"{row.label}: {row.sentence}")
            for query in row.wrong(should_open=True):
                lines.append(f"  not opened for {query.words}")
            for query in row.wrong(should_open=False):
                lines.append(f"  opened without need for {query.words}")
        return lines


def _summarize(results: RunResults, tests: Sequence[PlannedCase]) -> QuerySummary:
    """The queries of a skill on a model."""
    group = tests[0].group
    skill, (agent, model) = group.pair
    info = next((each for each in results.skills if each.name == skill), None)
    queries: list[QueryRate] = []
    records: list[Record] = []
    not_run = results.missing.get(group, 0)
    over_budget = 0
    not_asked = 0
    for test in tests:
        of_query = results.planned_records_of(test)
        left_out = sum(record.over_budget for record in of_query)
        if left_out:
            over_budget += 1
            not_asked += left_out
            continue

        text = results.questions.get((skill, test.case), "")
        queries.append(_rate_query(test, text, of_query))
        records += of_query
        not_run += not of_query

    return QuerySummary(
        skill=skill,
        model=model,
        agent=agent,
        agent_version=agents_in(records).get(agent, ""),
        recall=find_share(query for query in queries if query.should_open),
        false_alarms=find_share(query for query in queries if not query.should_open),
        queries=tuple(queries),
        errored=sum(record.outcome == "errored" for record in records),
        not_run=not_run,
        over_budget=over_budget,
        not_asked=not_asked,
        trials=len(records),
        runs=max((record.run for record in records), default=0),
        sent=count_sent(record.activity for record in records),
        path=info.path if info else "",
        by_outcome=group in results.selected_to_fail,
        is_bundle=bool(info and info.members),
    )


def _rate_query(test: PlannedCase, query: str, records: Sequence[Record]) -> QueryRate:
    """What came of the runs of a query: a decision is right or wrong, an error is
    neither.
    """
    should_open = OPENS in test.tags
    opened = 0
    errored = 0
    instead = Counter[str]()
    for record in records:
        if record.outcome == "errored":
            errored += 1
        elif (record.outcome == "passed") == should_open:
            opened += 1
        elif record.activity:
            instead.update(dict.fromkeys(record.activity.opened, 1))
    return QueryRate(
        case=test.case,
        query=query,
        should_open=should_open,
        opened=opened,
        runs=len(records) - errored,
        errored=errored,
        instead=dict(instead),
        sample=test.sample,
    )


def find_share(queries: Iterable[QueryRate]) -> QueryShare | None:
    """Over the queries with a result; those that ask the same are averaged first."""
    decided = [query for query in queries if query.rate is not None]
    if not decided:
        return None

    samples = grouped(
        decided, lambda query: (query.sample, "" if query.sample else query.case)
    )
    rates = []
    for sample in samples.values():
        rates.append(fmean(query.rate or 0.0 for query in sample))
    mean = min(1.0, max(0.0, fmean(rates)))
    opened = sum(rate >= THRESHOLD for rate in rates)
    return QueryShare(mean, wilson(mean, len(rates)), len(rates), opened)
