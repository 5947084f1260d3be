"""Whether a skill is opened when it should be, and only then: per skill, agent and model."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Final

from .._util.texts import apart, counted, one_line, percent
from ..settings import ENOUGH_QUERIES, Gates
from ..stats import Interval, wilson
from ..trials.plan import PlannedCase
from ..trials.records import Record, agents_in
from ..trials.subject import CHAT, Subject
from .hints import DESCRIBE, command

Pair = tuple[str, str]  # the names of a skill and of a model

THRESHOLD: Final = 0.5  # the share of runs at which a query counts as one that opens the skill
MODELS_CHOICE: Final = "the choice of the model, without an agent"  # what numbers of chat are of
NO_QUERY: Final = "no query was tested"
_GOOD_RECALL: Final = 0.9
_FEW_ALARMS: Final = 0.1
_MOST_NAMES: Final = 3
_LONGEST_QUERY: Final = 60


@dataclass(frozen=True)
class QueryRate:
    """How often the skill was opened for a query."""

    case: str  # the id of its test
    query: str
    should_trigger: bool
    opened: int  # runs that opened the skill
    runs: int  # that were decided; errored ones are not among them
    errored: int
    instead: Mapping[str, int]  # other skills, by the number of runs that opened one and not ours
    sample: str = ""  # the same for all queries that ask the same
    errors: tuple[str, ...] = ()  # why runs have no result

    @property
    def rate(self) -> float | None:
        return self.opened / self.runs if self.runs else None

    @property
    def right(self) -> bool | None:
        """Whether it opens the skill if it should, and only then; None if nothing is known."""
        rate = self.rate
        return None if rate is None else (rate >= THRESHOLD) == self.should_trigger

    @property
    def count(self) -> str:
        return f"{self.opened} of {self.runs}"

    @property
    def name(self) -> str:
        """The query in quotes, or the id of its test if the text is not known."""
        text = one_line(self.query, _LONGEST_QUERY)
        return f'"{text}"' if text else one_line(self.case, _LONGEST_QUERY)


@dataclass(frozen=True)
class Share:
    """A share of queries: a mean over queries of the share of runs, with its interval."""

    rate: float
    interval: Interval
    queries: int  # those that ask the same count once
    opened: int  # queries that opened the skill, by the threshold

    @property
    def bounds(self) -> str:
        return f"{percent(self.interval.low)} to {percent(self.interval.high)}"


@dataclass(frozen=True)
class TriggerSummary:
    """What came of the queries of a skill for an agent on a model."""

    skill: str
    model: str  # the label
    recall: Share | None  # of the queries that should open it; None if no such query was decided
    false_alarms: Share | None  # of those that should not
    queries: tuple[QueryRate, ...]  # in the order of the run
    errored: int  # trials
    not_run: int = 0  # queries without a trial
    trials: int = 0  # errored ones, too
    runs: int = 0  # the most that a query has
    cost: float | None = None  # USD of one trial
    tokens: float | None = None  # of one trial
    agent: str = CHAT
    agent_version: str = ""
    path: str = ""  # of the skill
    beside: tuple[str, ...] = ()  # options of `describe` for the other skills of the run

    @property
    def pair(self) -> Pair:
        return self.skill, self.model

    @property
    def incomplete(self) -> bool:
        return bool(self.errored or self.not_run or not self.trials)

    @property
    def lacking(self) -> str:
        """What is missing, in words; empty if nothing is."""
        parts = [f"{counted(self.errored, 'trial')} without a result"] if self.errored else []
        parts += [f"{counted(self.not_run, 'query')} not run"] if self.not_run else []
        return " and ".join(parts) or ("" if self.trials else NO_QUERY)

    @property
    def missed(self) -> list[QueryRate]:
        """Queries that should open the skill and don't, the worst first."""
        found = [one for one in self.queries if one.should_trigger and one.right is False]
        return sorted(found, key=lambda one: one.rate or 0.0)

    @property
    def alarms(self) -> list[QueryRate]:
        """Queries that should not open the skill and do, the worst first."""
        found = [one for one in self.queries if not one.should_trigger and one.right is False]
        return sorted(found, key=lambda one: -(one.rate or 0.0))

    @cached_property
    def instead(self) -> dict[str, int]:
        """Other skills, by the number of trials that opened one where ours should have been."""
        found = Counter[str]()
        for query in self.queries:
            if query.should_trigger:
                found.update(query.instead)
        return dict(found.most_common())

    @property
    def word(self) -> str:
        return "incomplete" if self.incomplete else ""

    @property
    def sentence(self) -> str:
        """The verdict: ``opened in 14 of 20 that need it (…), in 1 of 20 that don't (…)``."""
        lacking = [self.lacking] if self.incomplete and self.trials else []
        choice = [MODELS_CHOICE] if self.agent == CHAT else []
        return "; ".join([self._shares, *lacking, *choice])

    @property
    def _shares(self) -> str:
        parts = []
        if one := self.recall:
            parts.append(f"{_of(one)} that need it (recall {percent(one.rate)}, {one.bounds})")
        if one := self.false_alarms:
            kind = "that don't" if parts else "that don't need it"
            parts.append(f"{_of(one)} {kind} (false alarms {percent(one.rate)}, {one.bounds})")
        return f"opened {', '.join(parts)}" if parts else NO_QUERY

    @property
    def advice(self) -> list[str]:
        """The worst queries, what was opened instead, and what to do; empty if all is well."""
        lines = []
        for what, queries in (
            ("not opened for", self.missed),
            ("opened without need for", self.alarms),
        ):
            if queries:
                lines.append(f"{what}: {_names(queries)}")
        if self.instead:
            lines.append(f"opened instead: {instead_words(self.instead)}")
        if self.errored:
            lines.append(f"without a result: {self._errors}")
        lines += self._few
        poor = self.recall is not None and self.recall.rate < _GOOD_RECALL
        loud = self.false_alarms is not None and self.false_alarms.rate > _FEW_ALARMS
        if poor or loud:
            lines.append(f"to improve its description: {self._describe}")
        elif self._few and not self.incomplete:
            lines.append(f"to write more queries: {self._command('triggers')}")
        return lines

    @property
    def _errors(self) -> str:
        causes = Counter(one_line(why, 200) for query in self.queries for why in query.errors)
        shown = causes.most_common(_MOST_NAMES)
        words = [f"{why} ({number:,})" if number > 1 else why for why, number in shown]
        more = [f"and {len(causes) - _MOST_NAMES} more causes"] if len(causes) > _MOST_NAMES else []
        return "; ".join([*words, *more])

    @property
    def _describe(self) -> str:
        """The command that improves the description where it was found wanting."""
        who = () if self.agent == CHAT else (DESCRIBE["agent"], self.agent)
        model = (DESCRIBE["model"], Subject.of(self.agent, self.model).model)
        return self._command("describe", *who, *model, *self.beside)

    def _command(self, name: str, *options: str) -> str:
        return command(name, self.path or self.skill, *options)

    @property
    def _few(self) -> list[str]:
        """What so few queries can show."""
        lines = []
        if (one := self.recall) and one.queries < ENOUGH_QUERIES:
            verbs = ("needs it shows", "need it show")[one.queries != 1]
            lines.append(
                f"{counted(one.queries, 'query')} that {verbs} little: even with {one.queries} "
                f"of {one.queries}, recall could still be {percent(wilson(1.0, one.queries).low)}"
            )
        if (one := self.false_alarms) and one.queries < ENOUGH_QUERIES:
            verbs = ("doesn't need it shows", "don't need it show")[one.queries != 1]
            high = percent(wilson(0.0, one.queries).high)
            lines.append(
                f"{counted(one.queries, 'query')} that {verbs} little: even with 0 of "
                f"{one.queries}, false alarms could still be {high}"
            )
        return lines


