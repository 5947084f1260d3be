"""What people read at the end of a run and of a failure, and what machines read."""

import re
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.reports.terminal.layout import ASCII_MARKS, Look, Marks, marks_for
from pytest_upskill.reports.terminal.summary_text import summary_lines
from pytest_upskill.results.summary import Summary
from pytest_upskill.results.verdict import verdicts_of
from pytest_upskill.trials.plan import SkillInfo
from support.made import GATE, LONG_MODEL, PAID, lines, made_summary

widths = pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
models = pytest.mark.parametrize(
    "model", ["haiku", LONG_MODEL, "x" * 60, "openrouter:meta-llama/llama-4-maverick-17b-128e"]
)


def name_in(table: list[str]) -> str:
    """The first column of a table, its pieces joined: it is as broad as the widest of them."""
    start = next(number for number, line in enumerate(table) if set(line) == {"─"})
    broad = table[start - 1].index("without")
    end = table.index("", start)
    return "".join(line[:broad].strip() for line in table[start + 1 : end])


@widths
@models
def test_the_table_is_never_broader_than_the_terminal(width: int, model: str) -> None:
    full: dict[str, Any] = {"baseline_rate": 1.0, "skill_rate": 0.0, "errored": 12}
    long: dict[str, Any] = {"checks_passed": 3600, "checks_total": 4320, "baseline_seconds": 112.3}
    long |= {"skill_seconds": 145.6, "skill_tokens": 123_456.0}
    others: list[tuple[str, dict[str, Any]]] = [("haiku", {}), (LONG_MODEL, {"errored": 3})]
    for own in (full, {**full, **PAID}, {**full, **PAID, **long}):
        several = [(model, own), *others]
        compared: dict[str, Any] = {"against": "feature/gate", "previous_rate": 1.0}
        for rows in (several[:1], several):
            for more in ({}, compared):
                shown = lines(
                    *(made_summary(name, **numbers, **more) for name, numbers in rows), width=width
                )
                assert max(map(len, shown)) <= width


def test_the_rate_at_a_git_ref_has_a_column_only_where_there_is_one() -> None:
    compared = made_summary(against="feature/gate-with-keys", previous_rate=0.5)
    header, _, row = lines(compared)[2:5]
    assert header.split()[:4] == ["model", "without", "feature/gate-wit…", "with"]
    assert [text for text in row.split() if "%" in text] == ["42%", "50%", "83%", "+90%"]
    assert lines(made_summary())[2].split()[:3] == ["model", "without", "with"]
    short = lines(replace(compared, against="main"), width=80)[2]
    assert short.split()[:4] == ["model", "without", "main", "with"]


def test_a_title_and_a_note_are_never_broader_than_the_terminal() -> None:
    skill = SkillInfo("s" * 64, "skills/s", "0" * 64, 12345)
    rows = [made_summary("x" * 60, skill.name, cases=100, not_run=100)]
    shown = summary_lines([skill], verdicts_of(rows), Look(80))
    assert max(map(len, shown)) <= 80


@widths
@models
def test_every_number_and_the_whole_name_are_in_the_table(width: int, model: str) -> None:
    shown = lines(made_summary(model, errored=7, skill_rate=1.0), width=width)
    text = "\n".join(shown)
    numbers = ["42%", "100%", "+58", "12,345", "23,456", "+90%", "7"]
    numbers += ["2.5/3", "12.3", "45.6"] if width >= 100 else []  # they go first
    for number in numbers:
        assert re.search(rf"(?<!\d){re.escape(number)}(?!\d)", text), number
    assert name_in(shown[:-1]) == model


def headers_at(width: int, *rows: Summary) -> list[str]:
    return next(line.split() for line in lines(*rows, width=width) if line.startswith("model"))


def test_what_matters_least_goes_first_where_there_is_no_room() -> None:
    everything = ["model", "without", "with", "lift", "checks", "tokens", "seconds", "errors"]
    small: dict[str, Any] = {"baseline_tokens": 115.0, "skill_tokens": 192.0}
    assert headers_at(80, made_summary(**small)) == everything
    gone = [
        [name for name in everything if name not in headers_at(width, made_summary(**small))]
        for width in range(80, 50, -1)
    ]
    assert [gone[n] for n in range(len(gone)) if n == 0 or gone[n] != gone[n - 1]][:4] == [
        [],
        ["seconds"],
        ["checks", "seconds"],
        ["checks", "seconds", "errors"],
    ]
    assert headers_at(60, made_summary(**small, errored=1))[-1] == "errors"


