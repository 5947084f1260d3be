"""The data of the page of many runs."""

import re
from importlib.resources import files
from typing import Any

import pytest

from pytest_upskill.reports.numbers import metrics
from pytest_upskill.reports.page import trend_page
from support.made import ENTRIES, made_entry, made_row
from support.pages import data_of

HOSTILE = '<script>alert(1)</script>"\x1b[31m\u202e&'


def trend_of(rows: Any = ENTRIES, metric: str = "lift") -> dict[str, Any]:
    trend: dict[str, Any] = data_of(trend_page(rows, metrics()[metric]))["trend"]
    return trend


def test_a_row_has_every_known_metric_with_its_interval_and_its_texts() -> None:
    newest, _, part, unknown = trend_of()["rows"]
    assert newest["values"]["lift"] == pytest.approx([0.7, 0.6, 0.8])
    assert newest["texts"]["lift"] == ["+70", "+60 to +80"]
    assert (newest["commit"], part["commit"], unknown["commit"]) == (
        "c0ffee1",
        "abcdef1+",
        "-",
    )
    assert (part["subset"], part["cases"]) == (True, "5 of 12")
    assert "lift" not in unknown["values"]


def test_the_metric_that_was_asked_for_is_drawn_first() -> None:
    trend = trend_of(metric="tokens")
    assert trend["metric"] == "tokens"
    assert "tokens" in {metric["name"] for metric in trend["metrics"]}
    assert "recall" not in {metric["name"] for metric in trend["metrics"]}  # of no run


def test_the_viewer_can_write_every_unit() -> None:
    viewer = files("pytest_upskill.reports.page") / "viewer"
    source = "".join(
        (viewer / name).read_text("utf-8") for name in ("data.js", "trend.js")
    )
    formats = set(re.findall(r"^(?:  |const )(\w+)(?::| =) \(\w+\) =>", source, re.M))
    assert {metric.unit.text.__name__ for metric in metrics().values()} <= formats


def test_names_from_outside_are_only_data() -> None:
    hostile = made_entry(0, made_row(0.5, skill=HOSTILE, model=HOSTILE), f"\n{HOSTILE}")
    page = trend_page([hostile], metrics()["lift"])
    assert "alert(1)" not in page
    assert data_of(page)["trend"]["rows"][0]["skill"] == HOSTILE
