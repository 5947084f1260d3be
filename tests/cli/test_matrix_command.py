"""``pytest-upskill matrix``: a whole study of neighbours with our own agent."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from support.kit import case, write_skill
from support.made_studies import MODEL, write_neighbours
from support.sandboxes import needs_bwrap

ARGS = ["matrix", "skills", "--agent", "loop", "--model", MODEL, "--runs", "1..2"]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_neighbours(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def page_text() -> str:
    """What docs/matrix.md shows of such a run."""
    page = (Path(__file__).parents[2] / "docs/matrix.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```text\n(.*?)^```", page, re.S | re.M)
    return str(text)


@needs_bwrap
def test_a_neighbour_that_takes_the_task_over_is_told(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = ["--json", "out.json", "--html", "out.html", "--markdown", "out.md"]
    assert main([*ARGS, *reports]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("This takes ")
    assert (
        shown[shown.index("Neighbours") :] == page_text() + "written: out.json, out.html, out.md\n"
    )
    flat = " ".join(shown.split())
    assert "pdf loses 75 points" in flat
    assert "when docs-writer is installed: it is opened first in 9 of 12." in flat
    (matrix,) = json.loads((project / "out.json").read_text(encoding="utf-8"))["matrix"]
    found = {(one["skill"], one["other"]): one["verdict"] for one in matrix["pairs"]}
    assert found == {
        ("csv", "docs-writer"): "unknown",
        ("csv", "pdf"): "unknown",
        ("csv", None): "unknown",
        ("pdf", "csv"): "unknown",
        ("pdf", "docs-writer"): "hurts",
        ("pdf", None): "hurts",
    }
    assert set(matrix["listing_tokens_seen"]) == {"csv", "docs-writer", "pdf"}
    assert "Neighbours" in (project / "out.html").read_text(encoding="utf-8")
    assert "### Neighbours" in (project / "out.md").read_text(encoding="utf-8")
    assert main(["report", "out.json"]) == 0
    again = " ".join(capsys.readouterr().out.split())
    assert "pdf loses 75 points" in again
    assert main(ARGS) == 1  # all of it is known
    assert "pdf loses 75 points" in " ".join(capsys.readouterr().out.split())


@needs_bwrap
def test_where_nothing_is_shown_the_status_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ARGS[:1], "skills/csv", "skills/pdf", "skills/csv", *ARGS[2:]]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "None of 2 pairs is shown to hurt or to help" in shown
    assert "no change shown" in shown
    assert "no effect" not in shown


@needs_bwrap
def test_missing_answers_are_told_and_status_1(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = project / "model.py"
    model.write_text(f"{model.read_text()}\n\ndef broken(question):\n    raise OSError('down')\n")
    args = ["matrix", "skills", "--model", "scripted:model.py:broken", "--runs", "1"]
    assert main(args) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "Incomplete, as answers are missing" in shown
    assert "None of 6 pairs is shown to hurt or to help, but answers are missing for 6." in shown


def error_of(capsys: pytest.CaptureFixture[str], *args: Any) -> str:
    assert main(["matrix", *map(str, args), "--model", MODEL]) == 2
    shown = capsys.readouterr().err
    assert "Traceback" not in shown
    return " ".join(shown.split())


@needs_bwrap
def test_what_can_not_be_compared_is_a_usage_error(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "a matrix needs at least two skills" in error_of(capsys, "skills/pdf", "skills/pdf")
    assert "--agent chat" in error_of(capsys, "skills", "--agent", "chat")
    write_skill(project / "more/pdf", [case("Fill in form 1.", "portable")])
    assert "has the same name (pdf)" in error_of(capsys, "skills", "more/pdf")
    for name in ("a", "b"):
        write_skill(project / "bare" / name, [])
    assert "none of these skills has cases" in error_of(capsys, "bare")
