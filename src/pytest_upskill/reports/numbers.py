"""The numbers of a skill on a model, each defined once, for every table, plot and export.

A new column is one more entry in `NUMBERS`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .._util.texts import (
    counted,
    dollars,
    one_line,
    percent,
    points,
    round_dollars,
    seconds,
    times_as_much,
    whole,
)
from ..results.arm_comparison import SCORE_WORDS
from ..results.summarizing import checks_of
from ..results.summary import ArmSummary
from ..settings import Score
from ..trials.activity import Activity
from ..trials.records import Record
from ..trials.trial import Arm
from .measured import Bounds, Gain, Measured
from .terminal.tables import KEEP

_CENT: Final = 0.01
_REF: Final = "REF"
_MANY: Final = 3  # checks


@dataclass(frozen=True)
class Unit:
    """How amounts of a kind are written, and how a change from one to another is."""

    text: Callable[[float], str]
    change: Callable[[float, float], str]
    top: float | None = None  # of its scale; None is the highest amount there is
    factor: float = 1.0  # from a value as it is kept to the amount that is shown


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
PER_1000: Final = Unit(dollars, _dollars_change, factor=1000)  # one answer has too many zeros


@dataclass(frozen=True)
class Number:
    """A number of a skill on a model: a column of tables and perhaps a metric of ``runs``."""

    name: str
    header: str  # with a REF for the git ref
    values: Callable[[Measured], Mapping[str, float | None]]  # by JSON key; the skill's comes last
    unit: Unit
    title: str = ""  # as a metric over time; empty if it is none
    bounds: Callable[[Measured], Bounds | None] = lambda _: None
    priority: int = 0  # columns with the lowest are dropped first if there is no room
    bar: bool = False  # whether the terminal draws it
    interval: bool = False  # whether tables show its bounds
    growth: bool = False  # whether the terminal shows by how much it grew with the skill
    alarm: bool = False  # red and never dropped unless it is 0
    detail: bool = False  # only in the table of a run and on its page
    of_ref: bool = False  # about the skill at the git ref: in every table that has one
    shown_if: Callable[[float | None], bool] = lambda _: True  # of any amount in any row
    tells: Callable[[Measured], bool] = lambda _: True  # whether a row says something with it
    gain: Callable[[Measured], Gain | None] = lambda _: None  # a lift of its own
    write: Callable[[Measured, str], str | None] | None = None  # `text`, if amounts don't tell it

    def amounts(self, row: Measured) -> list[float | None]:
        values = self.values(row).values()
        return [None if value is None else self.unit.factor * value for value in values]

    def amount(self, row: Measured) -> float | None:
        """With the skill."""
        return self.amounts(row)[-1]

    def text(self, row: Measured, arrow: str = " → ") -> str | None:
        if self.write and (written := self.write(row, arrow)):
            return written
        known = [self.unit.text(amount) for amount in self.amounts(row) if amount is not None]
        return arrow.join(known) or None

    def skill_text(self, row: Measured) -> str | None:
        """With the skill."""
        amount = self.amount(row)
        return None if amount is None else self.unit.text(amount)

    def bounds_text(self, row: Measured) -> str | None:
        """``+10 to +42``."""
        bounds = self.bounds(row)
        return " to ".join(map(self.unit.text, bounds)) if bounds else None

    def gain_text(self, row: Measured, *, bounds: bool = True) -> str | None:
        """``+42 (+10 to +74)``."""
        if not (gain := self.gain(row)):
            return None
        likely = f" ({' to '.join(map(points, gain[1]))})" if bounds and gain[1] else ""
        lift = points(gain[0])
        return f"{'+0' if lift == '0' else lift}{likely}"

    def growth_text(self, row: Measured, times: str) -> str | None:
        before, after = self.amounts(row)[0], self.amount(row)
        return growth(after / before - 1, times) if self.growth and before and after else None

    def is_shown(self, rows: Iterable[Measured]) -> bool:
        own = filter(self.tells, rows)
        return any(map(self.shown_if, (amount for row in own for amount in self.amounts(row))))

    def header_of(self, rows: Iterable[Measured]) -> str:
        ref = next((row.against for row in rows if row.against), "previous")
        return self.header.replace(_REF, ref) if self.of_ref else self.header


def checks_words(records: Iterable[Record], arm: Arm) -> str:
    """``, 6 of 7 checks``: of an answer on average, unless so few are seen at a glance."""
    found = checks_of(records, arm)
    if not found or found[1] < _MANY:
        return ""
    return f", {short(found[0])} of {short(found[1])} checks"


def activity_words(done: Activity) -> str:
    """``5 turns, 4 tool calls, opened the skill``: what an agent did in a trial."""
    parts = [counted(done.turns, "turn"), counted(done.tool_calls, "tool call")]
    if done.activated is not None:
        parts.append(
            "opened the skill" if done.activated else f"did not open the skill{_but(done)}"
        )
    return ", ".join(parts)


def _but(done: Activity) -> str:
    return f", but {one_line(', '.join(done.opened), 100)}" if done.opened else ""


def cache_words(usd: float) -> str:
    """What the providers' caches saved, or cost; empty if that is not worth a cent."""
    if usd <= -_CENT:
        return f"prompt caching cost {dollars(-usd)} more than it saved"
    return f"prompt caching saved {dollars(usd)}" if usd >= _CENT else ""


