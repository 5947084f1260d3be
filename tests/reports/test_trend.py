"""The history as it is drawn: tables, bars, a trend, a page, CSV."""

import base64
import csv
import hashlib
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill._util.git import Commit
from pytest_upskill._util.texts import harmless
from pytest_upskill.reports.history.entries import Entry, entry_data, history_csv
from pytest_upskill.reports.history.trend import ago, history_lines, moment, plot_lines, spark
from pytest_upskill.reports.history.trend_page import ticks, trend_page
from pytest_upskill.reports.numbers import metrics
from pytest_upskill.reports.terminal.layout import ASCII_MARKS, Look, Marks
from pytest_upskill.results.history import Row

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
LOOK = Look(80)
METRICS = metrics()
HOSTILE = '<script>alert(1)</script>"\x1b[31m\u202e&'


def row(lift: float | None = 0.5, **more: Any) -> Row:
    rate = None if lift is None else max(0.0, lift)
    values: dict[str, Any] = {
        **{"skill": "wick", "model": "haiku", "model_id": "id", "cases": 12, "runs": 3},
        **{"errored": 0, "baseline_rate": 0.25, "skill_rate": rate, "lift": lift},
        **{"lift_low": lift and lift - 0.1, "lift_high": lift and lift + 0.1},
        **{"baseline_tokens": 50.0, "skill_tokens": 1150.4, "token_change": 2.0},
        **{"baseline_cost": 0.0005, "skill_cost": 0.0015, "verdict": "helps", "of": 12},
    }
    return Row(**{**values, **more})


def entry(days_ago: float, of: Row, commit: str | None = None, *, dirty: bool = False) -> Entry:
    short = f"{int(days_ago * 10):06x}"
    known = Commit(commit, dirty) if commit else None
    return Entry(f"2026-{short}", short, NOW - timedelta(days=days_ago), known, of)


ENTRIES = [
    entry(0, row(0.7), "c0ffee123456"),
    entry(0, row(0.6, model="unsloth/GLM-4.7-Flash-GGUF:Q4_0"), "c0ffee123456"),
    entry(3, row(0.5, cases=5), "abcdef123456", dirty=True),
    entry(30, row(None, baseline_rate=None, verdict=None)),
]


def cells(line: str) -> str:
    return " ".join(line.split())


def test_a_table_says_what_a_run_has_in_common_once() -> None:
    lines = history_lines(ENTRIES, replace(LOOK, width=140), NOW)
    headers = "run when commit skill model cases without with lift tokens $/1000 verdict"
    assert cells(lines[0]) == headers
    assert cells(lines[2]) == "000000 just now c0ffee1 wick haiku 12 25% 70% +70 1,150 $1.50 helps"
    assert cells(lines[3]).startswith("wick unsloth/GLM-4.7-Flash-GGUF:Q4_0 12 25% ")
    assert cells(lines[4]).startswith("00001e 3 d ago abcdef1+ wick haiku 5/12 ")
    assert cells(lines[5]) == "00012c 2026-10-16 - wick haiku 12 - - - 1,150 $1.50 -"


@given(
    st.integers(40, 200),
    st.lists(st.tuples(st.text(), st.text(), st.floats(-1, 1)), min_size=1, max_size=4),
)
@settings(deadline=None)
def test_nothing_is_broader_than_the_terminal_or_harmful(
    width: int, made: list[tuple[str, str, float]]
) -> None:
    entries = [
        entry(number, row(lift, skill=skill, model=model))
        for number, (skill, model, lift) in enumerate(made)
    ]
    look = replace(LOOK, width=width)
    for line in history_lines(entries, look, NOW):
        assert width < 60 or len(line) <= width
        assert harmless(line) == line
        assert "\n" not in line
    for line in plot_lines(entries, METRICS["lift"], look, NOW):
        assert harmless(line) == line
        assert "\n" not in line


@pytest.mark.parametrize(("width", "kept"), [(120, 12), (80, 9), (50, 5)])
def test_where_there_is_little_room_the_least_important_columns_go(width: int, kept: int) -> None:
    lines = history_lines([ENTRIES[0], ENTRIES[2]], replace(LOOK, width=width), NOW)
    assert max(map(len, lines)) <= width
    headers = lines[0].split()
    assert len(headers) >= kept
    assert {"run", "skill", "model", "with", "lift"} <= set(headers)
    # That only some of the cases were asked is said in any case.
    assert ("5/12" in lines[3]) != (" 50%*" in lines[3])
    assert ("5/12" in lines[3]) != (lines[-1] == "* only some of the cases")


