"""Rows of the history, one for each run, skill and model, as JSON."""

from datetime import UTC
from typing import Any, Final

from .._util.git import Commit
from .._util.json_forms import json_values
from .._util.texts import one_line
from ..results.history import KeptRow

_SHORT: Final = 7  # digits of a commit


def short_commit(commit: Commit | None) -> str:
    """As short as git shows it, with a plus if there were uncommitted changes."""
    if not commit:
        return "-"
    return one_line(commit.id[:_SHORT], 40) + ("+" if commit.dirty else "")


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
