"""``pytest-upskill matrix``: a whole study of neighbours with our own agent."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from pytest_upskill.measure.evaluate import Evaluator
from support.documentation import ROOT, shows
from support.kit import case, write_skill
from support.made_studies import MODEL, write_neighbours
from support.pages import page_words
from support.sandboxes import needs_bwrap

# The agent's model uses no tool that needs a sandbox.
QUICK = ["--agent", "loop", "--sandbox", "none", "--runs", "1", "--json", "out.json"]
PAIR = ["matrix", "skills/pdf", "skills/docs-writer"]
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def verdicts() -> dict[str, str]:
    (study,) = json.loads(Path("out.json").read_text(encoding="utf-8"))["studies"]
    return {contrast["name"]: contrast["word"] for contrast in study["contrasts"]}


def test_a_neighbour_that_hurts_is_status_1_and_in_all_reports(
    project: Path, capsys: Output
) -> None:
    write_neighbours(project)
    files = ["--html", "out.html", "--markdown", "out.md"]
    assert main([*PAIR, "--model", MODEL, *QUICK, *files]) == 1
    assert verdicts() == {"pdf with docs-writer": "hurts"}
    page = page_words(Path("out.html").read_text(encoding="utf-8"))
    assert "What skills do to each other" in page
    assert "What skills do to each other" in Path("out.md").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["report", "out.json"]) == 1
    assert capsys.readouterr().out.endswith(
        "upskill: loop/scripted:model.py:answer: 1 pair shown to hurt\n"
    )
    assert "1 pair shown to hurt" in Path("out.md").read_text(encoding="utf-8")


def test_where_nothing_is_shown_the_status_is_0_and_a_skill_named_twice_counts_once(
    project: Path, capsys: Output
) -> None:
    write_neighbours(project, 4)
    words = ["skills/csv", "skills/pdf", "skills/csv"]
    assert main(["matrix", *words, "--model", MODEL, *QUICK, "-v"]) == 0
    arms = "no skill, cases of csv"
    assert arms in capsys.readouterr().out
    assert main(["report", "out.json"]) == 0
    assert arms not in capsys.readouterr().out
    assert main(["report", "out.json", "-v"]) == 0
    assert arms in capsys.readouterr().out
    assert verdicts() == {
        "csv with pdf": "no change shown",
        "pdf with csv": "no change shown",
    }


def test_missing_answers_are_status_1(project: Path) -> None:
    write_neighbours(project, 2)
    model = project / "model.py"
    model.write_text(
        f"{model.read_text()}\n\ndef broken(question):\n    raise OSError('down')\n"
    )
    assert main([*PAIR, "--model", "scripted:model.py:broken", *QUICK]) == 1
    assert verdicts() == {"pdf with docs-writer": "incomplete"}
    assert main(["report", "out.json"]) == 1


def test_an_interrupted_study_is_so_in_its_file(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    write_neighbours(project, 2)
    records, calls = Evaluator.records, list[int]()

    def interrupted(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return records(*args)

    monkeypatch.setattr(Evaluator, "records", interrupted)
    assert main([*PAIR, "--model", MODEL, *QUICK, "--markdown", "out.md"]) == 130
    assert (
        json.loads(Path("out.json").read_text(encoding="utf-8"))["interrupted"]
        == "Ctrl-C"
    )
    assert "## ❌ interrupted: " in Path("out.md").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["report", "out.json"]) == 1
    assert "upskill: interrupted: Ctrl-C\n" in capsys.readouterr().out


def error_of(capsys: Output, *args: Any) -> str:
    assert main(["matrix", *map(str, args), "--model", MODEL, "--sandbox", "none"]) == 2
    return " ".join(capsys.readouterr().err.split())


def test_what_can_not_be_compared_is_a_usage_error(
    project: Path, capsys: Output
) -> None:
    write_neighbours(project, 1)
    assert "at least two skills" in error_of(capsys, "skills/pdf", "skills/pdf")
    assert "--agent chat" in error_of(capsys, "skills", "--agent", "chat")
    write_skill(project / "more/pdf", [case("Fill in form 1.", "portable")])
    assert "same name (pdf)" in error_of(capsys, "skills", "more/pdf")
    for name in ("a", "b"):
        write_skill(project / "bare" / name, [])
    assert "none of these skills has cases" in error_of(capsys, "bare")


@pytest.mark.nightly
@needs_bwrap
def test_the_page_shows_such_a_study(project: Path, capsys: Output) -> None:
    write_neighbours(project)
    words = ["matrix", "skills", "--agent", "loop", "--model", MODEL, "--runs", "3"]
    assert main([*words, "--json", "out.json"]) == 1
    shown = capsys.readouterr().out
    study, end, _ = shown[shown.index("What skills") :].partition("written: out.json\n")
    assert end
    assert shows((ROOT / "docs/studies.md").read_text("utf-8"), study)
    assert verdicts() == {
        "csv with docs-writer": "no change shown",
        "csv with pdf": "no change shown",
        "csv with all others": "no change shown",
        "pdf with csv": "no change shown",
        "pdf with docs-writer": "hurts",
        "pdf with all others": "hurts",
    }
    assert main(words) == 1  # all of it is known
