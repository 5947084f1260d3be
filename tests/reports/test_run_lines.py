"""Kept runs on the terminal: one, two compared, and the list of them."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pytest_upskill.reports.history_rows import row_data
from pytest_upskill.reports.terminal.layout import ASCII_MARKS, TerminalLook, text_width
from pytest_upskill.reports.terminal.run_lines import comparison_lines, run_lines
from pytest_upskill.reports.terminal.trend import ago, history_lines
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_comparison import compare_runs
from support.made import STARTED, checked_run, kept_rows, made_run

from .test_summary_text import MODELS, THREE, passes


def forgets(case: int, model: str, arm: str, run: int) -> bool:
    """On haiku, the skill is of no use any more in four cases."""
    fell = model == "haiku" and arm == "skill" and 0 < case < 5
    return passes(case, model, arm, run) and not fell


LATER = made_run(models=MODELS, cases=12, runs=3, passes=forgets)


def compared(before: RunResults, after: RunResults, width: int = 80) -> list[str]:
    both = [("aaaaaa", before), ("bbbbbb", after)]
    look = TerminalLook(width)
    return comparison_lines(both, compare_runs(before, after), look)


def test_a_kept_run_has_its_tables_its_failures_and_its_answer() -> None:
    lines = run_lines("20260102T030405Z-aaaaaa", THREE, TerminalLook())
    assert lines[0].startswith("20260102T030405Z-aaaaaa · 2026-01-02 ")
    assert lines[1] == "commit " + "c0ffee" * 6 + "c0ff"
    assert "all models  42 → 83 %   +42  +16 to +67  helps" in lines
    assert '  gate on haiku: case-0: "gate up" is not in the answer' in lines
    assert lines[-4:] == [
        "✔ gate helps: +42 points over 3 models (+16 to +67); unclear alone on opus",
        "✘ 7 of 36 tests failed: 6 fail without the skill, too; 1 fails only with it",
        "Failed:",
        "  7 failed",
    ]


def test_two_runs_have_a_row_for_each_model_and_what_fell() -> None:
    lines = compared(THREE, LATER)
    assert lines[0].startswith("aaaaaa  2026-01-02 ")
    assert lines[3:8] == [
        "gate: the same skill in both",
        "",
        "model   cases  aaaaaa → bbbbbb  lift    interval  tokens",
        "─" * 73,
        "haiku      12  92 → 58 %         -33    -77 to 0     +0%  worse",
    ]
    assert lines[-4] == "haiku:"
    assert lines[-3].startswith("  worse: all together: 21 of 36 runs passed (before: ")
    assert lines[-2].startswith("  4 fell: case-1 (100 → 0 %), case-2 (100 → 0 %)")


def test_runs_that_share_nothing_say_so() -> None:
    lines = compared(THREE, made_run(skills=["door"]))
    assert lines[3].startswith("Nothing to compare: the runs share no tests of ")
    assert any(line.startswith("Only in aaaaaa: gate on haiku") for line in lines)


def test_the_list_of_runs_shows_what_they_share_once(tmp_path: Path) -> None:
    kept = kept_rows(THREE, tmp_path)
    look = TerminalLook(120)
    lines = history_lines(kept, look, STARTED + timedelta(hours=3))
    assert lines[0].split()[:6] == ["run", "when", "commit", "skill", "model", "cases"]
    assert lines[2].split()[1:8] == ["3", "h", "ago", "c0ffeec", "gate", "haiku", "12"]
    assert lines[3].split()[:2] == ["gate", "sonnet"]
    assert lines[4].split()[-3:] == ["0.50", "→", "1.50"]


def test_a_change_of_an_agent_is_told(tmp_path: Path) -> None:
    runs = []
    for number, version in enumerate(("1.2", "1.3")):
        started = STARTED + timedelta(days=number)
        for kept in kept_rows(replace(made_run(), started=started), tmp_path)[:1]:
            row = replace(kept.row, agent="claude", agent_version=version)
            runs.append(replace(kept, row=row))
    lines = history_lines(runs, TerminalLook(), STARTED)
    assert lines[-1].startswith("claude was 1.2 in ")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_lines_fit_the_terminal(width: int, tmp_path: Path) -> None:
    checked = checked_run([(1, 6), (2, 7), (0, 5), (3, 7), (1, 4), (2, 6)])
    look = TerminalLook(width, ASCII_MARKS)
    for lines in (
        run_lines("x" * 200, checked, look)[3:],
        compared(THREE, LATER, max(width, 60)),
        history_lines(kept_rows(THREE, tmp_path), look, STARTED),
    ):
        assert max(map(text_width, lines)) <= max(width, 60)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (5, "just now"),
        (120, "2 min ago"),
        (7200, "2 h ago"),
        (2 * 86_400, "2 d ago"),
        (9 * 86_400, "2026-01-02"),
        (-5, "2026-01-02"),
    ],
)
def test_when_a_run_was(seconds: float, words: str) -> None:
    assert ago(STARTED, STARTED + timedelta(seconds=seconds)) == words


def test_times_are_texts_in_json(tmp_path: Path) -> None:
    data = row_data(kept_rows(THREE, tmp_path)[0])
    assert data["started"] == "2026-01-02T03:04:05+00:00"
    assert data["skill"] == "gate"
    assert data["lift"] == pytest.approx(0.556, abs=0.001)
