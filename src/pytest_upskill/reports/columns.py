"""Every column of a table about skills, defined once: where its values are in a row,
how they are written, and how important it is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final

from .._util.texts import dollars, percent, points, span, whole
from ..results.comparison import Comparison
from ..results.row import ArmSummary, Row
from ..results.verdict import Verdict
from ..stats import Lift
from ..trials.arm import BASELINE, SKILL

KEEP: Final = 100  # the priority of columns that are never dropped
_SCORE: Final = "SCORE"  # the chosen score: the pass rate, or the share of checks
_CENT: Final = 0.01


@dataclass(frozen=True)
class Column:
    """A column of a table. Without ``paths`` its cells are made by the table."""

    header: str
    paths: tuple[str, ...] = ()  # the skill's value is the last
    write: Callable[..., str] = str  # the values that are known
    priority: int = KEEP  # the least important go first if there is no room
    right: bool = False
    is_name: bool = False  # may be shortened
    is_detail: bool = False  # only where there is room for everything
    may_be_zero: bool = True  # else only zeros are no reason to show it

    def values(self, row: Row) -> list[Any]:
        values = [value_at(row, path) for path in self.paths]
        return [value for value in values if value is not None]

    def text(self, row: Row) -> str:
        """Empty if nothing is known."""
        values = self.values(row)
        if not values or (not self.may_be_zero and not any(values)):
            return ""

        return self.write(*values)

    def is_needed(self, rows: Iterable[Row]) -> bool:
        values = [value for row in rows for value in self.values(row)]
        return bool(values) and (self.may_be_zero or any(values))


def value_at(row: Row, path: str) -> Any:
    """The value at ``arms.skill.rate``; None if it is not known."""
    if _SCORE in path:
        # The cases that were answered may be the easy ones.
        if row.verdict == "incomplete":
            return None
        path = path.replace(_SCORE, "rate" if row.score == "pass" else "score")

    value: Any = row
    for name in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(name)
        else:
            value = getattr(value, name, None)

    return value


def write_rates(*rates: float) -> str:
    """``37 → 83 %``."""
    return " → ".join(f"{100 * rate:.0f}" for rate in rates) + " %"


def write_lift(lift: float, low: float, high: float) -> str:
    return f"{points(lift)} ({span(low, high)})"


def _write_tokens(*means: float) -> str:
    return "→".join(whole(mean) for mean in means)


def _write_cost(*costs: float) -> str:
    """Of 1,000 answers: that of one has too many zeros."""
    return " → ".join(dollars(1000 * cost).replace("$", "") for cost in costs)


def short(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")


def _write_short(*means: float) -> str:
    return " → ".join(short(mean) for mean in means)


def _of_both(name: str) -> tuple[str, str]:
    return f"arms.baseline.{name}", f"arms.skill.{name}"


def _of_lift(arm: str) -> tuple[str, str, str]:
    path = f"comparisons.{arm}.lift"
    return f"{path}.lift", f"{path}.low", f"{path}.high"


SCORE: Final = Column("pass rate", _of_both(_SCORE), write_rates, 85)
LIFT: Final = Column("lift", ("lift",), points, right=True)
VERDICT: Final = Column("verdict", ("verdict",))
RECALL: Final = Column("recall", ("recall.rate",), percent, 66, right=True)
FALSE_ALARMS: Final = Column(
    "false alarms", ("false_alarms.rate",), percent, 48, right=True
)

# From left to right.
COLUMNS: Final = (
    SCORE,
    Column("before", ("arms.previous.SCORE",), percent, 72, right=True),
    Column("again", ("arms.again.SCORE",), percent, 72, right=True),
    LIFT,
    Column("interval", ("lift_low", "lift_high"), span, 80, right=True),
    Column("p", ("p_value",), "{:.2g}".format, 60, right=True, is_detail=True),
    VERDICT,
    Column("since before", _of_lift("previous"), write_lift, 74, right=True),
    Column("difference", _of_lift("again"), write_lift, 74, right=True),
    Column("since accepted", ("accepted.rate", "accepted.now"), write_rates, 70),
    Column(
        "checks",
        ("checks_passed", "checks_total"),
        "{:,}/{:,}".format,
        35,
        right=True,
        is_detail=True,
        may_be_zero=False,
    ),
    Column("opened", ("activation.rate",), percent, 45, right=True),
    RECALL,
    FALSE_ALARMS,
    Column("tokens", _of_both("tokens"), _write_tokens, 50, right=True),
    Column("$ per 1,000", _of_both("cost"), _write_cost, 44, may_be_zero=False),
    Column("turns", _of_both("turns"), _write_short, 42),
    Column("tool calls", _of_both("tool_calls"), _write_short, 41),
    Column("seconds", _of_both("seconds"), _write_short, 10, is_detail=True),
    Column("errors", ("errored",), priority=60, right=True, may_be_zero=False),
)


def choose_columns(rows: Sequence[Row], *, details: bool = False) -> list[Column]:
    """The columns of a table with these rows, from left to right."""
    columns = []
    for column in COLUMNS:
        if column.is_needed(rows) and (details or not column.is_detail):
            columns.append(column)
    if rows and rows[0].score == "checks" and columns[0] is SCORE:
        columns[0] = replace(SCORE, header="checks passed")

    return columns


def row_of_all_models(rows: Sequence[Row], verdict: Verdict) -> Row:
    """The verdict on a skill as a row below those of its models."""
    arms = {}
    for arm in (BASELINE, SKILL):
        scores = [row.scored(arm) for row in rows if row.over(BASELINE)]
        mean = fmean(score or 0.0 for score in scores)
        arms[arm] = ArmSummary(rate=mean, score=mean)

    lift = Lift(
        verdict.lift or 0.0,
        verdict.lift_low or 0.0,
        verdict.lift_high or 0.0,
        verdict.p_value or 1.0,
    )
    return Row(
        verdict.skill,
        "all models",
        score=rows[0].score,
        arms=arms,
        comparisons={BASELINE: Comparison(lift, changes={})},
        verdict=verdict.verdict,
    )


# In words.


def cache_words(usd: float) -> str:
    """What the providers' caches saved, or cost; empty if that is not worth a cent."""
    if usd <= -_CENT:
        return f"prompt caching cost {dollars(-usd)} more than it saved"

    return f"prompt caching saved {dollars(usd)}" if usd >= _CENT else ""
