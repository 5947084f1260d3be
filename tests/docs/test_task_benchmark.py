"""The benchmark of tasks: what its page says of results, and that a run can go on."""

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def record(
    arm: str, score: float, error: str | None = None, reason: str = ""
) -> dict[str, Any]:
    outcome = "errored" if error else "passed" if score == 1 else "failed"
    checks = [{"passed": not reason, "reason": reason}]
    return {
        "arm": arm,
        "score": score,
        "outcome": outcome,
        "error": error,
        "checks": checks,
    }


def results(*records: dict[str, Any], reason: str = "") -> dict[str, Any]:
    return {"records": records, "outcomes": [{"reason": reason}]}


def test_the_rewards_of_both_arms_are_taken_from_the_results() -> None:
    from tasks import Outcome, with_results

    ran = results(record("baseline", 0.25, reason="2 of 8"), record("skill", 1.0))
    outcome = with_results(Outcome("quay", "crane", "bwrap"), ran, 3.21)
    assert outcome == Outcome("quay", "crane", "bwrap", "", 1.0, 0.25, 3.2)
    assert outcome.passed
    assert outcome.is_sound


def test_a_solution_that_fails_is_told_with_its_reason() -> None:
    from tasks import Outcome, with_results

    task = Outcome("quay", "crane", "bwrap")
    failed = with_results(
        task, results(record("skill", 0.5, reason="reward 0.5:\n no hook")), 1
    )
    assert (failed.passed, failed.oracle, failed.reason) == (
        False,
        0.5,
        "reward 0.5: no hook",
    )
    errored = with_results(
        task, results(record("skill", 0.0, error="no reward.txt")), 1
    )
    assert (errored.oracle, errored.reason) == (None, "no reward.txt")
    skipped = with_results(task, results(reason="no solution"), 1)
    assert (skipped.oracle, skipped.reason) == (None, "no solution")


def test_the_page_counts_each_kind_and_shows_notes_before_reasons() -> None:
    from tasks import Outcome, page

    outcomes = [
        Outcome("quay", "crane", "bwrap", "", 1.0, 0.0, 3.0),
        Outcome("quay", "hook", "bwrap", "it | broke", 0.5, 1.0, 4.0),
        Outcome("quay", "ship", "podman", "not installed: rope", 1.0, 0.0, 60.0),
        Outcome("quay", "tide", "", "needs a GPU"),
        Outcome("quay", "wave", "bwrap"),
    ]
    text = page(outcomes, {"ship": "The rope is long."}, "A small machine.")
    rows = [[cell.strip() for cell in line.split(" | ")] for line in text.splitlines()]
    cells = {row[0].strip("| "): [cell.strip("| ") for cell in row[1:]] for row in rows}
    assert cells["quay"] == ["5", "3", "1", "1", "1", "1", "1 pass"]
    assert cells["crane"] == ["bwrap", "passes", "0", "3", ""]
    assert cells["ship"] == ["an image", "passes", "0", "60", "The rope is long."]
    assert cells["tide"] == ["can't run", "", "", "", "needs a GPU"]
    assert cells["wave"] == ["bwrap", "not run yet", "", "", ""]
    assert "broke" not in text  # what a verifier says is text of the task
    assert "A small machine." in text


def test_a_run_goes_on_with_what_is_known(tmp_path: Path) -> None:
    from tasks import Outcome, keep, known

    file = tmp_path / "build" / "tasks.json"
    assert known(file) == {}
    crane = Outcome("quay", "crane", "bwrap", "", 1.0, 0.0, 3.0)
    keep(file, [crane])
    assert known(file) == {("quay", "crane"): crane}
    assert [path.name for path in file.parent.iterdir()] == ["tasks.json"]


def test_tasks_are_folders_with_a_file_of_either_layout(tmp_path: Path) -> None:
    from tasks import tasks_in

    for name in ("ship/task.md", "crane/task.toml", "notes/README.md"):
        file = tmp_path / name
        file.parent.mkdir()
        file.write_text("", encoding="utf-8")
    assert [task.name for task in tasks_in(tmp_path)] == ["crane", "ship"]


def test_seconds_are_those_of_the_tests() -> None:
    from tasks import seconds_of

    assert (
        seconds_of(
            '<suites><suite><testcase time="1.5"/><testcase time="2"/></suite></suites>'
        )
        == 3.5
    )


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("Dockerfile:7: RUN make -C hull", "RUN in line 7 of its Dockerfile"),
        ("Dockerfile: FROM harbour/tug:3", "its base image"),
        (
            "Dockerfile:3: COPY map.png: no such file",
            "a file that its Dockerfile copies is missing",
        ),
        ("not installed: rope | hook", "not installed: rope \\| hook"),
    ],
)
def test_no_text_of_a_dockerfile_gets_into_the_page(reason: str, shown: str) -> None:
    from tasks import Outcome, page

    text = page([Outcome("quay", "ship", "podman", reason)], {}, "")
    (row,) = [line for line in text.splitlines() if line.startswith("| ship")]
    assert row.removesuffix("|").rstrip().endswith(f"| {shown}")