def growth(change: float, times: str = "×") -> str:
    """``+90%``, or ``×5,282`` if a percentage would have too many digits."""
    factor = times_as_much(change)
    return f"{times}{factor}" if factor else f"{change:+.0%}"


Values = Callable[[Measured], dict[str, float | None]]


def _of_arms(field: str, value: Callable[[ArmSummary], float | None], *arms: Arm) -> Values:
    return lambda row: {f"{arm}_{field}": value(row.arm(arm)) for arm in arms}


def _scored(arm: Arm) -> Values:
    """What the lift is of."""
    return lambda row: {
        f"{arm}_{'rate' if row.score == 'pass' else 'score'}": row.scored(arm),
    }


def _checks(row: Measured, arrow: str) -> str | None:
    """Of an answer in each arm, on average; None unless all answers have the same number."""
    arms = [row.arm(arm) for arm in _COMPARED if row.arm(arm).graded]
    if any(arm.uneven or arm.checks_total % arm.graded for arm in arms):
        return None
    return arrow.join(
        "/".join(short(count / arm.graded) for count in (arm.checks_passed, arm.checks_total))
        for arm in arms
    )


def _has_several_checks(row: Measured) -> bool:
    """With one check each, to pass a check is to pass."""
    arms = [row.arm(arm) for arm in _COMPARED]
    return any(
        arm.checks_total > arm.graded or (arm.score is not None and arm.score != arm.rate)
        for arm in arms
    )


def _opened(row: Measured, _: str) -> str | None:
    return f"{row.opened.count:,}/{row.opened.trials:,}" if row.opened else None


def _known(amount: float | None) -> bool:
    return amount is not None


def _other_lift(score: Score) -> Callable[[Measured], Gain | None]:
    """The lift of what the verdict is not on, if it is another."""

    def found(row: Measured) -> Gain | None:
        lift = row.lifts.get(score)
        return None if row.score == score or lift == row.lifts.get(row.score) else lift

    return found


_COMPARED: Final[tuple[Arm, ...]] = ("baseline", "skill")

WITHOUT: Final = Number("baseline", "without", _scored("baseline"), RATE, bar=True, priority=60)
WITH: Final = Number("score", "with", _scored("skill"), RATE, bar=True, priority=KEEP)
LIFT: Final = Number(
    "lift",
    "lift",
    lambda row: {"lift": row.lift},
    POINTS,
    title="lift in points",
    bounds=lambda row: row.lift_bounds,
    interval=True,
    priority=KEEP,
)
CHANGE: Final = Number(
    "change",
    f"since {_REF}",
    lambda row: {"change": row.change[0] if row.change else None},
    POINTS,
    bounds=lambda row: row.change[1] if row.change else None,
    interval=True,
    priority=KEEP,
    detail=True,
    of_ref=True,
    shown_if=_known,
)
TOKENS: Final = Number(
    "tokens",
    "tokens",
    _of_arms("tokens", lambda arm: arm.tokens, "baseline", "skill"),
    WHOLE,
    title="tokens of an answer with the skill",
    growth=True,
    priority=50,
)
COST: Final = Number(
    "cost",
    "$/1000",
    _of_arms("cost", lambda arm: arm.cost, "baseline", "skill"),
    PER_1000,
    title="cost of 1000 answers with the skill",
    priority=44,
    shown_if=bool,
)

