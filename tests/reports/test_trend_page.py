"""The page of the history: drawings and tables of runs."""

import base64
import hashlib
import re
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.reports.html.markup import ticks
from pytest_upskill.reports.html.trend_page import trend_page
from pytest_upskill.reports.numbers import metrics
from support.made import ENTRIES, made_entry, made_row
from support.pages import Elements

METRICS = metrics()
HOSTILE = '<script>alert(1)</script>"\x1b[31m\u202e&'


@given(st.floats(-100, 0), st.floats(0.001, 1e6))
def test_ticks_are_round_numbers_in_range(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 2 <= len(found) <= 8
    assert all(low - 0.01 * (high - low) <= tick <= high * 1.01 for tick in found)


def test_the_page_draws_a_line_for_each_model_over_commits() -> None:
    page = Elements(trend_page(ENTRIES, METRICS["lift"]))
    assert len(page.all("svg")) == 1
    assert len(page.all("polyline")) == 2
    assert len(page.all("circle")) == 3  # of the fourth entry nothing is known
    assert [circle.get("class") for circle in page.all("circle")].count("some") == 1
    assert all((line["points"] or "").count(",") == 1 for line in page.all("polyline"))
    assert "only some of the cases" in page.text
    assert "some of the cases" not in Elements(trend_page(ENTRIES[:2], METRICS["lift"])).text
    intervals = [line for line in page.all("line") if line.get("class") == "interval"]
    assert len(intervals) == 3
    assert len(page.all("tr")) == 5
    for words in ("c0ffee1", "abcdef1+", "10-16 12:00", "+70 (+60 to +80)", "5 of 12"):
        assert words in page.text


def test_the_page_has_a_section_for_each_skill() -> None:
    more = [*ENTRIES, made_entry(1, made_row(0.1, skill="door"))]
    page = Elements(trend_page(more, METRICS["tokens"]))
    assert len(page.all("section")) == len(page.all("svg")) == 2


def test_the_page_runs_and_fetches_nothing() -> None:
    text = trend_page(ENTRIES, METRICS["cost"])
    policy = unescape(re.findall(r'Content-Security-Policy" content="([^"]+)"', text)[0])
    style = re.findall("<style>(.*?)</style>", text, re.S)[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; script-src 'none'; ")
    assert f"style-src 'sha256-{digest}'" in policy
    page = Elements(text)
    assert not {"script", "img", "iframe"} & {tag for tag, _ in page.found}
    assert not [attrs for _, attrs in page.found if {"style", "src", "onload"} & set(attrs)]
    addresses = [attrs["href"] or "" for _, attrs in page.found if "href" in attrs]
    assert [address.partition(":")[0] for address in addresses] == ["data"]  # the icon


def test_names_from_outside_are_only_text() -> None:
    hostile = made_entry(
        0, made_row(0.5, skill=HOSTILE, model=HOSTILE, verdict=HOSTILE), f"\n{HOSTILE}"
    )
    text = trend_page([hostile, *ENTRIES], METRICS["lift"])
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "alert(1)" in Elements(text).text


def test_no_file_is_read_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    trend_page([], METRICS["lift"])  # the style sheet is read once
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("a file was opened"))
    assert trend_page(ENTRIES, METRICS["lift"])
