"""Folders of upskill's runs become entries of the history."""

from datetime import datetime
from pathlib import Path

import pytest

from pytest_upskill.errors import ResultsError
from pytest_upskill.results.history import keep
from pytest_upskill.results.summary_row import SummaryRow
from pytest_upskill.results.upskill_runs import UpskillFolder, all_runs, upskill_runs
from support.made import made_run
from support.upskill_logs import logged, write_batch

NAME = "2026_01_21_15_30"
PAIR = [logged(1, 1, arm="baseline", tokens=800), logged(2, 3)]


def rows(folder: Path) -> list[SummaryRow]:
    (run,) = upskill_runs(folder)
    return list(run.head.summary)


@pytest.mark.parametrize("summary", [True, False])
def test_a_skill_with_and_without(tmp_path: Path, summary: bool) -> None:
    write_batch(tmp_path, NAME, PAIR, summary=summary)
    (row,) = rows(tmp_path)
    assert (row.skill, row.model, row.cases, row.runs) == ("gate", "haiku", 4, 1)
    assert (row.baseline_rate, row.skill_rate, row.lift) == (0.25, 0.75, 0.5)
    assert (row.baseline_tokens, row.skill_tokens, row.token_change) == (200, 100, -0.5)
    assert (row.verdict, row.skill_cost, row.lift_low) == (None, None, None)
    (run,) = upskill_runs(tmp_path)
    assert run.head.started == datetime(2026, 1, 21, 15, 30).astimezone()
    assert run.head.seconds == pytest.approx(3.001)


def test_repeats_without_a_baseline_are_averaged_for_each_model(tmp_path: Path) -> None:
    other = [logged(n, 4, model="sonnet") for n in (1, 2)]
    write_batch(tmp_path, NAME, [*(logged(n, n) for n in (1, 2)), *other])
    haiku, sonnet = rows(tmp_path)
    assert (haiku.skill_rate, haiku.runs, haiku.lift) == (0.375, 2, None)
    assert (sonnet.model, sonnet.skill_rate) == ("sonnet", 1)


def test_the_last_attempt_of_generate_counts(tmp_path: Path) -> None:
    better = [logged(3, 2, arm="baseline"), logged(4, 4)]
    write_batch(tmp_path, NAME, [*PAIR, *better])
    (row,) = rows(tmp_path)
    assert (row.baseline_rate, row.skill_rate, row.runs) == (0.5, 1, 1)


def test_what_upskill_does_not_know_is_not_known(tmp_path: Path) -> None:
    write_batch(tmp_path, NAME, [logged(1, 0, total=0, tokens=0, skill=None)])
    (row,) = rows(tmp_path)
    assert (row.skill, row.skill_rate, row.skill_tokens) == ("unknown", None, None)


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("batch_summary.json", '{"results": [{}]}', "results.0.metadata: Field required"),
        ("batch_summary.json", "{", "Invalid JSON"),
        ("batch_summary.json", "[" * 100_000, "Invalid JSON"),
        ("run_1/run_result.json", "\udcff", "Invalid JSON"),
        ("run_1/run_result.json", '{"metadata": {"model": 1}}', "metadata.model"),
        ("run_1/run_metadata.json", "{}", "no results: the run did not finish"),
    ],
)
def test_a_damaged_run_is_told(tmp_path: Path, file: str, text: str, told: str) -> None:
    path = tmp_path / NAME / file
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ResultsError) as caught:
        rows(tmp_path)
    assert told in caught.value.problem
    assert NAME in caught.value.where


def test_other_folders_and_files_are_left_alone(tmp_path: Path) -> None:
    for name in ("skills", "2026_13_41_25_61", "20260121T153000Z-abcdef", "2026_01_21"):
        write_batch(tmp_path, name, PAIR)
    (tmp_path / NAME).write_text("a file")
    assert upskill_runs(tmp_path) == all_runs(tmp_path) == []
    assert upskill_runs(tmp_path / "gone") == []


def test_a_folder_may_have_runs_of_both_kinds(tmp_path: Path) -> None:
    kept = made_run(started=datetime(2026, 1, 22).astimezone())
    keep(kept, tmp_path, 10**9)
    write_batch(tmp_path, NAME, PAIR)
    write_batch(tmp_path, "2026_01_23_00_00", PAIR)
    found = all_runs(tmp_path)
    assert [isinstance(run, UpskillFolder) for run in found] == [True, False, True]
    assert [run.id for run in found[::2]] == ["2026_01_23_00_00", NAME]
    assert all(run.head.summary for run in found)