def test_a_row_is_one_line_at_80_columns() -> None:
    for row in (
        made_summary(),
        made_summary(**PAID),
        made_summary("openai:gpt-5.4-mini", errored=3),
    ):
        shown = lines(row, width=80)
        assert shown[5] == ""


def test_where_there_is_room_bars_are_long_and_the_interval_has_a_column() -> None:
    row = made_summary(LONG_MODEL, rates=[(0.0, 1.0)] * 10, tokens=(9.0, 9.0), graded=1)
    header, _, shown = lines(row, width=140)[2:5]
    assert header.split()[3:6] == ["lift", "interval", "checks"]
    at = slice(header.index("interval"), header.index("checks"))
    assert shown[at].strip() == "+61 to +100"
    assert shown.startswith(LONG_MODEL)
    assert "█" * 12 in lines(row, width=150)[4]
    assert "interval" not in headers_at(80, row)


@widths
def test_what_is_not_known_is_a_dash(width: int) -> None:
    unknown: dict[str, Any] = dict.fromkeys(
        ["baseline_rate", "skill_rate", "baseline_tokens", "skill_tokens"]
    )
    unknown |= {"baseline_seconds": None, "skill_seconds": None, "graded": 0}
    row = lines(made_summary(**unknown), width=width)[4]
    assert row.split() == ["haiku", *["-"] * 6, "0"]
    assert not any("interval" in line for line in lines(made_summary(**unknown), width=width))


@widths
@models
def test_cost_is_shown_where_a_model_costs_something(width: int, model: str) -> None:
    free: dict[str, Any] = {"baseline_cost": 0.0, "skill_cost": 0.0}
    text = "\n".join(lines(made_summary(model, **PAID), made_summary("local", **free), width=width))
    assert "$/1000" in text
    for number in ("$14.20", "$1,234"):  # without and with the skill, perhaps one below the other
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d.,])", text), number
    for rows in ([made_summary("haiku")], [made_summary("haiku"), made_summary("local", **free)]):
        assert "$" not in "\n".join(lines(*rows, width=width))


def test_each_row_says_what_a_thousand_answers_cost() -> None:
    costs = [(0.0000524, 0.0000812), (0.0142, 0.0999), (0, 0), (None, None), (None, 0.0005)]
    rows = [made_summary(f"m{n}", baseline_cost=b, skill_cost=s) for n, (b, s) in enumerate(costs)]
    header, _, *shown = lines(*rows)[2:8]
    at = slice(header.index("$/1000"), header.index("seconds"))
    assert [row[at].strip() for row in shown] == [
        "$0.052 → $0.081",
        "$14.20 → $99.90",
        "$0 → $0",
        "-",
    ]
    assert lines(*rows)[8][at].strip() == "$0.50"


@pytest.mark.parametrize(
    ("dollars", "shown"),
    [(2345.6, "$2,346"), (99.94, "$99.94"), (1, "$1.00"), (0.0123, "$0.012"), (0.0001, "<$0.001")],
)
def test_dollars_are_short(dollars: float, shown: str) -> None:
    row = lines(made_summary(baseline_cost=None, skill_cost=dollars / 1000))[4]
    assert f"  {shown}  " in row


def test_without_a_baseline_only_the_side_of_the_skill_is_shown() -> None:
    unknown: dict[str, Any] = dict.fromkeys(
        ["baseline_rate", "baseline_tokens", "baseline_seconds"]
    )
    row = lines(made_summary(**unknown))[4]
    bar = "█" * 17 + "░" * 3
    assert row.split() == ["haiku", "-", bar, "83%", "-", "2.5/3", "23,456", "45.6", "0"]


def test_each_skill_has_a_block_with_its_models() -> None:
    rows = [
        made_summary("haiku"),
        made_summary("opus"),
        made_summary("haiku", "door", cases=1, runs=1),
    ]
    shown = lines(*rows)
    titles = [line for line in shown if "tokens ·" in line]
    assert titles == [
        "gate · about 1,234 tokens · 12 cases × 3 runs",
        "door · about 99 tokens · 1 case × 1 run",
    ]
    first = [line.split()[0] for line in shown if line and line not in titles]
    rule = "─" * len(shown[3])
    assert first[:7] == ["model", rule, "haiku", "opus", "model", first[5], "haiku"]
    assert [line.split(":")[0] for line in shown[-3:]] == [
        "gate on haiku",
        "gate on opus",
        "door on haiku",
    ]


