"""``pytest-upskill ablate``: which parts of a skill earn their tokens."""

import json
import re
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.skills.skill import load_skill
from support.kit import case, write_skill
from support.made_studies import BODY, MODEL, write_pages
from support.sandboxes import needs_bwrap

ARGS = ["ablate", "skills/pages", "--model", MODEL, "--runs", "1", "--margin", "0.2"]
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_pages(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_section_that_counts_and_others_that_do_not(project: Path, capsys: Output) -> None:
    reports = ["--json", "out.json", "--html", "out.html", "--markdown", "out.md"]
    assert main([*ARGS, *reports]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.split("\n"))) <= 80
    assert "Alignment (8 tokens): -100 (-100 to -" in flat(shown)
    assert re.search(
        r"Troubleshooting \(\d+ tokens\): no loss shown \(-\d+ to \+\d+\)", flat(shown)
    )
    assert "Could go (each by itself): Troubleshooting," in flat(shown)
    assert "references/forms.md was not left out: a plain completion" in flat(shown)
    (parts,) = json.loads((project / "out.json").read_text())["parts"]
    assert {one["name"]: (one["standing"], one["could_go"]) for one in parts["parts"]} == {
        "Pages": ("no loss shown", True),
        "Alignment": ("loses", False),
        "Troubleshooting": ("no loss shown", True),
        "Links": ("no loss shown", True),
    }
    assert "<h2>Parts</h2>" in (project / "out.html").read_text()
    assert "### Parts of pages" in (project / "out.md").read_text()
    assert main(["report", "out.json"]) == 0
    assert "Alignment (8 tokens): -100" in flat(capsys.readouterr().out)
    assert sorted(path.name for path in (project / "skills").iterdir()) == ["pages"]


def test_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    write_pages(tmp_path / "page", 72)
    monkeypatch.chdir(tmp_path / "page")
    assert main([*ARGS[:4], "--runs", "1"]) == 0
    shown = capsys.readouterr().out
    page = (Path(__file__).parents[2] / "docs/parts.md").read_text(encoding="utf-8")
    assert f"```text\n{shown[shown.index('Parts') :]}```" in page


def test_references_in_context_are_parts(capsys: Output) -> None:
    assert main([*ARGS, "--references"]) == 0
    assert re.search(
        r"references/forms\.md \(\d\d tokens\): no loss", flat(capsys.readouterr().out)
    )


def test_paragraphs(capsys: Output) -> None:
    assert main([*ARGS, "--by", "paragraph"]) == 0
    shown = flat(capsys.readouterr().out)
    assert "Turn it LEFT. (8 tokens): -100" in shown
    assert "If the printer stops, switch it off and on again: (" in shown


def test_few_cases_say_how_many_it_takes(project: Path, capsys: Output) -> None:
    write_skill(project / "skills/few", [case(f"Page {n}?", "left") for n in range(8)], body=BODY)
    assert main(["ablate", "skills/few", "--model", MODEL, "--runs", "1"]) == 0
    shown = flat(capsys.readouterr().out)
    assert "8 cases may show that a part is missed, but not that one could go" in shown
    assert "Alignment (8 tokens): -100" in shown
    assert "Could go" not in shown
    assert "Nothing is shown to be free to go" in shown
    assert main(["ablate", "skills/few", "--model", MODEL, "--apply"]) == 2
    problem = flat(capsys.readouterr().err)
    assert re.search(
        r"too few cases to rule out a loss of 10 points: it takes \d\d to choose", problem
    )
    assert not (project / "skills/few-short").exists()


def test_apply_writes_a_shorter_skill_that_loses_nothing(project: Path, capsys: Output) -> None:
    before = {path: path.read_bytes() for path in (project / "skills").rglob("*") if path.is_file()}
    assert main([*ARGS, "--apply", "--json", "out.json"]) == 0
    shown = flat(capsys.readouterr().out)
    assert "on 18 held-out cases: no loss shown (-" in shown
    assert shown.index("Written to skills/pages-short: a loss of 20 points or more is ruled out")
    short = load_skill(project / "skills/pages-short/SKILL.md")
    assert short.body == "## Alignment\n\nTurn it LEFT."
    assert short.name == "pages-short"
    assert not [fault for fault in short.warnings if fault.level == "error"]
    assert {path: path.read_bytes() for path in before} == before
    (parts,) = json.loads((project / "out.json").read_text())["parts"]
    (version,) = parts["versions"]
    assert version["folder"] == "skills/pages-short"
    assert version["cases"] == 18
    # The next one goes beside it.
    assert main([*ARGS, "--apply"]) == 0
    assert (project / "skills/pages-short-2/SKILL.md").is_file()


