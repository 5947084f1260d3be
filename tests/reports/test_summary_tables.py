"""The tables of a run: of a skill, a matrix for many rows."""

import re
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.reports.terminal.layout import ASCII_MARKS, TerminalLook, text_width
from pytest_upskill.reports.terminal.summary_text import summary_lines
from pytest_upskill.results.summary import Summary, summarize
from pytest_upskill.results.verdict import verdicts_of
from pytest_upskill.stats import Interval
from pytest_upskill.trials.plan import SkillInfo
from pytest_upskill.trials.records import Grade
from support.made import (
    LONG_MODEL,
    MODELS,
    PAID,
    lines,
    made_records,
    made_summary,
    many_rows,
    pair_of,
    ten_cases,
)
from support.words import HELPS, HURTS, INCOMPLETE

widths = pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
models = pytest.mark.parametrize(
    "model",
    ["haiku", LONG_MODEL, "x" * 60, "openrouter:meta-llama/llama-4-maverick-17b-128e"],
)


def name_in(table: list[str]) -> str:
    """The first column of a table, its pieces joined:
    it is as broad as the widest of them.
    """
    start = next(number for number, line in enumerate(table) if set(line) == {"─"})
    broad = table[start - 1].index("without")
    end = table.index("", start)
    return "".join(line[:broad].strip() for line in table[start + 1 : end])


@widths
@models
def test_the_table_fits_the_terminal(width: int, model: str) -> None:
    full: dict[str, Any] = {"baseline_rate": 1.0, "skill_rate": 0.0, "errored": 12}
    long: dict[str, Any] = {
        "checks_passed": 3600,
        "checks_total": 4320,
        "baseline_seconds": 112.3,
    }
    long |= {"skill_seconds": 145.6, "skill_tokens": 123_456.0}
    others: list[tuple[str, dict[str, Any]]] = [
        ("haiku", {}),
        (LONG_MODEL, {"errored": 3}),
    ]
    for own in (full, {**full, **PAID}, {**full, **PAID, **long}):
        several = [(model, own), *others]
        compared: dict[str, Any] = {"against": "feature/gate", "previous_rate": 1.0}
        for rows in (several[:1], several):
            for more in ({}, compared):
                shown = lines(
                    *(made_summary(name, **numbers, **more) for name, numbers in rows),
                    width=width,
                )
                assert max(map(len, shown)) <= width


def test_the_rate_at_a_git_ref_has_a_column_if_there_is_one() -> None:
    compared = made_summary(against="feature/gate-with-keys", previous_rate=0.5)
    header, _, row = lines(compared, width=128)[2:5]
    assert header.split()[:4] == ["model", "without", "feature/gate-wit…", "with"]
    assert [text for text in row.split() if "%" in text] == [
        "42%",
        "50%",
        "83%",
        "+90%",
    ]
    assert lines(made_summary())[2].split()[:3] == ["model", "without", "with"]
    short = lines(replace(compared, against="main"), width=80)[2]
    assert short.split()[:4] == ["model", "without", "main", "with"]


@widths
@models
def test_every_number_and_the_whole_name_are_in_the_table(
    width: int, model: str
) -> None:
    complete = made_summary(model, skill_rate=1.0)
    missing = made_summary(
        model, errored=7, skill_rate=1.0, possible_lift=Interval(0.31, 0.58)
    )
    amounts = ["12,345", "23,456", "+90%", *(["12.3", "45.6"] if width >= 200 else [])]
    for row, numbers in (
        (complete, ["42%", "100%", *(["2.5/3"] if width >= 120 else []), *amounts]),
        (missing, ["+31 to +58", "7", *amounts]),
    ):
        shown = lines(row, width=width)
        text = "\n".join(shown)
        for number in numbers:
            assert re.search(rf"(?<!\d){re.escape(number)}(?!\d)", text), number
        assert ("42%" in text) == (row is complete)
        assert name_in(shown[:-1]) == model


