"""``pytest-upskill ablate``: which parts of a skill earn their tokens."""

import json
import re
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.features.ablate.plans import SHORTER, WHOLE
from pytest_upskill.results.contrasts import Contrast, Study
from pytest_upskill.results.run_file import read_run
from pytest_upskill.skills.skill import load_skill
from support.documentation import ROOT, shows
from support.kit import case, write_skill
from support.made_studies import BODY, MODEL, write_pages
from support.pages import page_words
from support.plugins import BOAT, GATE, write_plugin

OPTIONS = ["--model", MODEL, "--runs", "1", "--margin", "0.2", "--json", "out.json"]
ARGS = ["ablate", "skills/pages", *OPTIONS]
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_pages(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def flat(text: str) -> str:
    return " ".join(text.split())


def results() -> Study:
    return read_run(Path("out.json")).studies[0]


def words() -> dict[str, str]:
    """Of each part, what leaving it out does."""
    contrasts = results().contrasts
    return {
        c.name.removeprefix("without "): c.word for c in contrasts if c.name != WHOLE
    }


def shorter() -> tuple[Contrast, str]:
    """What the shorter skill loses, and what is said at last."""
    study = read_run(Path("out.json")).studies[1]
    return study.contrast(SHORTER), "\n".join(study.conclusions)


def test_of_a_plugin_each_skill_is_left_out(project: Path, capsys: Output) -> None:
    rules = [{"system": GATE, "answer": "Type gate up."}, {"answer": "No idea."}]
    Path("answers.json").write_text(json.dumps(rules), encoding="utf-8")
    cases = [case(f"How do I open gate {number}?", "gate up") for number in range(60)]
    write_plugin(project / "garden", cases=cases)
    args = ["ablate", "garden", "--model", "scripted:answers.json", *OPTIONS[2:]]
    assert main(args) == 0
    study = results()
    assert {each.name: each.word for each in study.contrasts} == {
        "all skills": "helps",
        "without boat": "no loss shown",
        "without gate": "hurts",
    }
    assert "Could go: boat" in study.conclusions[-1]
    assert main([*args, "--apply"]) == 2
    assert "--apply" in capsys.readouterr().err


def test_a_plugin_without_cases_is_studied_on_those_of_its_skills(
    project: Path,
) -> None:
    rules = [{"system": GATE, "answer": "Type gate up."}, {"answer": "No idea."}]
    Path("answers.json").write_text(json.dumps(rules), encoding="utf-8")
    root = write_plugin(project / "garden", cases=())
    for name in ("gate", "boat"):
        body = {"gate": GATE, "boat": BOAT}[name]
        write_skill(
            root / "skills" / name, [case("How?", "gate up", id="a")], body=body
        )
    assert (
        main(["ablate", "garden", "--model", "scripted:answers.json", *OPTIONS[2:]])
        == 0
    )
    # Both ask the same
    assert [each.cases for each in results().contrasts] == [1, 1, 1]


def test_a_section_that_counts_and_others_that_do_not(
    project: Path, capsys: Output
) -> None:
    assert main([*ARGS, "--html", "out.html", "--markdown", "out.md"]) == 0
    assert max(map(len, capsys.readouterr().out.split("\n"))) <= 80
    assert words() == {
        "Pages": "no loss shown",
        "Alignment": "hurts",
        "Troubleshooting": "no loss shown",
        "Links": "no loss shown",
    }
    last = results().conclusions[-1]
    names = re.findall(r"(\w+) \(\d+ tokens\)", last)
    assert last.startswith("Could go (each by itself): ")
    assert names == ["Troubleshooting", "Pages", "Links"]
    assert "Alignment" in page_words(Path("out.html").read_text("utf-8"))
    assert "Alignment" in Path("out.md").read_text()
    assert main(["report", "out.json"]) == 0
    assert "Alignment" in capsys.readouterr().out
    assert sorted(path.name for path in (project / "skills").iterdir()) == ["pages"]


@pytest.mark.nightly
def test_the_page_shows_such_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    write_pages(tmp_path / "page", 72)
    monkeypatch.chdir(tmp_path / "page")
    assert main(["ablate", "skills/pages", "--model", MODEL, "--runs", "1"]) == 0
    shown = capsys.readouterr().out
    assert shows(
        (ROOT / "docs/studies.md").read_text("utf-8"), shown[shown.index("Parts of") :]
    )


def test_references_in_context_are_parts() -> None:
    assert main([*ARGS, "--references"]) == 0
    assert words()["references/forms.md"] == "no loss shown"


def test_paragraphs() -> None:
    assert main([*ARGS, "--by", "paragraph"]) == 0
    found = words()
    assert found["Turn it LEFT."] == "hurts"
    assert "If the printer stops, switch it off and on again:" in found


def test_few_cases_can_not_show_that_a_part_could_go(
    project: Path, capsys: Output
) -> None:
    write_skill(
        project / "skills/few",
        [case(f"Page {n}?", "left") for n in range(8)],
        body=BODY,
    )
    args = ["ablate", "skills/few", "--model", MODEL, "--runs", "1"]
    assert main([*args, "--json", "out.json"]) == 0
    assert words()["Alignment"] == "hurts"
    assert "no loss shown" not in words().values()
    assert "missed, but not that one could go: that takes 49," in flat(
        capsys.readouterr().out
    )
    assert main([*args, "--apply"]) == 2
    assert "too few cases to rule out a loss of 10 points" in flat(
        capsys.readouterr().err
    )
    assert not (project / "skills/few-short").exists()


def test_apply_writes_a_shorter_skill_that_loses_nothing(project: Path) -> None:
    before = {
        path: path.read_bytes()
        for path in (project / "skills").rglob("*")
        if path.is_file()
    }
    assert main([*ARGS, "--apply"]) == 0
    short = load_skill(project / "skills/pages-short/SKILL.md")
    assert short.body == "## Alignment\n\nTurn it LEFT."
    assert short.name == "pages-short"
    assert not [fault for fault in short.warnings if fault.level == "error"]
    assert {path: path.read_bytes() for path in before} == before
    contrast, said = shorter()
    assert (contrast.cases, contrast.word) == (18, "no loss shown")
    assert said.startswith(
        "Without Troubleshooting, Pages, Links, on 18 held-out cases: no loss"
    )
    assert said.endswith(
        "Written to skills/pages-short: a loss of 20 points or more is ruled out"
    )
    # The next one goes beside it.
    assert main([*ARGS, "--apply"]) == 0
    assert (project / "skills/pages-short-2/SKILL.md").is_file()


def test_held_out_cases_are_not_seen_by_the_choice(project: Path) -> None:
    """A section that only held-out cases need seems to be free to go,
    and is found to be missed.
    """
    learn = [case(f"Page {n}?", "left", id=f"l{n}", tags=["learn"]) for n in range(30)]
    held = [case(f"Deck {n}?", "blue", id=f"h{n}", tags=["holdout"]) for n in range(30)]
    body = f"{BODY}\n## Decks\n\nDecks are BLUE.\n"
    write_skill(project / "skills/decks", [*learn, *held], body=body)
    (project / "model.py").write_text(
        "def answer(question):\n"
        "    word = 'blue' if 'Deck' in question.messages[-1][1] else 'left'\n"
        "    return word if word.upper() in question.system else 'no idea'\n"
    )
    assert main(["ablate", "skills/decks", *OPTIONS, "--apply"]) == 1
    contrast, said = shorter()
    assert (contrast.cases, contrast.word) == (30, "hurts")
    assert re.search("^Without .*Decks.*: loses 100 points", said)
    assert said.endswith("Not written: a loss is shown, if not of one part alone")
    assert not (project / "skills/decks-short").exists()


def test_too_few_held_out_cases_do_not_prove_anything(
    project: Path, capsys: Output
) -> None:
    learn = [case(f"Page {n}?", "left", id=f"l{n}", tags=["learn"]) for n in range(30)]
    held = [case(f"Sheet {n}?", "left", id=f"h{n}", tags=["holdout"]) for n in range(5)]
    write_skill(project / "skills/few", [*learn, *held], body=BODY)
    assert main(["ablate", "skills/few", *OPTIONS, "--apply"]) == 1
    assert "5 held-out cases can't show that nothing is lost" in flat(
        capsys.readouterr().out
    )
    contrast, said = shorter()
    assert (contrast.cases, contrast.word) == (5, "not known")
    assert said.endswith(
        "Written to skills/few-short, but it is not shown that nothing is lost"
    )


def test_an_outage_is_incomplete_and_nothing_is_written(project: Path) -> None:
    model = (project / "model.py").read_text()
    (project / "model.py").write_text(
        model.replace(
            "    tokens = ",
            "    if 'LEFT' in text and 'printer' not in text:\n"
            "        raise ConnectionError('down')\n    tokens = ",
        )
    )
    assert main([*ARGS, "--apply"]) == 1
    assert words()["Troubleshooting"] == "incomplete"
    assert results().conclusions[-1] == "Nothing was written, as answers are missing"
    assert len(read_run(Path("out.json")).studies) == 1
    assert not (project / "skills/pages-short").exists()


def test_an_agent_gets_each_file_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pages(tmp_path / "agent", 8)
    monkeypatch.chdir(tmp_path / "agent")
    assert main([*ARGS, "--agent", "loop", "--sandbox", "none"]) == 0
    found = words()
    assert found["Alignment"] == "hurts"
    assert found["references/forms.md"] != "hurts"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--margin", "2"], "'2' is not a number between 0 and 1"),
        (["--by", "words"], "invalid choice: 'words'"),
    ],
)
def test_wrong_arguments(args: list[str], message: str, capsys: Output) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*ARGS, *args])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_of_a_folder_of_skills_each_is_left_out(project: Path) -> None:
    write_skill(project / "skills/other", [case("Page?", "left")])
    assert main(["ablate", "skills", *OPTIONS]) == 0
    names = [contrast.name for contrast in results().contrasts]
    assert sorted(names) == ["all skills", "without other", "without pages"]
