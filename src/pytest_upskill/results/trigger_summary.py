"""Whether a skill is opened when it should be, and only then: per skill,
agent and model.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Annotated, Final

from pydantic import Field, PlainSerializer, computed_field

from .._util import grouped
from .._util.texts import counted, one_line, percent, span
from ..settings import ENOUGH_QUERIES
from ..stats import Interval, wilson
from ..trials.plan import Group, PlannedCase
from ..trials.records import Record, agents_in
from ..trials.subject import CHAT, WithPair
from ..trials.transcript import Sent
from .activation import MORE_ROOM, sent_counts, sent_words
from .summary import budget_words

# The share of runs at which a query counts as one that opens the skill
THRESHOLD: Final = 0.5
# What numbers of chat are of
MODELS_CHOICE: Final = "the choice of the model, without an agent"
NO_QUERY: Final = "no query was tested"
# Settings of a run, and the options of `pytest-upskill describe` for them.
DESCRIBE: Final = {
    "agent": "--eval-agent",
    "model": "--eval-model",
    "base_url": "--eval-base-url",
    "with_skills": "--with",
    "noise": "--noise",
}
_GOOD_RECALL: Final = 0.9
_FEW_ALARMS: Final = 0.1
_MOST_NAMES: Final = 3
_LONGEST_QUERY: Final = 60
IntervalValue = Annotated[
    Interval, PlainSerializer(Interval._asdict, return_type=dict[str, float])
]


@dataclass(frozen=True)
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
    errors: tuple[str, ...] = ()  # why runs have no result

    @computed_field
    @property
    def rate(self) -> float | None:
        return self.opened / self.runs if self.runs else None

    @property
    def right(self) -> bool | None:
        """Whether it opens the skill if it should, and only then;
        None if nothing is known.
        """
        rate = self.rate
        return None if rate is None else (rate >= THRESHOLD) == self.should_open

    @property
    def count(self) -> str:
        return f"{self.opened} of {self.runs}"

    @property
    def name(self) -> str:
        """The query in quotes, or the id of its test if the text is not known."""
        text = one_line(self.query, _LONGEST_QUERY)
        return f'"{text}"' if text else one_line(self.case, _LONGEST_QUERY)


@dataclass(frozen=True)
class QueryShare:
    """A share of queries: a mean over queries of the share of runs, with its
    interval.
    """

    rate: float
    interval: IntervalValue
    queries: int  # those that ask the same count once
    opened: int  # queries that opened the skill, by the threshold


@dataclass(frozen=True)
class TriggerSummary(WithPair):
    """What came of the queries of a skill for an agent on a model."""

    skill: str
    model: str
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
    agent: str = CHAT
    agent_version: str = ""
    # How often the list of an agent showed the skill whole, cut, by name only,
    # or not at all.
    sent: Mapping[Sent, int] = field(default_factory=dict)
    path: Annotated[str, Field(exclude=True)] = ""  # of the skill
    # Options of `describe` for the server and the other skills of the run.
    beside: Annotated[tuple[str, ...], Field(exclude=True)] = ()
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
        parts = (
            [f"{counted(self.errored, 'trial')} without a result"]
            if self.errored
            else []
        )
        parts += [f"{counted(self.not_run, 'query')} not run"] if self.not_run else []
        parts += ["only queries that failed the last time"] if self.by_outcome else []
        if self.over_budget:
            parts.append(budget_words(len(self.queries), self.over_budget, "query"))
        return " and ".join(parts) or ("" if self.trials else NO_QUERY)

    def wrong(self, should_open: bool) -> list[QueryRate]:
        """Queries that should open the skill and don't, or the other way round;
        the worst first.
        """
        wrong = [
            q for q in self.queries if q.should_open is should_open and q.right is False
        ]
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
        """Other skills, by the number of trials that opened one
        where ours should have been.
        """
        trials = Counter[str]()
        for query in self.queries:
            if query.should_open:
                trials.update(query.instead)
        return dict(trials.most_common())

    @property
    def word(self) -> str:
        return "incomplete" if self.incomplete else ""

    @computed_field
    @property
    def sentence(self) -> str:
        """The verdict: ``opened in 14 of 20 that need it (…),
        in 1 of 20 that don't (…)``.
        """
        missing = [self.missing_words] if self.missing_words and self.trials else []
        choice = [MODELS_CHOICE] if self.agent == CHAT else []
        shortened = [words] if (words := sent_words(self.sent)) else []
        return "; ".join([self._shares, *shortened, *missing, *choice])

    @property
    def _shares(self) -> str:
        parts = list[str]()
        for name, share in self.shares.items():
            kind = (
                "need it" if name == "recall" else "don't" if parts else "don't need it"
            )
            rate = f"({name} {percent(share.rate)}, {span(*share.interval, percent)})"
            parts.append(f"in {share.opened:,} of {share.queries:,} that {kind} {rate}")
        return f"opened {', '.join(parts)}" if parts else NO_QUERY

    @property
    def advice(self) -> list[str]:
        """The worst queries, what was opened instead, and what to do;
        empty if all is well.
        """
        lines = []
        for problem, should_open in (
            ("not opened for", True),
            ("opened without need for", False),
        ):
            if queries := self.wrong(should_open):
                lines.append(
                    f"{problem}: {_first([f'{q.name} ({q.count})' for q in queries])}"
                )
        if self.instead:
            lines.append(f"opened instead: {_instead_words(self.instead)}")
        if self.errored:
            lines.append(f"without a result: {self._errors}")
        few = [*self._few_queries]
        if self.sent.keys() - {"whole"}:
            lines.append(f"to have its description sent: {MORE_ROOM}")
        poor = self.recall is not None and self.recall.rate < _GOOD_RECALL
        loud = self.false_alarms is not None and self.false_alarms.rate > _FEW_ALARMS
        if self.is_bundle:
            route = (
                f"to see which of its skills each query opens: {self._command('route')}"
            )
            return [*lines, *few, *([route] if poor or loud else [])]
        if poor or loud:
            return [*lines, *few, f"to improve its description: {self._describe}"]
        if few and not self.incomplete:
            few.append(f"to write more queries: {self._command('triggers')}")
        return [*lines, *few]

    @property
    def _errors(self) -> str:
        causes = Counter(
            one_line(reason, 200) for query in self.queries for reason in query.errors
        )
        words = [
            f"{reason} ({n:,})" if n > 1 else reason
            for reason, n in causes.most_common()
        ]
        return _first(words, "; ", " causes")

    @property
    def _describe(self) -> str:
        """The command that improves the description for this agent and model."""
        agent = () if self.agent == CHAT else (DESCRIBE["agent"], self.agent)
        model = (DESCRIBE["model"], self.model)
        return self._command("describe", *agent, *model, *self.beside)

    def _command(self, name: str, *options: str) -> str:
        words = ("pytest-upskill", name, self.path or self.skill, *options)
        return shlex.join(one_line(word, 200) for word in words)

    @property
    def _few_queries(self) -> Iterator[str]:
        """What so few queries can show."""
        for name, share in self.shares.items():
            number, best = share.queries, 1.0 if name == "recall" else 0.0
            if number < ENOUGH_QUERIES:
                needs = "needs it" if best else "doesn't need it"
                verbs = f"{needs} shows" if number == 1 else f"{_PLURAL[needs]} show"
                bound = wilson(best, number)[0 if best else 1]
                yield (
                    f"{counted(number, 'query')} that {verbs} little: even with"
                    f" {round(best * number)} of {number}, {name} could still be"
                    f" {percent(bound)}"
                )


_PLURAL: Final = {"needs it": "need it", "doesn't need it": "don't need it"}


def _first(words: Sequence[str], separator: str = ", ", noun: str = "") -> str:
    hidden = len(words) - _MOST_NAMES
    others = [f"and {hidden} more{noun}"] if hidden > 0 else []
    return separator.join([*words[:_MOST_NAMES], *others])


def _instead_words(instead: Mapping[str, int]) -> str:
    """``docs-writer in 6 trials, pdf-tools in 1``, the most frequent first."""
    (name, number), *others = instead.items()
    words = [f"{one_line(name, 60)} in {counted(number, 'trial')}"]
    return _first(
        [*words, *(f"{one_line(name, 60)} in {number:,}" for name, number in others)]
    )


def trigger_summaries(
    tests: Iterable[PlannedCase],
    records_of: Callable[[PlannedCase], Sequence[Record]],
    *,
    questions: Mapping[tuple[str, str], str],
    missing: Mapping[Group, int],
    by_outcome: Collection[Group],
    paths: Mapping[str, str],
    beside: tuple[str, ...] = (),
    bundles: Collection[str] = (),
) -> list[TriggerSummary]:
    """One per skill, agent and model; ``questions`` by skill and id,
    ``missing`` counts queries.
    """
    groups = grouped(tests, lambda test: test.group)
    summaries = []
    for group, all_tests in groups.items():
        skill, (agent, model) = group.pair
        not_asked = {
            test.case: asked
            for test in all_tests
            if (asked := sum(record.over_budget for record in records_of(test)))
        }
        asked_tests = [test for test in all_tests if test.case not in not_asked]
        by_query = [records_of(test) for test in asked_tests]
        queries = tuple(
            query_rate(test, questions.get((skill, test.case), ""), records)
            for test, records in zip(asked_tests, by_query, strict=True)
        )
        records = [record for of_query in by_query for record in of_query]
        summaries.append(
            TriggerSummary(
                skill,
                model,
                share_of(query for query in queries if query.should_open),
                share_of(query for query in queries if not query.should_open),
                queries,
                errored=sum(record.outcome == "errored" for record in records),
                not_run=missing.get(group, 0)
                + sum(not of_query for of_query in by_query),
                over_budget=len(not_asked),
                not_asked=sum(not_asked.values()),
                trials=len(records),
                runs=max((record.run for record in records), default=0),
                agent=agent,
                agent_version=agents_in(records).get(agent, ""),
                sent=sent_counts(records),
                path=paths.get(skill, ""),
                beside=beside,
                is_bundle=skill in bundles,
                by_outcome=group in by_outcome,
            )
        )
    return summaries


def query_rate(test: PlannedCase, query: str, records: Iterable[Record]) -> QueryRate:
    """What came of the runs of a query: a decision is right or wrong,
    an error is neither.
    """
    should, runs = test.should_open, list(records)
    decided = [record for record in runs if record.outcome != "errored"]
    opened = [record for record in decided if (record.outcome == "passed") == should]
    instead = Counter(
        name
        for record in decided
        if (record.outcome == "passed") != should and record.activity
        for name in dict.fromkeys(record.activity.opened)
    )
    return QueryRate(
        test.case,
        query,
        should,
        len(opened),
        len(decided),
        len(runs) - len(decided),
        dict(instead),
        test.sample,
        tuple(record.error or "" for record in runs if record.outcome == "errored"),
    )


def share_of(queries: Iterable[QueryRate]) -> QueryShare | None:
    """Over the queries with a result; those that ask the same are averaged first."""
    samples: dict[tuple[str, str], list[float]] = {}
    for query in queries:
        if query.rate is not None:
            key = (query.sample, "" if query.sample else query.case)
            samples.setdefault(key, []).append(query.rate)
    rates = [fmean(sample) for sample in samples.values()]
    if not rates:
        return None
    rate = min(1.0, max(0.0, fmean(rates)))
    opened = sum(rate >= THRESHOLD for rate in rates)
    return QueryShare(rate, wilson(rate, len(rates)), len(rates), opened)


def size_words(rows: Sequence[TriggerSummary], times: str = "×") -> str:
    """``20 queries that need pdf, 20 that don't × 3 runs``, over all skills."""
    most = dict[str, TriggerSummary]()  # of each skill, the row with the most queries
    for row in rows:
        most[row.skill] = max(
            most.get(row.skill, row), row, key=lambda row: len(row.queries)
        )
    kinds = [query.should_open for row in most.values() for query in row.queries]
    needs, spares = kinds.count(True), kinds.count(False)
    runs = counted(max(row.runs for row in rows), "run")
    need, lack = (
        "needs" if needs == 1 else "need",
        "doesn't" if spares == 1 else "don't",
    )
    skill = one_line(rows[0].skill, 60) if len(most) == 1 else "their skill"
    return (
        f"{counted(needs, 'query')} that {need} {skill}, {spares:,} that {lack} {times}"
        f" {runs}"
    )