def headers_at(width: int, *rows: Summary) -> list[str]:
    return next(
        line.split() for line in lines(*rows, width=width) if line.startswith("model")
    )


def test_the_least_important_columns_are_dropped_first() -> None:
    everything = ["model", "without", "with", "lift", "checks", "tokens", "seconds"]
    small: dict[str, Any] = {"baseline_tokens": 115.0, "skill_tokens": 192.0}
    assert headers_at(80, made_summary(**small)) == everything
    shown = [headers_at(width, made_summary(**small)) for width in range(80, 50, -1)]
    gone = [[name for name in everything if name not in headers] for headers in shown]
    assert [gone[n] for n in range(len(gone)) if n == 0 or gone[n] != gone[n - 1]][
        :3
    ] == [
        [],
        ["seconds"],
        ["checks", "seconds"],
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


def test_a_wide_terminal_has_long_bars_and_the_interval() -> None:
    row = made_summary(
        LONG_MODEL, rates=[(0.0, 1.0)] * 10, tokens=(9.0, 9.0), graded=1, checks_total=2
    )
    header, _, shown = lines(row, width=140)[2:5]
    assert header.split()[3:6] == ["lift", "interval", "checks"]
    at = slice(header.index("interval"), header.index("checks"))
    assert shown[at].strip() == "+61 to +100"
    assert shown.startswith(LONG_MODEL)
    assert "█" * 12 in lines(row, width=150)[4]
    assert "interval" in headers_at(80, row)


@widths
def test_unknown_numbers_are_dashes(width: int) -> None:
    unknown: dict[str, Any] = dict.fromkeys(
        ["baseline_rate", "skill_rate", "baseline_tokens", "skill_tokens"]
    )
    unknown |= dict.fromkeys(
        ["baseline_seconds", "skill_seconds", "baseline_score", "skill_score"]
    )
    row = lines(made_summary(**unknown), width=width)[4]
    assert row.split() == ["haiku", *["-"] * 5]
    assert not any(
        "interval" in line for line in lines(made_summary(**unknown), width=width)
    )


@widths
@models
def test_cost_is_shown_if_a_model_costs_something(width: int, model: str) -> None:
    free: dict[str, Any] = {"baseline_cost": 0.0, "skill_cost": 0.0}
    text = "\n".join(
        lines(made_summary(model, **PAID), made_summary("local", **free), width=width)
    )
    assert "$/1000" in text
    # Without and with the skill, perhaps one below the other
    for number in ("$14.20", "$1,234"):
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d.,])", text), number
    for rows in (
        [made_summary("haiku")],
        [made_summary("haiku"), made_summary("local", **free)],
    ):
        assert "$" not in "\n".join(lines(*rows, width=width))


def test_each_row_has_the_cost_of_a_thousand_answers() -> None:
    costs = [
        (0.0000524, 0.0000812),
        (0.0142, 0.0999),
        (0, 0),
        (None, None),
        (None, 0.0005),
    ]
    rows = [
        made_summary(f"m{n}", baseline_cost=b, skill_cost=s)
        for n, (b, s) in enumerate(costs)
    ]
    header, _, *shown = lines(*rows)[2:8]
    at = slice(header.index("$/1000"), header.index("seconds"))
    assert [row[at].strip() for row in shown] == [
        "$0.052 → $0.081",
        "$14.20 → $99.90",
        "$0 → $0",
        "-",
    ]
    assert lines(*rows)[8][at].strip() == "$0.50"


def test_without_a_baseline_only_the_skill_arm_is_shown() -> None:
    both = made_summary()
    row = lines(replace(both, arms={"skill": both.arm("skill")}))[4]
    bar = "█" * 17 + "░" * 3
    assert row.split() == ["haiku", "-", bar, "83%", "-", "2.5/3", "23,456", "45.6"]


