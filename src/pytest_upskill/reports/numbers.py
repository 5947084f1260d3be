"""Every number of a summary, defined once: where it is found, how it is written,
who shows it.

A new column is a field of `ArmSummary` that `summary.py` computes, a field of
`SummaryRow`, and an entry in `NUMBERS`: tables, pages, JSON, history and trend
follow. ``detail`` keeps it out of Markdown and the tables of `runs`; ``title``
makes it a metric of `runs`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from .._util.texts import (
    dollars,
    percent,
    points,
    round_dollars,
    seconds,
    span,
    times_as_much,
    whole,
)
from ..results.arm_comparison import SCORE_WORDS
from ..results.summary import checks_of
from ..results.summary_row import SummaryRow
from ..settings import Score
from ..trials.records import Record

Bounds = tuple[float, float]  # of a 95 % interval

_REF: Final = "REF"
_SCORE: Final = "SCORE"
_CENT: Final = 0.01
_MANY: Final = 3  # checks
_FIELDS: Final[dict[Score, str]] = {"pass": "rate", "checks": "score"}
_LIFTS: Final[dict[Score, str]] = {"pass": "rate_lift", "checks": "score_lift"}


@dataclass(frozen=True)
class Unit:
    """How amounts of a kind are written, and how a change from one to another is."""

    text: Callable[[float], str]
    change: Callable[[float, float], str]
    top: float | None = None  # of its scale; None is the highest amount there is
    factor: float = 1.0  # from a value as it is stored to the amount that is shown


def _points_change(first: float, last: float) -> str:
    return f"{points((round(100 * last) - round(100 * first)) / 100)} points"


def _whole_change(first: float, last: float) -> str:
    change = round(last) - round(first)
    return f"{change:+,}" if change else "0"


def _dollars_change(first: float, last: float) -> str:
    """The difference of the amounts as they are shown."""
    change = round(round_dollars(last) - round_dollars(first), 9)
    return f"{'-' if change < 0 else '+'}{dollars(abs(change))}" if change else "$0"


def _decimal_change(first: float, last: float) -> str:
    return f"{last - first:+,.1f}"


def short(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")


RATE: Final = Unit(percent, _points_change, top=1.0)
POINTS: Final = Unit(points, _points_change, top=1.0)
WHOLE: Final = Unit(whole, _whole_change)
SHORT: Final = Unit(short, _decimal_change)
SECONDS: Final = Unit(seconds, _decimal_change)
# One answer has too many zeros
PER_1000: Final = Unit(dollars, _dollars_change, factor=1000)


_RATES: Final = {
    f"{arm}_{name}"
    for arm in ("baseline", "skill", "previous")
    for name in (_SCORE, *_FIELDS.values())
}


KEEP: Final = 100  # the priority of columns that are never dropped


@dataclass(frozen=True)
class Number:
    """A number of a skill on a model: a column of tables and
    perhaps a metric of ``runs``.

    ``fields`` are those of a row, the skill's last. SCORE stands for the chosen score.
    """

    name: str
    header: str  # with a REF for the git ref
    fields: tuple[str, ...]
    unit: Unit = WHOLE
    title: str = ""  # as a metric over time; empty if it is none
    bounds: str = ""  # the field that ``_low`` and ``_high`` are added to
    # The priority of the column with its bounds; 0 is no such column
    interval_priority: int = 0
    priority: int = 0  # columns with the lowest are dropped first if there is no room
    bar: bool = False  # whether the terminal draws it
    growth: str = ""  # the field that says by which share it grew with the skill
    alarm: bool = False  # red and never dropped
    detail: bool = False  # only in the table of a run and on its page
    of_ref: bool = False  # about the skill at the git ref: in every table that has one
    painted_by: str = ""  # the field of the word that decides on its colour
    lift: str = ""  # the field of a lift of its own, shown unless the verdict is on it
    # Of any amount in any row
    column_needed_if: Callable[[float | None], bool] = lambda _: True
    # Whether a row says something with it
    row_counts: Callable[[Any], bool] = lambda _: True
    # `text`, if amounts don't say it
    write: Callable[[Any, str], str | None] | None = None

    def amounts(self, row: SummaryRow) -> list[float | None]:
        """Rates are not known while answers are missing:
        those that are there may be easy cases.
        """
        hidden = _RATES if row.verdict == "incomplete" else ()
        values = [
            None if field in hidden else field_of(row, field) for field in self.fields
        ]
        return [None if value is None else self.unit.factor * value for value in values]

    def field_names(self, row: SummaryRow) -> list[str]:
        """All fields that it is made of, with its bounds, its own lift and its
        growth.
        """
        names = [field.replace(_SCORE, _FIELDS[row.score]) for field in self.fields]
        names += [name for name in (self.lift, self.growth) if name]
        spans = filter(None, (self.bounds, self.lift, self.growth))
        return [
            *names,
            *(f"{name}_{side}" for name in spans for side in ("low", "high")),
        ]

    def amount(self, row: SummaryRow) -> float | None:
        """With the skill."""
        amounts = self.amounts(row)
        return amounts[-1] if amounts else None

    def text(self, row: SummaryRow, arrow: str = " → ") -> str | None:
        if self.write and (written := self.write(row, arrow)):
            return written
        texts = [
            self.unit.text(amount) for amount in self.amounts(row) if amount is not None
        ]
        return arrow.join(texts) or None

    def skill_text(self, row: SummaryRow) -> str | None:
        """With the skill."""
        amount = self.amount(row)
        return None if amount is None else self.unit.text(amount)

    def bounds_of(self, row: SummaryRow) -> Bounds | None:
        hidden = row.verdict == "incomplete" and self.bounds in _RATES
        return _bounds(row, self.bounds) if self.bounds and not hidden else None

    def bounds_text(self, row: SummaryRow) -> str | None:
        """``+10 to +42``."""
        bounds = self.bounds_of(row)
        return " to ".join(map(self.unit.text, bounds)) if bounds else None

    def lift_text(self, row: SummaryRow, *, bounds: bool = True) -> str | None:
        """``+42 (+10 to +74)``, if it is another lift than that of the verdict."""
        if not self.lift:
            return None
        chosen = _LIFTS[row.score]
        if self.lift == chosen or _lift(row, self.lift) == _lift(row, chosen):
            return None
        lift, interval = _lift(row, self.lift)
        if lift is None:
            return None
        likely = (
            f" ({' to '.join(map(points, interval))})" if bounds and interval else ""
        )
        return f"{'+0' if points(lift) == '0' else points(lift)}{likely}"

    def full_text(self, row: SummaryRow) -> str | None:
        """With its bounds, or its lift, if tables show them."""
        text = self.text(row)
        if text and self.interval_priority and (bounds := self.bounds_text(row)):
            return f"{text} ({bounds})"
        return f"{text}, {lift}" if text and (lift := self.lift_text(row)) else text

    def growth_text(
        self, row: SummaryRow, times: str = "×", *, bounds: bool = True
    ) -> str | None:
        """``+90% (+70% to +112%)``; None if there are no bounds, but they are
        wanted.
        """
        if not self.growth or (change := field_of(row, self.growth)) is None:
            return None
        if not bounds:
            return growth(change, times)
        interval = _bounds(row, self.growth) or ()
        words = " to ".join(growth(bound, times) for bound in interval)
        return f"{growth(change, times)} ({words})" if interval else None

    def is_shown(self, rows: Iterable[SummaryRow]) -> bool:
        counted_rows = [row for row in rows if self.row_counts(row)]
        return any(
            self.column_needed_if(amount)
            for row in counted_rows
            for amount in self.amounts(row)
        )

    def header_of(self, rows: Iterable[SummaryRow]) -> str:
        refs = (row.against for row in rows if row.against)
        return self.header.replace(_REF, next(refs, "")) if self.of_ref else self.header


def field_of(row: SummaryRow, name: str) -> Any:
    """The value of a field; None if it is not known."""
    chosen = name.replace(_SCORE, _FIELDS[row.score]) if name.endswith(_SCORE) else name
    return getattr(row, chosen)


def _bounds(row: SummaryRow, name: str) -> Bounds | None:
    low, high = (field_of(row, f"{name}_{side}") for side in ("low", "high"))
    return None if low is None or high is None else (low, high)


def _lift(row: SummaryRow, name: str) -> tuple[float | None, Bounds | None]:
    return field_of(row, name), _bounds(row, name)


def growth(change: float, times: str = "×") -> str:
    """``+90%``, or ``×5,282`` if a percentage would have too many digits."""
    factor = times_as_much(change)
    return f"{times}{factor}" if factor else f"{change:+.0%}"


def _is_known(amount: float | None) -> bool:
    return amount is not None


def _is_compared(row: SummaryRow) -> bool:
    return row.against is not None


def _is_aa(row: SummaryRow) -> bool:
    return row.chance_lift is not None


def _both(field: str) -> tuple[str, str]:
    return f"baseline_{field}", f"skill_{field}"


def _checks(row: SummaryRow, arrow: str) -> str | None:
    """Of an answer in each arm, on average; None unless all
    answers have the same number.
    """
    if row.baseline_uneven or row.skill_uneven or row.verdict == "incomplete":
        return None
    arms = [
        (row.baseline_checks_passed, row.baseline_checks_total, row.baseline_graded),
        (row.checks_passed, row.checks_total, row.skill_graded),
    ]
    if any(graded and total % graded for _, total, graded in arms):
        return None
    return arrow.join(
        f"{short(passed / graded)}/{short(total / graded)}"
        for passed, total, graded in arms
        if graded
    )


def _has_several_checks(row: SummaryRow) -> bool:
    """With one check each, to pass a check is to pass."""
    return (
        row.checks_total > row.skill_graded
        or row.baseline_checks_total > row.baseline_graded
        or any(score not in (None, rate) for score, rate in _scores_and_rates(row))
    )


def _scores_and_rates(row: SummaryRow) -> list[tuple[float | None, float | None]]:
    return [(row.baseline_score, row.baseline_rate), (row.skill_score, row.skill_rate)]


def _possible_lift(row: SummaryRow, _: str) -> str | None:
    """``-25 to +25``, where answers are missing."""
    possible = _bounds(row, "possible_lift")
    return span(*possible) if possible else None


def _counts(row: SummaryRow, asked: int, errored: int, passed: int) -> str | None:
    """``9/18``, of the answers in an arm, where others are missing."""
    return (
        f"{passed:,}/{asked - errored:,}"
        if row.verdict == "incomplete" and asked > errored
        else None
    )


def _baseline_counts(row: SummaryRow, _: str) -> str | None:
    return _counts(row, row.baseline_asked, row.baseline_errored, row.baseline_passed)


def _skill_counts(row: SummaryRow, _: str) -> str | None:
    return _counts(row, row.skill_asked, row.skill_errored, row.skill_passed)


def _opened(row: SummaryRow, _: str) -> str | None:
    return (
        None if row.activated is None else f"{row.activated:,}/{row.activated_trials:,}"
    )


WITHOUT: Final = Number(
    "baseline",
    "without",
    ("baseline_SCORE",),
    RATE,
    bar=True,
    priority=60,
    row_counts=lambda row: not _is_aa(row),
    write=_baseline_counts,
)
WITH: Final = Number(
    "score",
    "with",
    ("skill_SCORE",),
    RATE,
    bar=True,
    priority=KEEP,
    write=_skill_counts,
)
LIFT: Final = Number(
    "lift",
    "lift",
    ("lift",),
    POINTS,
    title="lift in points",
    bounds="lift",
    interval_priority=80,
    priority=KEEP,
    painted_by="verdict",
    row_counts=lambda row: not _is_aa(row),
    write=_possible_lift,
)
ACCEPTED: Final = Number(
    "accepted",
    "accepted",
    ("accepted_rate",),
    RATE,
    priority=43,
    column_needed_if=_is_known,
)
CHANGE: Final = Number(
    "change",
    "change",
    ("accepted_change",),
    POINTS,
    priority=70,
    painted_by="accepted_verdict",
    column_needed_if=_is_known,
)
SINCE_REF: Final = Number(
    "since",
    f"since {_REF}",
    ("change",),
    POINTS,
    bounds="change",
    interval_priority=42,
    priority=KEEP,
    detail=True,
    of_ref=True,
    painted_by="change_verdict",
    row_counts=_is_compared,
    column_needed_if=_is_known,
)
TOKENS: Final = Number(
    "tokens",
    "tokens",
    _both("tokens"),
    title="tokens of an answer with the skill",
    growth="token_change",
    priority=50,
)
COST: Final = Number(
    "cost",
    "$/1000",
    _both("cost"),
    PER_1000,
    title="cost of 1000 answers with the skill",
    growth="cost_change",
    priority=44,
    column_needed_if=bool,
)

# The columns of all tables, from left to right.
NUMBERS: list[Number] = [
    WITHOUT,
    Number(
        "previous",
        _REF,
        ("previous_SCORE",),
        RATE,
        bar=True,
        priority=KEEP,
        detail=True,
        of_ref=True,
        row_counts=_is_compared,
        column_needed_if=_is_known,
    ),
    Number(
        "again",
        "again",
        ("previous_SCORE",),
        RATE,
        bar=True,
        priority=KEEP,
        row_counts=_is_aa,
    ),
    WITH,
    LIFT,
    ACCEPTED,
    CHANGE,
    SINCE_REF,
    replace(
        SINCE_REF,
        name="difference",
        header="difference",
        detail=False,
        of_ref=False,
        row_counts=_is_aa,
    ),
    Number(
        "pass-rate",
        "passed",
        _both("rate"),
        RATE,
        title="pass rate with the skill",
        bounds="skill_rate",
        priority=36,
        lift="rate_lift",
        row_counts=lambda row: bool(row.score == "checks"),
    ),
    Number(
        "checks",
        "checks",
        _both("score"),
        RATE,
        title=f"{SCORE_WORDS['checks']} with the skill",
        priority=35,
        lift="score_lift",
        row_counts=_has_several_checks,
        column_needed_if=_is_known,
        write=_checks,
    ),
    Number(
        "opened",
        "opened",
        ("activated_rate",),
        RATE,
        title="share of trials that opened the skill",
        bounds="activated",
        priority=45,
        column_needed_if=_is_known,
        write=_opened,
    ),
    Number(
        "recall",
        "recall",
        ("recall",),
        RATE,
        title="recall: how often queries that need the skill open it",
        bounds="recall",
        priority=66,
        column_needed_if=_is_known,
    ),
    Number(
        "false-alarms",
        "false alarms",
        ("false_alarms",),
        RATE,
        title="false alarms: how often queries that don't need the skill open it",
        bounds="false_alarms",
        priority=48,
        column_needed_if=_is_known,
    ),
    TOKENS,
    COST,
    Number(
        "turns",
        "turns",
        _both("turns"),
        SHORT,
        title="turns of an agent with the skill",
        priority=42,
        column_needed_if=_is_known,
    ),
    Number(
        "tool-calls",
        "tool calls",
        _both("tool_calls"),
        SHORT,
        title="tool calls of an agent with the skill",
        priority=41,
        column_needed_if=_is_known,
    ),
    Number(
        "seconds",
        "seconds",
        _both("seconds"),
        SECONDS,
        growth="seconds_change",
        priority=10,
        detail=True,
    ),
    Number(
        "errors",
        "errors",
        ("errored",),
        priority=30,
        alarm=True,
        detail=True,
        column_needed_if=bool,
    ),
]


def shown_numbers(rows: Sequence[SummaryRow], *, details: bool) -> list[Number]:
    """The columns of a table with these rows, from left to right."""
    numbers = [
        number for number in NUMBERS if details or number.of_ref or not number.detail
    ]
    return [number for number in numbers if number.is_shown(rows)]


def metrics() -> dict[str, Number]:
    """The numbers that can be drawn over time, by name."""
    return {number.name: number for number in NUMBERS if number.title}


# Triggers.

TRIGGER_NUMBERS: Final = tuple(
    replace(number, bar=True, interval_priority=95, priority=KEEP)
    for number in NUMBERS
    if number.name in ("recall", "false-alarms")
)


# In words.


def growth_words(row: SummaryRow, *, details: bool, times: str = "×") -> str:
    """``with the skill: tokens +90% (+70% to +112%), seconds +4% (-10% to +21%)``."""
    texts = [
        f"{number.name} {text}"
        for number in shown_numbers([row], details=details)
        if (text := number.growth_text(row, times))
    ]
    return f"with the skill: {', '.join(texts)}" if texts else ""


def checks_words(records: Iterable[Record], arm: str) -> str:
    """``, 6 of 7 checks``: means over answers; empty for few checks."""
    counts = checks_of(records, arm)
    if not counts or counts[1] < _MANY:
        return ""
    return f", {short(counts[0])} of {short(counts[1])} checks"


def cache_words(usd: float) -> str:
    """What the providers' caches saved, or cost; empty if that is not worth a cent."""
    if usd <= -_CENT:
        return f"prompt caching cost {dollars(-usd)} more than it saved"
    return f"prompt caching saved {dollars(usd)}" if usd >= _CENT else ""