def test_colours_are_of_the_lift_and_the_verdict() -> None:
    def paint(text: str, **how: bool) -> str:
        return "".join(f"<{name}>" for name, wanted in how.items() if wanted) + text

    bad = entry(1, row(-0.5, verdict="hurts"))
    chance = entry(2, row(0.4, verdict="no effect shown"))
    lines = history_lines([ENTRIES[0], bad, chance], replace(LOOK, width=120, paint=paint), NOW)
    assert "<green><bold>+70" in lines[2]
    assert "<green><bold>helps" in lines[2]
    assert "<red><bold>-50" in lines[3]
    assert "<red><bold>hurts" in lines[3]
    assert " +40 " in lines[4]
    assert "<" not in lines[4]


@pytest.mark.parametrize(
    ("since", "told"),
    [
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=59), "59 min ago"),
        (timedelta(hours=23), "23 h ago"),
        (timedelta(days=6), "6 d ago"),
        (timedelta(days=7), "2026-11-08"),
        (timedelta(days=-1), "2026-11-16"),  # clocks differ
    ],
)
def test_how_long_ago(since: timedelta, told: str) -> None:
    assert ago(NOW - since, NOW) == told


def test_the_time_of_a_run_has_no_year_if_it_is_this_one() -> None:
    assert moment(NOW, NOW) == "Nov 15 12:00"
    assert moment(NOW - timedelta(days=400), NOW) == "2025-10-11"


def test_a_plot_has_a_bar_for_each_run_and_a_trend() -> None:
    entries = [ENTRIES[0], ENTRIES[2], entry(5, row(0.25)), entry(6, row(0.0))]
    lines = plot_lines(entries, METRICS["lift"], LOOK, NOW)
    assert lines[0] == "wick on haiku: lift in points"
    assert [line.split()[0] for line in lines[1:5]] == ["00003c", "000032", "00001e", "000000"]
    assert [line.count("█") for line in lines[1:5]] == [0, 4, 8, 11]
    assert [line.count("░") for line in lines[1:5]] == [16, 12, 8, 5]
    assert lines[3].endswith("+50  (+40 to +60) 5/12 cases")
    assert lines[5] == "  trend  ▁▃▆  0 → +70 (+70 points)"  # without the run of 5 cases


def test_runs_of_some_cases_alone_have_no_trend() -> None:
    entries = [ENTRIES[2], entry(4, row(0.1, cases=3)), entry(5, row(0.2))]
    assert not [line for line in plot_lines(entries, METRICS["lift"], LOOK, NOW) if "trend" in line]


@pytest.mark.parametrize(
    ("metric", "values", "told"),
    [
        ("tokens", (33.4, 29.5), "33 → 30 (-3)"),
        ("tokens", (29.6, 30.4), "30 → 30 (0)"),
        ("lift", (0.034, 0.076), "+3 → +8 (+5 points)"),
        ("cost", (0.00123, 0.00121), "$1.23 → $1.21 (-$0.02)"),
        ("cost", (0.0000002, 0.0009), "<$0.001 → $0.90 (+$0.90)"),
    ],
)
def test_a_change_is_the_difference_of_what_is_shown(
    metric: str, values: tuple[float, float], told: str
) -> None:
    entries = [
        entry(9 - number, row(value, skill_tokens=value, skill_cost=value))
        for number, value in enumerate(values)
    ]
    assert plot_lines(entries, METRICS[metric], LOOK, NOW)[-1].endswith(f"  {told}")


def test_models_are_told_apart_and_less_room_shows_no_more_of_them() -> None:
    names = [f"scripted:a-long-name-of-model-{kind}.json" for kind in ("good", "poor", "odd")]
    entries = [entry(0, row(0.5, model=name)) for name in names]
    before = 0
    for width in range(50, 180):
        header, _, *body = history_lines(entries, replace(LOOK, width=width), NOW)
        models = [line[header.index("model") :].split()[0] for line in body]
        assert len(set(models)) == 3, width
        assert len(models[0]) >= before
        before = len(models[0])
    assert models == names


def test_values_below_zero_go_to_the_left_of_the_middle() -> None:
    lines = plot_lines([entry(0, row(-0.5)), entry(1, row(1.0))], METRICS["lift"], LOOK, NOW)
    bars = [re.findall("[█░]+", line)[0] for line in lines[1:3]]
    assert bars == ["░" * 15 + "█" * 15, "░" * 8 + "█" * 7 + "░" * 15]


def test_plain_ascii_where_the_terminal_has_no_more() -> None:
    entries = [*ENTRIES, entry(5, row(0.2))]
    lines = plot_lines(entries, METRICS["pass-rate"], replace(LOOK, marks=ASCII_MARKS), NOW)
    assert all(line.isascii() for line in lines)
    assert any("####" in line for line in lines)
    assert "-> 70%" in lines[-4]