@pytest.mark.parametrize(
    ("rate", "bar"),
    [(0.0, "░░░░░░░░░░   0%"), (0.5, "█████░░░░░  50%"), (1.0, "██████████ 100%")],
)
def test_a_rate_is_drawn_as_a_bar(rate: float, bar: str) -> None:
    assert bar in lines(made_summary(skill_rate=rate), width=97)[4]


@pytest.mark.parametrize(
    ("lift", "shown"), [(0.004, "0"), (-0.25, "-25"), (1.0, "+100")]
)
def test_lift_is_shown_in_points_with_its_sign(lift: float, shown: str) -> None:
    row = made_summary(baseline_rate=max(0.0, -lift), skill_rate=max(0.0, lift))
    assert lines(row)[4].split()[5] == shown


@pytest.mark.parametrize(
    ("passed", "total", "graded", "shown"),
    [
        (3, 3, 1, "3/3"),
        (7, 12, 4, "1.8/3"),
        (100, 120, 1, "100/120"),
        (116, 120, 10, "11.6/12"),
    ],
)
def test_checks_are_shown_per_answer(
    passed: int, total: int, graded: int, shown: str
) -> None:
    row = made_summary(checks_passed=passed, checks_total=total, graded=graded)
    assert f" 1.5/3 → {shown} " in lines(row)[4]


def test_checks_of_answers_with_more_and_fewer_of_them_are_shares() -> None:
    good, bad = (
        Grade("contains", passed=True, reason=""),
        Grade("contains", passed=False, reason=""),
    )
    # Eight on average, which nobody asked
    counts = {"a": (14, 20), "b": (1, 2), "c": (2, 2)}
    records = [
        replace(
            record,
            checks=(good,) * passed + (bad,) * (total - passed),
            score=passed / total,
        )
        for case, (passed, total) in counts.items()
        for record in made_records({"baseline": "F", "skill": "P"}, case)
    ]
    row = summarize(
        records, pair_of("gate", "haiku"), model_id="claude-haiku", not_run=0
    )
    shown = lines(row, width=140)[4]
    assert "/8" not in shown
    assert "73%" in shown


@pytest.mark.parametrize(("change", "shown"), [(9.9, "+990%"), (5280.9, "×5,282")])
def test_growth_of_a_thousand_percent_is_a_factor(change: float, shown: str) -> None:
    row = made_summary(baseline_tokens=10.0, skill_tokens=10.0 * (1 + change))
    assert f" {shown} " in lines(row)[4]
    assert f" {shown.replace('×', 'x')} " in lines(row, marks=ASCII_MARKS)[4]


def without_baseline(model: str, skill: str) -> Summary:
    return made_summary(
        model, skill, rates=[(None, 1.0)], skill_rate=0.83, skill_tokens=23456.0
    )


def test_a_matrix_has_a_row_for_each_skill_and_a_column_for_each_model() -> None:
    rows = many_rows()
    missing = {"errored": 1, "possible_lift": Interval(0.3, 0.5)}
    rows[1] = ten_cases("sonnet", "skill-0", 4, 8, **missing)
    rows[2] = ten_cases("opus", "skill-0", 9, 0)
    header, rule, *body = lines(*rows, width=200)[:5]
    assert header.split() == ["skill", *MODELS, "verdict"]
    assert set(rule) == {"─"}
    assert re.split(" {2,}", body[0]) == [
        *("skill-0", "0→90 +90", "+30 to +50!", "90→0 -90", "0→90 +90", "0→90 +90"),
        f"{HURTS} 1, {INCOMPLETE} 1, {HELPS} 3",
    ]
    assert body[2].split() == ["skill-2", *["0→90", "+90"] * 4, "-", HELPS, "4"]
    assert lines(*rows)[-4:] == [
        f"{HELPS.capitalize()} 12, {INCOMPLETE} 1, {HURTS} 1.",
        f"{HURTS}: skill-0 on opus",
        f"{INCOMPLETE}: skill-0 on sonnet",
        "-v shows the table of each skill.",
    ]
    assert "; ! is " in "\n".join(lines(*rows))
    assert "; ! is " not in "\n".join(lines(*many_rows()))


