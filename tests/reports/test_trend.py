"""The history on a terminal: a table of runs, bars, a trend."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.texts import harmless
from pytest_upskill.reports.numbers import metrics
from pytest_upskill.reports.terminal.layout import ASCII_MARKS, TerminalLook
from pytest_upskill.reports.terminal.trend import ago, history_lines, moment, plot_lines
from support.made import ENTRIES, NOW, made_entry, made_row
from support.words import HELPS, HURTS, NO_EFFECT

LOOK = TerminalLook(80)
METRICS = metrics()


def cells(line: str) -> str:
    return " ".join(line.split())


def test_what_entries_of_a_run_share_is_shown_once() -> None:
    lines = history_lines(ENTRIES, replace(LOOK, width=140), NOW)
    headers = (
        "run when commit skill model cases without with lift tokens $/1000 verdict"
    )
    assert cells(lines[0]) == headers
    numbers = "12 25% 70% +70 1,150 $1.50"
    assert cells(lines[2]) == f"000000 just now c0ffee1 wick haiku {numbers} {HELPS}"
    assert cells(lines[3]).startswith("wick unsloth/GLM-4.7-Flash-GGUF:Q4_0 12 25% ")
    assert cells(lines[4]).startswith("00001e 3 d ago abcdef1+ wick haiku 5/12 ")
    assert cells(lines[5]) == "00012c 2026-10-16 - wick haiku 12 - - - 1,150 $1.50 -"


@given(
    st.integers(40, 200),
    st.lists(st.tuples(st.text(), st.text(), st.floats(-1, 1)), min_size=1, max_size=4),
)
def test_lines_fit_the_terminal_and_are_harmless(
    width: int, made: list[tuple[str, str, float]]
) -> None:
    entries = [
        made_entry(number, made_row(lift, skill=skill, model=model))
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
def test_the_history_drops_the_least_important_columns(width: int, kept: int) -> None:
    lines = history_lines([ENTRIES[0], ENTRIES[2]], replace(LOOK, width=width), NOW)
    assert max(map(len, lines)) <= width
    headers = lines[0].split()
    assert len(headers) >= kept
    assert {"run", "skill", "model", "with", "lift"} <= set(headers)
    # That only some of the cases were asked is shown in any case.
    assert "5/12" in lines[3]


def test_lift_and_verdict_are_painted() -> None:
    def paint(text: str, **how: bool) -> str:
        return "".join(f"<{name}>" for name, wanted in how.items() if wanted) + text

    bad = made_entry(1, made_row(-0.5, verdict=HURTS))
    chance = made_entry(2, made_row(0.4, verdict=NO_EFFECT))
    lines = history_lines(
        [ENTRIES[0], bad, chance], replace(LOOK, width=120, paint=paint), NOW
    )
    assert "<green><bold>+70" in lines[2]
    assert f"<green><bold>{HELPS}" in lines[2]
    assert "<red><bold>-50" in lines[3]
    assert f"<red><bold>{HURTS}" in lines[3]
    assert " +40 " in lines[4]
    assert "<" not in lines[4]


@pytest.mark.parametrize(
    ("since", "words"),
    [
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=59), "59 min ago"),
        (timedelta(hours=23), "23 h ago"),
        (timedelta(days=6), "6 d ago"),
        (timedelta(days=7), "2026-11-08"),
        (timedelta(days=-1), "2026-11-16"),  # clocks differ
    ],
)
def test_how_long_ago(since: timedelta, words: str) -> None:
    assert ago(NOW - since, NOW) == words


def test_the_current_year_is_not_shown() -> None:
    assert moment(NOW, NOW) == "Nov 15 12:00"
    assert moment(NOW - timedelta(days=400), NOW) == "2025-10-11"


def test_a_plot_has_a_bar_for_each_run_and_a_trend() -> None:
    entries = [
        ENTRIES[0],
        ENTRIES[2],
        made_entry(5, made_row(0.25)),
        made_entry(6, made_row(0.0)),
    ]
    lines = plot_lines(entries, METRICS["lift"], LOOK, NOW)
    assert lines[0] == f"wick on haiku: {METRICS['lift'].title}"
    assert [line.split()[0] for line in lines[1:5]] == [
        "00003c",
        "000032",
        "00001e",
        "000000",
    ]
    assert [line.count("█") for line in lines[1:5]] == [0, 4, 8, 11]
    assert [line.count("░") for line in lines[1:5]] == [16, 12, 8, 5]
    assert lines[3].endswith("+50  (+40 to +60) 5/12 cases")
    change = METRICS["lift"].unit.change(0.0, 0.7)
    assert lines[5] == f"  trend  0 → +70 ({change})"  # without the run of 5 cases


def test_runs_of_some_cases_are_not_part_of_the_trend() -> None:
    entries = [
        ENTRIES[2],
        made_entry(4, made_row(0.1, cases=3)),
        made_entry(5, made_row(0.2)),
    ]
    assert not [
        line
        for line in plot_lines(entries, METRICS["lift"], LOOK, NOW)
        if "trend" in line
    ]


@pytest.mark.parametrize(
    ("metric", "values", "words"),
    [
        ("tokens", (33.4, 29.5), "33 → 30 (-3)"),
        ("tokens", (29.6, 30.4), "30 → 30 (0)"),
        ("lift", (0.034, 0.076), "+3 → +8 (+5 points)"),
        ("cost", (0.00123, 0.00121), "$1.23 → $1.21 (-$0.02)"),
        ("cost", (0.0000002, 0.0009), "<$0.001 → $0.90 (+$0.90)"),
    ],
)
def test_a_change_is_the_difference_of_what_is_shown(
    metric: str, values: tuple[float, float], words: str
) -> None:
    entries = [
        made_entry(9 - number, made_row(value, skill_tokens=value, skill_cost=value))
        for number, value in enumerate(values)
    ]
    assert plot_lines(entries, METRICS[metric], LOOK, NOW)[-1].endswith(f"  {words}")


def test_models_stay_distinct_at_any_width() -> None:
    names = [
        f"scripted:a-long-name-of-model-{kind}.json" for kind in ("good", "poor", "odd")
    ]
    entries = [made_entry(0, made_row(0.5, model=name)) for name in names]
    before = 0
    for width in range(50, 180):
        header, _, *body = history_lines(entries, replace(LOOK, width=width), NOW)
        models = [line[header.index("model") :].split()[0] for line in body]
        assert len(set(models)) == 3, width
        assert len(models[0]) >= before
        before = len(models[0])
    assert models == names


def test_negative_values_go_left_of_the_middle() -> None:
    lines = plot_lines(
        [made_entry(0, made_row(-0.5)), made_entry(1, made_row(1.0))],
        METRICS["lift"],
        LOOK,
        NOW,
    )
    bars = [re.findall("[█░]+", line)[0] for line in lines[1:3]]
    assert bars == ["░" * 15 + "█" * 15, "░" * 8 + "█" * 7 + "░" * 15]


def test_a_plot_has_an_ascii_form() -> None:
    entries = [*ENTRIES, made_entry(5, made_row(0.2))]
    lines = plot_lines(
        entries, METRICS["pass-rate"], replace(LOOK, marks=ASCII_MARKS), NOW
    )
    assert all(line.isascii() for line in lines)
    assert any("####" in line for line in lines)
    assert "-> 70%" in lines[-4]


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("pass-rate", "0% → 70% (+70 points)"),
        ("tokens", "900 → 1,150 (+250)"),
    ],
)
def test_a_trend_has_the_unit_of_its_metric(metric: str, words: str) -> None:
    first = made_entry(9, made_row(0.0, skill_tokens=900.4, skill_cost=0.0009))
    assert plot_lines([ENTRIES[0], first], METRICS[metric], LOOK, NOW)[-1].endswith(
        words
    )


def test_unknown_values_are_said_to_be() -> None:
    lines = plot_lines([ENTRIES[3]], METRICS["lift"], LOOK, NOW)
    assert lines[1:] == ["  not known of any run"]


def test_names_from_outside_are_only_text() -> None:
    bad = "<b>\x1b[31m\u202e&"
    hostile = made_entry(0, made_row(0.5, skill=bad, model=bad), f"\n{bad}")
    plot = plot_lines([hostile], METRICS["lift"], LOOK, NOW)
    for line in [*history_lines([hostile], LOOK, NOW), *plot]:
        assert harmless(line) == line
