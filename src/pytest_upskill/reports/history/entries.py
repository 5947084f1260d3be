"""Rows of the history for people and machines: one for each run, skill and model."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ..._util.git import Commit
from ..._util.texts import harmless, one_line, points
from ...results.kept_run import Row

_SHORT: Final = 7  # digits of a commit
_DANGEROUS: Final = ("=", "+", "-", "@", "\t", "\r")  # what makes a spreadsheet reckon


@dataclass(frozen=True)
class Entry:
    """A skill on a model in a run."""

    id: str  # of the run
    short: str
    started: datetime
    commit: Commit | None
    row: Row

    @property
    def commit_text(self) -> str:
        return short_commit(self.commit)


def short_commit(commit: Commit | None) -> str:
    """As short as git shows it; a plus where something was not committed."""
    if not commit:
        return "-"
    return one_line(commit.id[:_SHORT], 40) + ("+" if commit.dirty else "")


@dataclass(frozen=True)
class Metric:
    """A number of an entry that is looked at over time."""

    name: str
    title: str
    value: Callable[[Row], float | None]
    interval: Callable[[Row], tuple[float | None, float | None]]
    text: Callable[[float], str]
    change: Callable[[float, float], str]  # from one to the other, of the numbers as shown
    top: float | None  # of its scale; None is the highest value that there is


def money(amount: float) -> str:
    """USD for a thousand answers, as exact as it needs to be."""
    if 0 < amount < 0.001:
        return "<0.001"
    return (
        f"{amount:,.0f}" if amount >= 100 else f"{amount:.2f}" if amount >= 1 else f"{amount:.2g}"
    )


def percent(rate: float) -> str:
    return f"{rate:.0%}"


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _thousand(cost: float | None) -> float | None:
    return None if cost is None else 1000 * cost


def _no_interval(_: Row) -> tuple[None, None]:
    return None, None


def _points_change(first: float, last: float) -> str:
    return f"{points((round(100 * last) - round(100 * first)) / 100)} points"


def _number_change(first: float, last: float) -> str:
    change = round(last) - round(first)
    return f"{change:+,}" if change else "0"


def _money_change(first: float, last: float) -> str:
    one, other = (
        0.0 if text.startswith("<") else float(text.replace(",", ""))
        for text in (money(first), money(last))
    )
    amount = round(other - one, 9)  # what is left of 1.5 - 0.9 beyond that is not a change
    return f"{'-' if amount < 0 else '+'}{money(abs(amount))}" if amount else "0"


METRICS: Final = {
    metric.name: metric
    for metric in (
        Metric(
            "lift",
            "lift in points",
            lambda row: row.lift,
            lambda row: (row.lift_low, row.lift_high),
            points,
            _points_change,
            1.0,
        ),
        Metric(
            "pass-rate",
            "pass rate with the skill",
            lambda row: row.skill_rate,
            lambda row: (row.skill_rate_low, row.skill_rate_high),
            percent,
            _points_change,
            1.0,
        ),
        Metric(
            "tokens",
            "tokens of an answer with the skill",
            lambda row: row.skill_tokens,
            _no_interval,
            _number,
            _number_change,
            None,
        ),
        Metric(
            "cost",
            "USD for 1000 answers with the skill",
            lambda row: _thousand(row.skill_cost),
            _no_interval,
            money,
            _money_change,
            None,
        ),
    )
}


def interval_text(metric: Metric, row: Row) -> str:
    low, high = metric.interval(row)
    return "" if low is None or high is None else f"({metric.text(low)} to {metric.text(high)})"


def entry_data(entry: Entry) -> dict[str, Any]:
    """All that is known of an entry, as values of JSON."""
    return {
        "run": entry.id,
        "started": entry.started.astimezone(UTC).isoformat(timespec="seconds"),
        "commit": entry.commit and entry.commit.id,
        "dirty": entry.commit and entry.commit.dirty,
        **asdict(entry.row),
    }


def csv_text(entries: Sequence[Entry], metric: Metric) -> str:
    """A line for each entry; the metric once more by itself, for whoever draws it."""
    out = io.StringIO()
    lines = [_csv_data(entry, metric) for entry in entries]
    known = [*lines[0]] if lines else []
    writer = csv.DictWriter(out, known, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def _csv_data(entry: Entry, metric: Metric) -> dict[str, Any]:
    low, high = metric.interval(entry.row)
    value = metric.value(entry.row)
    data = {**entry_data(entry), "metric": metric.name, "value": value, "low": low, "high": high}
    return {key: _cell(value) for key, value in data.items()}


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = harmless(value)
    return f"'{text}" if text.startswith(_DANGEROUS) else text