def _of(share: Share) -> str:
    return f"in {share.opened:,} of {share.queries:,}"


def _names(queries: Sequence[QueryRate]) -> str:
    more = [f"and {len(queries) - _MOST_NAMES} more"] if len(queries) > _MOST_NAMES else []
    return ", ".join([*(f"{one.name} ({one.count})" for one in queries[:_MOST_NAMES]), *more])


def instead_words(instead: Mapping[str, int]) -> str:
    """``docs-writer in 6 trials, pdf-tools in 1``, the most frequent first."""
    shown = list(instead.items())[:_MOST_NAMES]
    words = [f"{one_line(name, 60)} in {number:,}" for name, number in shown]
    words[0] += " trial" if shown[0][1] == 1 else " trials"
    more = [f"and {len(instead) - _MOST_NAMES} more"] if len(instead) > _MOST_NAMES else []
    return ", ".join([*words, *more])


def trigger_summaries(
    tests: Iterable[PlannedCase],
    records_of: Callable[[PlannedCase], Sequence[Record]],
    questions: Mapping[tuple[str, str], str],
    missing: Mapping[Pair, int],
    paths: Mapping[str, str],
    beside: tuple[str, ...] = (),
) -> list[TriggerSummary]:
    """One per skill, agent and model; ``questions`` by skill and id, ``missing`` counts queries."""
    groups: dict[Pair, list[tuple[PlannedCase, Sequence[Record]]]] = {}
    for test in tests:
        groups.setdefault(test.pair, []).append((test, records_of(test)))
    found = []
    for (skill, model), own in groups.items():
        texts = {test.case: questions.get((skill, test.case), "") for test, _ in own}
        lacking = missing.get((skill, model), 0)
        row = _summary(skill, model, own, texts, lacking, paths.get(skill, ""))
        found.append(replace(row, beside=beside))
    return found


