"""Shares of checks in every report: both arms, and both lifts with their intervals."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.cli.commands.list import LastResult
from pytest_upskill.reports.history_rows import row_data
from pytest_upskill.reports.markdown import markdown_summary
from pytest_upskill.reports.numbers import LIFT, metrics
from pytest_upskill.reports.page import run_page, trend_page
from pytest_upskill.reports.terminal.failure import failure_text
from pytest_upskill.reports.terminal.layout import (
    ASCII_MARKS,
    UNICODE_MARKS,
    TerminalLook,
)
from pytest_upskill.reports.terminal.live import item_numbers
from pytest_upskill.reports.terminal.run_lines import comparison_lines, run_lines
from pytest_upskill.reports.terminal.summary_text import summary_lines
from pytest_upskill.reports.terminal.trend import history_lines, plot_lines
from pytest_upskill.results.arm_comparison import SCORE_WORDS
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_comparison import compare_runs
from support.made import NOW, STARTED, checked_run, kept_rows, made_entry, made_row
from support.pages import data_of
from support.words import HELPS

# Of 7: no case passes in either arm
HIDDEN = [(0, 6), (1, 6), (0, 5), (1, 6), (2, 6), (0, 6)]
OF_CHECKS = SCORE_WORDS["checks"]
CHECKS, PASS = checked_run(HIDDEN), checked_run(HIDDEN, score="pass")


def shown(results: RunResults, width: int, verbosity: int = 0) -> list[str]:
    look = TerminalLook(width, verbosity=verbosity)
    return summary_lines(results.skills, results.verdicts, look)


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_a_verdict_on_checks_has_the_pass_rate_beside_it(width: int) -> None:
    lines = shown(CHECKS, width)
    assert max(map(len, lines)) <= width
    assert lines[0].endswith(f" · 6 cases × 1 run · {OF_CHECKS}")
    cells = re.sub(r"[█░ ]+", " ", lines[4])
    assert cells.startswith("haiku 10% 83% +74 ")
    assert bool(re.search(r" 0% ?→ ?0% \+0 ", cells)) == (width > 80)
    assert "interval" in lines[2]
    end = " ".join(" ".join(lines[6:]).split())
    assert end.startswith(f"haiku: {HELPS}: {CHECKS.verdicts[0].sentence}")


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_a_verdict_on_passes_has_the_checks_beside_it(width: int) -> None:
    lines = shown(PASS, width)
    assert max(map(len, lines)) <= width
    assert OF_CHECKS not in lines[0]
    assert bool(re.search(r"0\.7/7 ?→ ?5\.8/7 \+74 ", lines[4])) == (width > 80)
    assert PASS.verdicts[0].sentence in " ".join(" ".join(lines[6:]).split())


def test_shares_stand_for_counts_that_differ_from_case_to_case() -> None:
    first, *rest = PASS.records
    fewer = replace(first, checks=first.checks[:5])
    assert " 10% → 83% +74 " in shown(replace(PASS, records=(fewer, *rest)), 120)[4]


def test_one_check_each_has_no_column_of_its_own() -> None:
    assert "checks" not in shown(checked_run([(0, 1)] * 6, of=1, score="pass"), 120)[2]
    assert "checks" in shown(checked_run([(0, 7)] * 6, score="pass"), 120)[2]


@pytest.mark.parametrize(
    ("by_checks", "legend"),
    [
        (13, "Shares of checks in %, without and with the skill, and the lift."),
        (0, "Pass rates in %, without and with the skill, and the lift."),
        (
            1,
            (
                "Pass rates in %, without and with the skill, and the lift; * shares of"
                " checks."
            ),
        ),
    ],
)
def test_the_legend_of_a_matrix_says_what_it_is_of(by_checks: int, legend: str) -> None:
    made = checked_run(HIDDEN, skills=[f"skill-{n}" for n in range(13)], score="pass")
    skills = tuple(
        replace(skill, score="checks") if number < by_checks else skill
        for number, skill in enumerate(made.skills)
    )
    lines = shown(replace(made, skills=skills), 120)
    assert legend in lines
    starred = [
        line.split()[0] for line in lines if line.startswith("skill-") and "* " in line
    ]
    assert starred == (["skill-0*"] if by_checks == 1 else [])


def test_markdown_has_both_lifts() -> None:
    text = markdown_summary(CHECKS)
    assert "| 10% | 83% | +74 (+40 to +86) | 0% → 0%, +0 (-46 to +46) |" in text
    assert f"Lift and verdict are of the {OF_CHECKS}." in text
    text = markdown_summary(PASS)
    assert "0 points of pass rate (-46 to +46), +74 of checks (+40 to +86)" in text
    assert OF_CHECKS not in text
    assert ": passed 0 of 1, 6 of 7 checks</summary>" in text
    assert "Without the skill: passed 0 of 1 run, 0 of 7 checks." in text


def test_the_page_has_both_lifts() -> None:
    (by_checks,), (by_passes,) = (
        data_of(run_page(run))["rows"] for run in (CHECKS, PASS)
    )
    assert by_checks["texts"]["pass-rate"][::2] == ["0% → 0%", "+0 (-46 to +46)"]
    assert by_passes["texts"]["checks"][::2] == ["0.7/7 → 5.8/7", "+74 (+40 to +86)"]


def test_cases_of_the_page_are_worse_or_without_signal_by_the_score() -> None:
    counts = [(5, 3), (7, 7), (0, 0), (1, 6)]
    by_checks, by_passes = (
        [test["signals"] for test in data_of(run_page(run))["tests"]]
        for run in (checked_run(counts), checked_run(counts, score="pass"))
    )
    assert by_checks == [["worse with the skill"], ["no signal"], ["no signal"], []]
    assert by_passes == [["no signal"]] * 4


def test_a_failure_shows_the_checks_of_both_arms() -> None:
    records = [record for record in CHECKS.records if record.case == "case-1"]
    lines = failure_text("How?", records).split("\n")
    assert lines[0] == "6 of 7 checks (1 without the skill): criterion 7"
    assert "With the skill: failed, 6 of 7 checks" in lines
    assert "Without it: failed, 1 of 7 checks" in lines
    twice = [*records, *(replace(record, run=2) for record in records)]
    lines = failure_text("How?", twice).split("\n")
    assert lines[0].startswith(
        "0 of 2 runs passed, 6 of 7 checks (1 without the skill): "
    )
    told = (
        "With the skill: 0 of 2 runs passed, 6 of 7 checks. Without it: 0 of 2, 1 of 7"
        " checks."
    )
    assert told in " ".join(" ".join(lines).split())


def test_the_line_of_a_test_shows_checks_where_some_pass() -> None:
    records = [record for record in CHECKS.records if record.case == "case-1"]
    assert "· baseline 0/1 · 1/7 → 6/7 checks ·" in item_numbers(records, UNICODE_MARKS)
    assert "- 1/7 -> 6/7 checks -" in item_numbers(records, ASCII_MARKS)
    all_or_none = checked_run([(0, 7)]).records
    assert "checks" not in item_numbers(all_or_none, UNICODE_MARKS)


# The history.


def test_the_history_keeps_both_scores(tmp_path: Path) -> None:
    (entry,) = kept_rows(CHECKS, tmp_path)
    assert entry.row.score == "checks"
    assert entry.row.rate_lift == 0
    assert (entry.row.score_lift, entry.row.lift) == pytest.approx((31 / 42, 31 / 42))
    text = "\n".join(history_lines([entry], TerminalLook(160), STARTED))
    assert text.endswith(f" of the {OF_CHECKS}")
    header, _, line = text.splitlines()[:3]
    cells = dict(
        zip(header.split(), line.replace("just now", "now").split(), strict=False)
    )
    assert (cells["with"], cells["lift"], cells["passed"]) == ("83%", "+74", "0%")
    assert row_data(entry)["skill_score"] == pytest.approx(35 / 42)
    named = metrics()
    assert named["checks"].amount(entry.row) == pytest.approx(35 / 42)
    assert named["pass-rate"].amount(entry.row) == 0
    assert named["lift"].amount(entry.row) == pytest.approx(31 / 42)


def test_runs_of_both_scores_are_told_apart(tmp_path: Path) -> None:
    both = [*kept_rows(CHECKS, tmp_path), made_entry(1, made_row(0.5), "c0ffee")]
    lines = history_lines(both, TerminalLook(160), NOW)
    assert " +74c " in lines[2]
    assert " +50 " in lines[3]
    assert lines[-1].startswith(f"c of the {OF_CHECKS}, ")
    (bar,) = [
        line for line in plot_lines(both, LIFT, TerminalLook(120), NOW) if "+74" in line
    ]
    assert bar.endswith("(+40 to +86) of checks")
    rows = data_of(trend_page(both, LIFT))["trend"]["rows"]
    lifts = [row["texts"]["lift"] for row in rows]
    assert lifts == [["+74 of checks", "+40 to +86"], ["+50", "+40 to +60"]]


def test_a_kept_run_is_shown_with_its_score() -> None:
    assert any(OF_CHECKS in line for line in run_lines("r", CHECKS, TerminalLook(120)))


def test_two_runs_are_compared_by_checks() -> None:
    before, after = checked_run([(0, 1)] * 6), checked_run([(0, 6)] * 6)
    both = [("a", before), ("b", after)]
    text = "\n".join(
        comparison_lines(both, compare_runs(before, after), TerminalLook(120))
    )
    assert f"gate: the same skill in both, {OF_CHECKS}" in text
    assert re.search(r"6 +14% +86% +\+71 \(\+39 to \+85\) .* better", text)
    assert "  0 of pass rate (-46 to +46)" in text
    assert "6 rose: case-0 (14% → 86%)" in text


def test_the_last_result_of_a_list_is_of_the_score() -> None:
    known = LastResult(
        "m",
        0.0,
        0.0,
        "now",
        edited_since=False,
        score="checks",
        checks=0.83,
        baseline_checks=0.1,
    )
    assert str(known) == "accepted m 83% of checks, 10% without (now)"
    assert str(replace(known, score="pass")) == "accepted m 0%, 0% without (now)"
