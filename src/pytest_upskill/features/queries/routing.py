"""Which skill of a catalogue each query opens: right, missed, wrong skill,
or a false alarm.

The query is the sample, so its runs are averaged first. In a run, the skill that
is opened first decides: a trial ends with the turn that opens one, and others of
that turn are only noted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

from pydantic import computed_field

from ..._util.json_forms import Amount, Whole
from ..._util.texts import counted, first_few, one_line, percent, span
from ...results.row import SampleShare
from ...results.sections import Section
from ...settings import ENOUGH_QUERIES, Gates
from ...stats import wilson
from ...trials.records import Record
from ...trials.subject import CHAT, WithSubject
from .common import MODELS_CHOICE, query_reasons

RouteOutcome = Literal["right", "missed", "wrong skill", "false alarm", "error"]
NO_SKILL: Final = "(none)"  # in tables; no skill can have this name
_WRONG: Final[tuple[RouteOutcome, ...]] = ("missed", "wrong skill", "false alarm")
_MOST_NAMES: Final = 5
_MOST_PAIRS: Final = 3
_LONGEST_NAME: Final = 60


@dataclass(frozen=True)
class RoutedQuery:
    """A query: the skills it should open, and those that it opened."""

    query: str
    # Any of them is right, and it counts for the first. Without one,
    # none should be opened.
    expected: tuple[str, ...] = ()
    # If none is expected: only these should not be opened
    unwanted: tuple[str, ...] = ()
    # runs, by the skill opened first
    opened: Mapping[str, Whole] = field(default_factory=dict)
    unopened: Whole = 0  # runs that opened none
    # runs, by skills of the same turn
    also: Mapping[str, Whole] = field(default_factory=dict)
    errors: tuple[str, ...] = ()  # of each run without an answer
    place: str = ""  # file and line

    @classmethod
    def of(
        cls,
        query: str,
        expected: tuple[str, ...],
        unwanted: tuple[str, ...],
        place: str,
        records: Iterable[Record],
    ) -> "RoutedQuery":
        first = Counter[str]()
        also = Counter[str]()
        errors: list[str] = []
        unopened = 0
        for record in records:
            opened = record.activity.opened if record.activity else ()
            if record.outcome == "errored":
                errors.append(record.error or "")
            elif opened:
                first[opened[0]] += 1
                also.update(set(opened[1:]))
            else:
                unopened += 1
        return cls(
            query=query,
            expected=expected,
            unwanted=unwanted,
            opened=first,
            unopened=unopened,
            also=also,
            errors=tuple(errors),
            place=place,
        )

    @computed_field
    @property
    def row(self) -> str:
        """What it should open, in words: ``pdf``, ``pdf or docx``, ``not pdf``,
        ``(none)``.
        """
        if self.expected:
            return " or ".join(self.expected)
        return f"not {' or '.join(self.unwanted)}" if self.unwanted else NO_SKILL

    @property
    def runs(self) -> int:
        """Those with an answer."""
        return sum(self.opened.values()) + self.unopened

    def outcome_of(self, skill: str | None) -> RouteOutcome:
        """Of a run that opened this skill first, or none."""
        if self.expected:
            if skill is None:
                return "missed"
            return "right" if skill in self.expected else "wrong skill"
        if skill is None or (self.unwanted and skill not in self.unwanted):
            return "right"
        return "false alarm"

    @computed_field
    @cached_property
    def outcomes(self) -> dict[RouteOutcome, int]:
        """Of the runs with an answer."""
        runs = Counter[RouteOutcome]()
        for skill, number in self.opened.items():
            runs[self.outcome_of(skill)] += number
        if self.unopened:
            runs[self.outcome_of(None)] += self.unopened
        return dict(runs)

    @computed_field
    @property
    def outcome(self) -> RouteOutcome:
        """Right if more than half of its runs are; else what they mostly are."""
        if not self.runs:
            return "error"
        if 2 * self.outcomes.get("right", 0) > self.runs:
            return "right"
        return max(_WRONG, key=lambda outcome: self.outcomes.get(outcome, 0))

    def share(self, *outcomes: RouteOutcome) -> float:
        """Of its runs."""
        return sum(self.outcomes.get(outcome, 0) for outcome in outcomes) / self.runs

    def judges(self, skill: str) -> bool:
        """Whether it tells if it is right that this skill was opened."""
        return bool(self.expected) or not self.unwanted or skill in self.unwanted


@dataclass(frozen=True)
class RouteShare(SampleShare):
    @property
    def words(self) -> str:
        """``82% (69% to 90%)``."""
        return f"{percent(self.rate)} ({span(*self.interval, percent)})"


@dataclass(frozen=True)
class SkillRouting:
    """What came of a skill: of the queries for it, and of those that opened it."""

    name: str
    queries: int  # that should open it
    right: int  # of them
    recall: RouteShare | None  # None if no query that should open it has an answer
    precision: RouteShare | None  # None if it was never opened by a query that tells
    instead: Mapping[str, int]  # runs of its queries, by what was wrongly opened


@dataclass(frozen=True)
class Confusion:
    """Queries that should open one skill, or none, and opened another, or none."""

    outcome: RouteOutcome
    expected: str
    opened: str
    runs: int = 0
    queries: tuple[str, ...] = ()


@dataclass(frozen=True)
class RoutingTable:
    """Runs, by what should be opened and by what was opened first."""

    opened: tuple[str, ...]  # the columns; the last is none
    rows: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Routing(Section, WithSubject):
    """What came of the queries of a catalogue, for an agent on a model."""

    decides = frozenset({"min_recall", "max_false_alarms"})
    feature: Literal["routing"] = "routing"
    agent: str
    model: str
    skills: tuple[str, ...]  # that were installed, sorted
    queries: tuple[RoutedQuery, ...]
    source: str = ""  # where the queries are from, in words
    notes: tuple[str, ...] = ()  # what was left out, in sentences
    cost: Amount | None = None  # of new answers

    @property
    def title(self) -> str:
        return "Which skill each query opens"

    @cached_property
    def errors(self) -> list[str]:
        return [error for query in self.queries for error in query.errors]

    @cached_property
    def trials(self) -> int:
        return sum(query.runs for query in self.queries) + len(self.errors)

    @property
    def missing_words(self) -> str:
        """What is missing; empty if nothing is."""
        parts = []
        if self.errors:
            parts.append(f"{counted(len(self.errors), 'trial')} without a result")
        if self.interrupted:
            parts.append("interrupted")
        return " and ".join(parts)

    def problem(self, gates: Gates) -> str:
        """What is missing, unless a gate says the same."""
        if gates.of_triggers or not self.missing_words:
            return ""
        return f"{self.label}: {self.missing_words}"

    def gate_reasons(self, gates: Gates) -> list[str]:
        return [f"{self.label}: {reason}" for reason in query_reasons(self, gates)]

    @computed_field
    @cached_property
    def outcomes(self) -> dict[RouteOutcome, int]:
        """Queries, each in one of them."""
        return dict(Counter(query.outcome for query in self.queries))

    @computed_field
    @cached_property
    def recall(self) -> RouteShare | None:
        """Of the queries that should open a skill: how often it is that one."""
        return _mean(query.share("right") for query in self._answered if query.expected)

    @computed_field
    @cached_property
    def false_alarms(self) -> RouteShare | None:
        """Of the queries that should open none: how often one is
        opened that should not be.
        """
        return _mean(
            query.share("false alarm") for query in self._answered if not query.expected
        )

    @computed_field
    @cached_property
    def precision(self) -> RouteShare | None:
        """Of the openings that a query tells about: how many are right."""
        return self._precision(self.skills)

    @computed_field
    @cached_property
    def by_skill(self) -> tuple[SkillRouting, ...]:
        return tuple(map(self._of_skill, self.skills))

    @computed_field
    @cached_property
    def table(self) -> RoutingTable:
        rows: dict[str, Counter[str]] = {}
        for query in self.queries:
            row = rows.setdefault(query.row, Counter())
            row.update(query.opened)
            row[NO_SKILL] += query.unopened
        others = set[str]().union(*rows.values()) - {*self.skills, NO_SKILL}
        columns = (*self.skills, *sorted(others), NO_SKILL)
        order = {name: place for place, name in enumerate(columns)}
        cells = {}
        for label in sorted(rows, key=lambda row: (order.get(row, len(order)), row)):
            cells[label] = tuple(rows[label][name] for name in columns)
        return RoutingTable(columns, cells)

    @cached_property
    def confusions(self) -> list[Confusion]:
        """The most frequent first."""
        found: dict[tuple[RouteOutcome, str, str], Confusion] = {}
        for query in self.queries:
            for name, number in (*query.opened.items(), ("", query.unopened)):
                outcome = query.outcome_of(name or None)
                if number and outcome != "right":
                    pair = (outcome, query.row, name or NO_SKILL)
                    known = found.get(pair, Confusion(*pair))
                    runs = known.runs + number
                    queries = (*known.queries, query.query)
                    found[pair] = replace(known, runs=runs, queries=queries)
        return sorted(found.values(), key=lambda pair: -pair.runs)

    @computed_field
    @property
    def sentence(self) -> str:
        """``41 of 50 queries are routed right: recall 82% (69% to 90%), …``."""
        wrong = []
        for outcome in (*_WRONG, "error"):
            if number := self.outcomes.get(outcome, 0):
                word = "without a result" if outcome == "error" else outcome
                wrong.append(f"{number:,} {word}")
        verb = "is" if len(self.queries) == 1 else "are"
        right = f"{self.outcomes.get('right', 0):,}"
        text = f"{right} of {counted(len(self.queries), 'query')} {verb} routed right"
        if wrong:
            text += f" ({', '.join(wrong)})"

        shares = {
            "recall": self.recall,
            "precision": self.precision,
            "false alarms": self.false_alarms,
        }
        words = [f"{name} {share.words}" for name, share in shares.items() if share]
        if words:
            text += f": {', '.join(words)}"
        return f"{text}; {MODELS_CHOICE}" if self.agent == CHAT else text

    @computed_field
    @property
    def conclusions(self) -> tuple[str, ...]:
        """Sentences; the last one is what to remember."""
        lines = [_confused(pair) for pair in self.confusions[:_MOST_PAIRS]]
        if untested := [row.name for row in self.by_skill if not row.queries]:
            names = first_few(
                [one_line(name, _LONGEST_NAME) for name in untested], _MOST_NAMES
            )
            lines.append(f"No query is for {counted(len(untested), 'skill')}: {names}")
        lines += self._few_queries
        if self.errors:
            reason, times = Counter(map(_one_reason, self.errors)).most_common(1)[0]
            some = f" ({times:,})" if times < len(self.errors) else ""
            trials = counted(len(self.errors), "trial")
            lines.append(f"{trials} without a result: {reason}{some}")
        return (*lines, *self.notes, self.sentence)

    @property
    def _few_queries(self) -> list[str]:
        """What so few queries can show."""
        lines = []
        for name, share, best in (
            ("recall", self.recall, 1.0),
            ("the share of false alarms", self.false_alarms, 0.0),
        ):
            if share and share.queries < ENOUGH_QUERIES:
                bound = wilson(best, share.queries)[0 if best else 1]
                kind = "that should open a skill" if best else "that should open none"
                verb = "shows" if share.queries == 1 else "show"
                lines.append(
                    f"{counted(share.queries, 'query')} {kind} {verb} little: even if"
                    f" all were right, {name} could still be {percent(bound)}"
                )
        return lines

    @cached_property
    def _answered(self) -> list[RoutedQuery]:
        return [query for query in self.queries if query.runs]

    def _of_skill(self, name: str) -> SkillRouting:
        queries = [query for query in self.queries if query.expected[:1] == (name,)]
        instead = Counter[str]()
        for query in queries:
            for skill, runs in (*query.opened.items(), (NO_SKILL, query.unopened)):
                if runs and skill not in query.expected:
                    instead[skill] += runs
        return SkillRouting(
            name,
            len(queries),
            sum(query.outcome == "right" for query in queries),
            _mean(query.share("right") for query in queries if query.runs),
            self._precision([name]),
            dict(instead.most_common()),
        )

    def _precision(self, names: Sequence[str]) -> RouteShare | None:
        """A query counts by the share of its runs that opened one of these skills."""
        # Of each query: the share of its runs, right ones
        openings = list[tuple[float, float]]()
        for query in self._answered:
            opened = 0.0
            right = 0.0
            for name in names:
                if name in query.opened and query.judges(name):
                    share = query.opened[name] / query.runs
                    opened += share
                    right += share * (query.outcome_of(name) == "right")
            if opened:
                openings.append((opened, right))
        if not openings:
            return None
        total = sum(share for share, _ in openings)
        rate = min(1.0, sum(right for _, right in openings) / total)
        # Queries that open it seldom tell less: this many that always do tell as much.
        effective = total**2 / sum(share**2 for share, _ in openings)
        return RouteShare(rate, wilson(rate, effective), len(openings))


def _mean(shares: Iterable[float]) -> RouteShare | None:
    rates = list(shares)
    if not rates:
        return None
    rate = min(1.0, max(0.0, sum(rates) / len(rates)))
    return RouteShare(rate, wilson(rate, len(rates)), len(rates))


def _confused(pair: Confusion) -> str:
    """``docx is opened for pdf in 3 trials: "Merge these"``."""
    query = one_line(pair.queries[0], _LONGEST_NAME).rstrip(".")
    others = f" and {len(pair.queries) - 1:,} more" if len(pair.queries) > 1 else ""
    expected, opened = (
        one_line(name, _LONGEST_NAME) for name in (pair.expected, pair.opened)
    )
    trials = counted(pair.runs, "trial")
    if pair.outcome == "missed":
        what = f"No skill is opened in {trials} for {expected}"
    elif pair.outcome == "wrong skill":
        what = f"{opened} is opened in {trials} in place of {expected}"
    else:
        what = f"{opened} is opened in {trials} without need"
    return f'{what}: "{query}"{others}'


def _one_reason(error: str) -> str:
    return one_line(error, 200) or "no reason given"
