"""Rows of the history as JSON."""

import json

from pytest_upskill.reports.history_rows import row_data
from support.made import STARTED, made_entry, made_row


def test_times_are_texts_in_json() -> None:
    entry = made_entry(1, made_row(0.5, skill_asked_last=STARTED))
    assert (
        json.loads(json.dumps(row_data(entry)))["skill_asked_last"]
        == "2026-01-02T03:04:05Z"
    )