def _summary(
    skill: str,
    model: str,
    own: Sequence[tuple[PlannedCase, Sequence[Record]]],
    texts: Mapping[str, str],
    missing: int,
    path: str,
) -> TriggerSummary:
    queries = tuple(query_rate(test, texts[test.case], records) for test, records in own)
    records = [record for _, some in own for record in some]
    answered = [record for record in records if record.outcome != "errored"]
    agent = own[0][0].agent
    return TriggerSummary(
        skill,
        model,
        share_of([one for one in queries if one.should_trigger]),
        share_of([one for one in queries if not one.should_trigger]),
        queries,
        errored=len(records) - len(answered),
        not_run=missing + sum(not some for _, some in own),
        trials=len(records),
        runs=max((record.run for record in records), default=0),
        cost=_mean([record.cost for record in answered]),
        tokens=_mean([record.tokens for record in answered]),
        agent=agent,
        agent_version=agents_in(records).get(agent, ""),
        path=path,
    )


def query_rate(test: PlannedCase, query: str, records: Iterable[Record]) -> QueryRate:
    """What came of the runs of a query: a decision is right or wrong, an error is neither."""
    should, own = bool(test.should_trigger), list(records)
    decided = [record for record in own if record.outcome != "errored"]
    opened = [record for record in decided if (record.outcome == "passed") == should]
    instead = Counter(
        name
        for record in decided
        if (record.outcome == "passed") != should and record.activity
        for name in dict.fromkeys(record.activity.opened)
    )
    errored = len(own) - len(decided)
    return QueryRate(
        test.case,
        query,
        should,
        len(opened),
        len(decided),
        errored,
        dict(instead),
        test.sample,
        tuple(record.error or "" for record in own if record.outcome == "errored"),
    )


def share_of(queries: Iterable[QueryRate]) -> Share | None:
    """Over the queries with a result; those that ask the same are averaged first."""
    samples: dict[tuple[str, str], list[float]] = {}
    for one in queries:
        if one.rate is not None:
            samples.setdefault((one.sample, "" if one.sample else one.case), []).append(one.rate)
    rates = [fmean(some) for some in samples.values()]
    if not rates:
        return None
    rate = min(1.0, max(0.0, fmean(rates)))
    opened = sum(one >= THRESHOLD for one in rates)
    return Share(rate, wilson(rate, len(rates)), len(rates), opened)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def repeat_notes(rows: Iterable[TriggerSummary]) -> list[str]:
    """Queries that ask the same, once for each skill."""
    found = dict[str, str]()
    for row in rows:
        known = [one.sample for one in row.queries if one.sample]
        if (asked := len(set(known))) < len(known):
            found[row.skill] = (
                f"{one_line(row.skill, 100)}: {len(known):,} queries are {asked:,} different "
                "ones: those that ask the same count as one."
            )
    return list(found.values())


def trigger_reasons(
    rows: Sequence[TriggerSummary], gates: Gates, skills: Iterable[str]
) -> list[str]:
    """Why the run fails its gates of triggers; ``skills`` are all that it tests."""
    if not gates.of_triggers:
        return []
    reasons = [
        f"{row.skill} on {row.model}: {reason}" for row in rows for reason in _reasons(row, gates)
    ]
    without = [skill for skill in skills if skill not in {row.skill for row in rows}]
    reasons += [f"{skill}: can't pass: {NO_QUERY}" for skill in without]
    return reasons or ([] if rows else [f"can't pass: {NO_QUERY}"])


def _reasons(row: TriggerSummary, gates: Gates) -> list[str]:
    if row.incomplete:
        return [f"can't pass: {row.lacking}"]
    reasons = []
    least, most, confident = gates.min_recall, gates.max_false_alarms, gates.confident
    if least is not None:
        likely = "lowest likely recall" if confident else "recall"
        if row.recall is None:
            reasons.append("recall unknown: no query that needs the skill was asked")
        elif (rate := row.recall.interval.low if confident else row.recall.rate) < least:
            have, want = apart(rate, least)
            reasons.append(f"{likely} is {have}% (minimum {want}%)")
    if most is not None:
        likely = "highest likely share of false alarms" if confident else "share of false alarms"
        if row.false_alarms is None:
            reasons.append("false alarms unknown: no query without need of it was asked")
        elif (
            rate := row.false_alarms.interval.high if confident else row.false_alarms.rate
        ) > most:
            have, want = apart(rate, most)
            reasons.append(f"{likely} is {have}% (maximum {want}%)")
    return reasons