def test_notes_stand_between_the_tables_and_the_verdicts() -> None:
    note = "Two calls were made again \x1b[2J" + ", and again" * 10
    rows = [made_summary("haiku", "gate"), made_summary("haiku", "door")]
    shown = lines(*rows, width=80, notes=[note])
    start = next(n for n, line in enumerate(shown) if line.startswith("Two calls"))
    assert shown[start - 1] == ""
    assert shown[start].startswith("Two calls were made again \\x1b[2J, and again")
    assert shown[start + 2] == ""
    assert shown[-2].startswith("gate on haiku: ")
    assert max(map(len, shown)) <= 80


@pytest.mark.parametrize(
    ("rate", "bar"), [(0.0, "░░░░░░░░░░   0%"), (0.5, "█████░░░░░  50%"), (1.0, "██████████ 100%")]
)
def test_a_rate_is_drawn_as_a_bar(rate: float, bar: str) -> None:
    assert bar in lines(made_summary(skill_rate=rate), width=97)[4]


@pytest.mark.parametrize(("lift", "shown"), [(0.004, "0"), (-0.25, "-25"), (1.0, "+100")])
def test_lift_is_shown_in_points_with_its_sign(lift: float, shown: str) -> None:
    row = made_summary(baseline_rate=max(0.0, -lift), skill_rate=max(0.0, lift))
    assert lines(row)[4].split()[5] == shown


@pytest.mark.parametrize(
    ("passed", "total", "graded", "shown"),
    [(3, 3, 1, "3/3"), (7, 12, 4, "1.8/3"), (100, 120, 1, "100/120"), (116, 120, 10, "11.6/12")],
)
def test_checks_are_shown_per_answer(passed: int, total: int, graded: int, shown: str) -> None:
    row = made_summary(checks_passed=passed, checks_total=total, graded=graded)
    assert lines(row)[4].split()[6] == shown


def test_cases_that_were_not_run_are_told_of() -> None:
    assert "haiku: incomplete: 1 case not run, 83% pass with the skill." in lines(
        made_summary(not_run=1)
    )
    assert "3 cases not run" in "".join(lines(made_summary(not_run=3)))
    assert not any("not run" in line for line in lines(made_summary(not_run=0)))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "no-such-encoding"])
def test_a_terminal_without_blocks_gets_ascii(encoding: str) -> None:
    assert marks_for(encoding) == ASCII_MARKS
    assert "\n".join(lines(made_summary(LONG_MODEL), marks=marks_for(encoding))).isascii()


def test_a_terminal_with_blocks_gets_them() -> None:
    assert marks_for("utf-8") == Marks()


def test_a_note_under_the_table_is_harmless() -> None:
    assert "\x1b" not in "\n".join(lines(made_summary("ev\x1b[31mil", not_run=1)))


@pytest.mark.parametrize(("change", "shown"), [(9.9, "+990%"), (5280.9, "×5,282")])
def test_growth_of_a_thousand_percent_is_told_in_times(change: float, shown: str) -> None:
    row = made_summary(baseline_tokens=10.0, skill_tokens=10.0 * (1 + change))
    assert f" {shown} " in lines(row)[4]
    assert f" {shown.replace('×', 'x')} " in lines(row, marks=ASCII_MARKS)[4]


def test_colours_come_only_from_the_function_given() -> None:
    row = made_summary("ev\x1b[31mil", errored=2)
    assert "\x1b" not in "\n".join(lines(row))
    painted: list[tuple[str, dict[str, bool]]] = []

    def paint(text: str, **style: bool) -> str:
        painted.append((text, {name: on for name, on in style.items() if on}))
        return f"\x1b[1m{text}\x1b[0m"

    shown = summary_lines([GATE], verdicts_of([row]), Look(120, paint=paint))
    assert ("gate", {"bold": True}) in painted
    assert "+41" not in [text for text, _ in painted]  # of a run that is incomplete
    assert ("2", {"red": True}) in painted
    assert re.sub(r"\x1b\[[01]m", "", "\n".join(shown)) == "\n".join(lines(row))