@pytest.mark.parametrize(
    ("metric", "told"),
    [
        ("lift", "0 → +70 (+70 points)"),
        ("pass-rate", "0% → 70% (+70 points)"),
        ("tokens", "900 → 1,150 (+250)"),
        ("cost", "$0.90 → $1.50 (+$0.60)"),
    ],
)
def test_a_trend_is_told_in_the_words_of_its_metric(metric: str, told: str) -> None:
    first = entry(9, row(0.0, skill_tokens=900.4, skill_cost=0.0009))
    assert plot_lines([ENTRIES[0], first], METRICS[metric], LOOK, NOW)[-1].endswith(told)


def test_what_is_not_known_is_a_gap() -> None:
    assert spark([0.0, None, 1.0], 0.0, 1.0, Marks()) == "▁ █"
    lines = plot_lines([ENTRIES[3]], METRICS["lift"], LOOK, NOW)
    assert lines == ["wick on haiku: lift in points", "  not known of any run"]


@given(st.floats(-100, 0), st.floats(0.001, 1e6))
def test_ticks_are_some_round_numbers_within(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 2 <= len(found) <= 8
    assert all(low - 0.01 * (high - low) <= tick <= high * 1.01 for tick in found)


class Page(HTMLParser):
    """What a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attrs for name, attrs in self.tags if name == tag)


def test_the_page_draws_a_line_for_each_model_over_commits() -> None:
    page = Page(trend_page(ENTRIES, METRICS["lift"]))
    assert len(list(page.all("svg"))) == 1
    assert len(list(page.all("polyline"))) == 2
    assert len(list(page.all("circle"))) == 3  # of the fourth entry nothing is known
    assert [circle.get("class") for circle in page.all("circle")].count("some") == 1
    assert all((line["points"] or "").count(",") == 1 for line in page.all("polyline"))
    assert "only some of the cases" in page.text
    assert "some of the cases" not in Page(trend_page(ENTRIES[:2], METRICS["lift"])).text
    intervals = [line for line in page.all("line") if line.get("class") == "interval"]
    assert len(intervals) == 3
    assert len(list(page.all("tr"))) == 5
    for told in ("c0ffee1", "abcdef1+", "10-16 12:00", "+70 (+60 to +80)", "5 of 12"):
        assert told in page.text


def test_the_page_has_a_section_for_each_skill() -> None:
    more = [*ENTRIES, entry(1, row(0.1, skill="door"))]
    page = Page(trend_page(more, METRICS["tokens"]))
    assert len(list(page.all("section"))) == len(list(page.all("svg"))) == 2


def test_the_page_may_run_and_fetch_nothing() -> None:
    text = trend_page(ENTRIES, METRICS["cost"])
    policy = unescape(re.findall(r'Content-Security-Policy" content="([^"]+)"', text)[0])
    style = re.findall("<style>(.*?)</style>", text, re.S)[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; script-src 'none'; ")
    assert f"style-src 'sha256-{digest}'" in policy
    page = Page(text)
    assert not {"script", "img", "iframe"} & {tag for tag, _ in page.tags}
    assert not [attrs for _, attrs in page.tags if {"style", "src", "onload"} & set(attrs)]
    addresses = [attrs["href"] or "" for _, attrs in page.tags if "href" in attrs]
    assert [address.partition(":")[0] for address in addresses] == ["data"]  # the icon


def test_names_from_outside_are_only_text() -> None:
    hostile = entry(0, row(0.5, skill=HOSTILE, model=HOSTILE, verdict=HOSTILE), f"\n{HOSTILE}")
    text = trend_page([hostile, *ENTRIES], METRICS["lift"])
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "alert(1)" in Page(text).text
    for line in [
        *history_lines([hostile], LOOK, NOW),
        *plot_lines([hostile], METRICS["lift"], LOOK, NOW),
    ]:
        assert harmless(line) == line


def test_csv_has_a_line_for_each_entry_and_nothing_that_a_spreadsheet_reckons() -> None:
    entries = [*ENTRIES, entry(1, row(-0.5, skill="=1+1", model="@\x1bx"), "c0ffee")]
    rows = list(csv.DictReader(io.StringIO(history_csv(entries, METRICS["cost"]))))
    assert len(rows) == 5
    assert rows[0]["commit"] == "c0ffee123456"
    assert (rows[0]["metric"], rows[0]["value"], rows[0]["low"]) == ("cost", "1.5", "")
    assert (rows[2]["dirty"], rows[3]["commit"], rows[3]["lift"]) == ("True", "", "")
    assert (rows[4]["skill"], rows[4]["model"]) == ("'=1+1", "'@\\x1bx")
    assert float(rows[4]["lift"]) == -0.5
    assert list(rows[0])[:4] == list(entry_data(ENTRIES[0]))[:4]


def test_csv_of_nothing_is_empty() -> None:
    assert history_csv([], METRICS["lift"]).strip() == ""


def test_no_file_is_read_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("a file was opened"))
    assert trend_page(ENTRIES, METRICS["lift"])