def test_a_matrix_of_many_skills_has_those_with_the_lowest_lift_and_all_with_v() -> (
    None
):
    rows = [
        ten_cases("haiku", f"skill-{n:02}", 0, 9 if n % 3 else 2) for n in range(60)
    ]
    shown = [line.split()[0] for line in lines(*rows) if "→" in line]
    assert shown == sorted(shown)
    assert len(shown) == 40
    assert {f"skill-{n:02}" for n in range(0, 60, 3)} <= set(shown)
    assert "the 40 skills with the lowest lift" in "\n".join(lines(*rows))
    whole = [
        line
        for line in lines(*rows, verbosity=1)
        if line.startswith("skill-") and "→" in line
    ]
    assert len(whole) == 60


def test_a_matrix_without_a_baseline_has_one_rate() -> None:
    shown = lines(
        *(without_baseline(model, f"s{n}") for n in range(3) for model in MODELS)
    )
    assert shown[2].split() == ["s0", *["83"] * 5]
    assert shown[-1] == "-v shows the table of each skill."


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_a_matrix_is_split_if_the_models_do_not_fit(width: int) -> None:
    wide = [*many_rows(), ten_cases("日本語のモデル" * 5, "ein-langer-name-" * 4, 1, 2)]
    for verbosity in (0, 1):
        shown = lines(*wide, width=width, verbosity=verbosity)
        assert max(map(text_width, shown)) <= width
    heads = [
        line for line in lines(*many_rows(), width=width) if line.startswith("skill ")
    ]
    assert len(heads) == {60: 3, 80: 2, 100: 1, 120: 1}[width]
    names = [name[:8] for line in heads for name in line.split()[1:]]
    assert names == [*(model[:8] for model in MODELS), "verdict"]


def test_a_matrix_is_painted_and_harmless() -> None:
    painted = []

    def paint(text: str, **style: bool) -> str:
        painted.append((text, style))
        return text

    rows = [ten_cases("ev\x1b[31mil", "skill-0", 0, 9, errored=2), *many_rows()[1:]]
    skills = [SkillInfo(f"skill-{n}", "p", "0" * 64, 9) for n in range(3)]
    shown = summary_lines(
        skills, verdicts_of(rows), TerminalLook(99, ASCII_MARKS, paint)
    )
    assert ("+90", {"green": True, "bold": True}) in painted
    assert ("!", {"red": True}) in painted
    assert "\n".join(shown).isascii()
    assert "\x1b" not in "\n".join(shown)
    assert "0->90 +90" in "\n".join(shown)


@pytest.mark.parametrize(
    ("before", "after", "style"),
    [
        (0, 9, {"green": True, "bold": True}),
        (9, 0, {"red": True, "bold": True}),
        (4, 6, None),
        (6, 4, None),
        (9, 10, None),
    ],
)
@pytest.mark.parametrize(("number", "verbosity"), [(1, 0), (13, 0)])
def test_a_lift_is_painted_only_if_the_verdict_says_that_it_is_shown(
    before: int, after: int, style: dict[str, bool] | None, number: int, verbosity: int
) -> None:
    painted = {}

    def paint(text: str, **how: bool) -> str:
        painted[text.split(" ")[0]] = how
        return text

    rows = [ten_cases("haiku", f"s{n}", before, after) for n in range(number)]
    skills = [SkillInfo(one.skill, "p", "0" * 64, 9) for one in rows]
    summary_lines(
        skills, verdicts_of(rows), TerminalLook(120, ASCII_MARKS, paint, verbosity)
    )
    assert painted.get(f"{10 * (after - before):+d}") == style
