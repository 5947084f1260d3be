"""Rows of the history as JSON and CSV."""

import csv
import io
import json

from pytest_upskill.reports.history_rows import history_csv, row_data
from pytest_upskill.reports.numbers import metrics
from support.made import ENTRIES, STARTED, made_entry, made_row

METRICS = metrics()


def test_csv_has_a_line_for_each_row_and_no_formulas() -> None:
    entries = [
        *ENTRIES,
        made_entry(1, made_row(-0.5, skill="=1+1", model="@\x1bx"), "c0ffee"),
    ]
    rows = list(csv.DictReader(io.StringIO(history_csv(entries, METRICS["cost"]))))
    assert len(rows) == 5
    assert rows[0]["commit"] == "c0ffee123456"
    assert (rows[0]["metric"], rows[0]["value"], rows[0]["low"]) == ("cost", "1.5", "")
    assert (rows[2]["dirty"], rows[3]["commit"], rows[3]["lift"]) == ("True", "", "")
    assert (rows[4]["skill"], rows[4]["model"]) == ("'=1+1", "'@\\x1bx")
    assert float(rows[4]["lift"]) == -0.5
    assert list(rows[0])[:4] == list(row_data(ENTRIES[0]))[:4]


def test_no_column_of_the_history_holds_a_formula() -> None:
    texts = dict.fromkeys(
        ("skill", "model", "model_id", "verdict", "score", "skill_digest"), "=1+1"
    )
    entry = made_entry(1, made_row(-0.25, **texts), "@cafe")
    (row,) = csv.DictReader(io.StringIO(history_csv([entry], METRICS["lift"])))
    assert {row[name] for name in texts} == {"'=1+1"}
    assert row["commit"] == "'@cafe"
    assert (row["lift"], row["value"]) == ("-0.25", "-0.25")
    assert not [cell for cell in row.values() if cell.startswith(tuple("=+@"))]


def test_csv_of_nothing_is_empty() -> None:
    assert history_csv([], METRICS["lift"]).strip() == ""


def test_times_are_texts_in_json() -> None:
    entry = made_entry(1, made_row(0.5, skill_asked_last=STARTED))
    assert (
        json.loads(json.dumps(row_data(entry)))["skill_asked_last"]
        == "2026-01-02T03:04:05Z"
    )