# The columns of all tables, from left to right.
NUMBERS: list[Number] = [
    WITHOUT,
    Number(
        "previous",
        _REF,
        _scored("previous"),
        RATE,
        bar=True,
        priority=KEEP,
        detail=True,
        of_ref=True,
        shown_if=_known,
    ),
    WITH,
    LIFT,
    CHANGE,
    Number(
        "pass-rate",
        "passed",
        _of_arms("rate", lambda arm: arm.rate, *_COMPARED),
        RATE,
        title="pass rate with the skill",
        bounds=lambda row: row.rate_bounds,
        priority=36,
        tells=lambda row: row.score == "checks",
        gain=_other_lift("pass"),
    ),
    Number(
        "checks",
        "checks",
        _of_arms("score", lambda arm: arm.score, *_COMPARED),
        RATE,
        title=f"{SCORE_WORDS['checks']} with the skill",
        priority=35,
        tells=_has_several_checks,
        shown_if=_known,
        gain=_other_lift("checks"),
        write=_checks,
    ),
    Number(
        "opened",
        "opened",
        lambda row: {"activated_rate": row.opened.rate if row.opened else None},
        RATE,
        title="share of trials that opened the skill",
        bounds=lambda row: row.opened.bounds if row.opened else None,
        priority=45,
        shown_if=_known,
        write=_opened,
    ),
    Number(
        "recall",
        "recall",
        lambda row: {"recall": row.recall[0] if row.recall else None},
        RATE,
        title="recall: how often queries that need the skill open it",
        bounds=lambda row: row.recall[1] if row.recall else None,
        priority=66,
        shown_if=_known,
    ),
    Number(
        "false-alarms",
        "false alarms",
        lambda row: {"false_alarms": row.false_alarms[0] if row.false_alarms else None},
        RATE,
        title="false alarms: how often queries that don't need the skill open it",
        bounds=lambda row: row.false_alarms[1] if row.false_alarms else None,
        priority=48,
        shown_if=_known,
    ),
    TOKENS,
    COST,
    Number(
        "turns",
        "turns",
        _of_arms("turns", lambda arm: arm.turns, *_COMPARED),
        SHORT,
        title="turns of an agent with the skill",
        priority=42,
        shown_if=_known,
    ),
    Number(
        "tool-calls",
        "tool calls",
        _of_arms("tool_calls", lambda arm: arm.tool_calls, *_COMPARED),
        SHORT,
        title="tool calls of an agent with the skill",
        priority=41,
        shown_if=_known,
    ),
    Number(
        "seconds",
        "seconds",
        _of_arms("seconds", lambda arm: arm.seconds, "baseline", "skill"),
        SECONDS,
        priority=10,
        detail=True,
    ),
    Number(
        "errors",
        "errors",
        lambda row: {"errored": row.errored},
        WHOLE,
        priority=30,
        alarm=True,
        detail=True,
    ),
]


def key_numbers() -> list[Number]:
    """Those that every report has."""
    return [number for number in NUMBERS if not number.detail]


def shown_numbers(rows: Sequence[Measured], *, details: bool) -> list[Number]:
    """The columns of a table with these rows, from left to right."""
    numbers = [number for number in NUMBERS if details or number.of_ref or not number.detail]
    return [number for number in numbers if number.is_shown(rows)]


def metrics() -> dict[str, Number]:
    """The numbers that can be drawn over time, by name."""
    return {number.name: number for number in NUMBERS if number.title}