def test_held_out_cases_are_not_seen_by_the_choice(project: Path, capsys: Output) -> None:
    """A section that only held-out cases need seems to be free to go, and is found to be missed."""
    learn = [case(f"Page {n}?", "left", id=f"l{n}", tags=["learn"]) for n in range(30)]
    held = [case(f"Deck {n}?", "blue", id=f"h{n}", tags=["holdout"]) for n in range(30)]
    body = f"{BODY}\n## Decks\n\nDecks are BLUE.\n"
    write_skill(project / "skills/decks", [*learn, *held], body=body)
    (project / "model.py").write_text(
        "def answer(question):\n"
        "    word = 'blue' if 'Deck' in question.messages[-1][1] else 'left'\n"
        "    return word if word.upper() in question.system else 'no idea'\n"
    )
    args = ["ablate", "skills/decks", "--model", MODEL, "--runs", "1", "--margin", "0.2"]
    assert main([*args, "--apply"]) == 1
    shown = flat(capsys.readouterr().out)
    assert "Decks (" in shown
    assert "on 30 held-out cases: loses 100 points" in shown
    assert "Not written: a loss is shown" in shown
    assert not (project / "skills/decks-short").exists()


def test_too_few_held_out_cases_do_not_prove_anything(project: Path, capsys: Output) -> None:
    learn = [case(f"Page {n}?", "left", id=f"l{n}", tags=["learn"]) for n in range(30)]
    held = [case(f"Sheet {n}?", "left", id=f"h{n}", tags=["holdout"]) for n in range(5)]
    write_skill(project / "skills/few", [*learn, *held], body=BODY)
    args = ["ablate", "skills/few", "--model", MODEL, "--runs", "1", "--margin", "0.2"]
    assert main([*args, "--apply"]) == 1
    shown = flat(capsys.readouterr().out)
    assert "5 held-out cases can't show that nothing is lost: that takes 17" in shown
    assert "on 5 held-out cases: not known (-" in shown
    assert "about 17 cases would tell" in shown
    assert "Written to skills/few-short, but it is not shown that nothing is lost" in shown


def test_an_outage_is_incomplete_and_nothing_is_written(project: Path, capsys: Output) -> None:
    model = (project / "model.py").read_text()
    (project / "model.py").write_text(
        model.replace(
            "    tokens = ",
            "    if 'LEFT' in text and 'printer' not in text:\n"
            "        raise ConnectionError('down')\n    tokens = ",
        )
    )
    assert main([*ARGS, "--apply"]) == 1
    shown = flat(capsys.readouterr().out)
    assert re.search(r"Troubleshooting \(\d+ tokens\): incomplete, as answers are missing", shown)
    assert "Nothing was written, as answers are missing" in shown
    assert not (project / "skills/pages-short").exists()


@needs_bwrap
def test_an_agent_gets_each_file_left_out(capsys: Output) -> None:
    assert main([*ARGS, "--agent", "loop"]) == 0
    shown = flat(capsys.readouterr().out)
    assert re.search(r"Alignment \(\d tokens\): -100", shown)
    assert "references/forms.md (52 tokens): no loss shown" in shown
    assert "52 tokens of files beside it" in shown


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--margin", "2"], "'2' is not between 0 and 1"),
        (["--by", "words"], "invalid choice: 'words'"),
    ],
)
def test_wrong_arguments(args: list[str], message: str, capsys: Output) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*ARGS, *args])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_a_folder_of_skills_is_refused(project: Path, capsys: Output) -> None:
    write_skill(project / "skills/other", [case("Page?", "left")])
    assert main(["ablate", "skills", "--model", MODEL]) == 2
    assert "2 skills, and parts are of one" in capsys.readouterr().err
