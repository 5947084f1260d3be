"""Entries of the history, one for each run, skill and model, as data, JSON and CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from .._util.git import Commit
from .._util.json_forms import json_values
from .._util.texts import harmless, one_line
from ..results.summary_row import SummaryRow
from .numbers import Number
from .record_files import safe_cell

_SHORT: Final = 7  # digits of a commit


@dataclass(frozen=True)
class Entry:
    """A skill on a model in a run."""

    id: str  # of the run
    short: str
    started: datetime
    commit: Commit | None
    row: SummaryRow

    @property
    def commit_text(self) -> str:
        return short_commit(self.commit)


def short_commit(commit: Commit | None) -> str:
    """As short as git shows it, with a plus if there were uncommitted changes."""
    if not commit:
        return "-"
    return one_line(commit.id[:_SHORT], 40) + ("+" if commit.dirty else "")


def by_pair(entries: Sequence[Entry]) -> Mapping[tuple[str, str], list[Entry]]:
    """The entries of each skill and model, oldest first."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.started, entry.id)):
        groups.setdefault((entry.row.skill, entry.row.label), []).append(entry)
    return groups


def entry_data(entry: Entry) -> dict[str, Any]:
    """Everything known of an entry, as JSON values: the kept row, then other numbers."""
    return {
        "run": entry.id,
        "started": entry.started.astimezone(UTC).isoformat(timespec="seconds"),
        "commit": entry.commit and entry.commit.id,
        "dirty": entry.commit and entry.commit.dirty,
        **json_values(entry.row),
    }


def history_csv(entries: Sequence[Entry], metric: Number) -> str:
    """A line for each entry, with the metric once more in columns of its own, for plots."""
    out = io.StringIO()
    lines = [_csv_data(entry, metric) for entry in entries]
    writer = csv.DictWriter(out, [*lines[0]] if lines else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def _csv_data(entry: Entry, metric: Number) -> dict[str, Any]:
    low, high = metric.bounds_of(entry.row) or (None, None)
    value = metric.amount(entry.row)
    data = {**entry_data(entry), "metric": metric.name, "value": value, "low": low, "high": high}
    return {
        key: safe_cell(harmless(value) if isinstance(value, str) else value)
        for key, value in data.items()
    }
