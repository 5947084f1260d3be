"""Rows of the history, one for each run, skill and model, as JSON and CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any, Final

from .._util.git import Commit
from .._util.json_forms import json_values
from .._util.texts import harmless, one_line
from ..results.history import KeptRow
from .numbers import Number
from .record_files import safe_cell

_SHORT: Final = 7  # digits of a commit


def short_commit(commit: Commit | None) -> str:
    """As short as git shows it, with a plus if there were uncommitted changes."""
    if not commit:
        return "-"
    return one_line(commit.id[:_SHORT], 40) + ("+" if commit.dirty else "")


def by_pair(kept_rows: Sequence[KeptRow]) -> Mapping[tuple[str, str], list[KeptRow]]:
    """The rows of each skill and model, oldest first."""
    groups: dict[tuple[str, str], list[KeptRow]] = {}
    for kept in sorted(
        kept_rows, key=lambda kept: (kept.run.head.started, kept.run.id)
    ):
        groups.setdefault((kept.row.skill, kept.row.label), []).append(kept)
    return groups


def row_data(kept: KeptRow) -> dict[str, Any]:
    """Everything known of a row, as JSON values."""
    head = kept.run.head
    return {
        "run": kept.run.id,
        "started": head.started.astimezone(UTC).isoformat(timespec="seconds"),
        "commit": head.commit and head.commit.id,
        "dirty": head.commit and head.commit.dirty,
        **json_values(kept.row),
    }


def history_csv(kept_rows: Sequence[KeptRow], metric: Number) -> str:
    """A line for each row, with the metric once more in columns of its own, for
    plots.
    """
    out = io.StringIO()
    lines = [_csv_data(kept, metric) for kept in kept_rows]
    writer = csv.DictWriter(out, [*lines[0]] if lines else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def _csv_data(kept: KeptRow, metric: Number) -> dict[str, Any]:
    low, high = metric.bounds_of(kept.row) or (None, None)
    value = metric.amount(kept.row)
    data = {
        **row_data(kept),
        "metric": metric.name,
        "value": value,
        "low": low,
        "high": high,
    }
    return {
        key: safe_cell(harmless(value) if isinstance(value, str) else value)
        for key, value in data.items()
    }
