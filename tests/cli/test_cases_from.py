"""``cases --from`` writes skill_meta.json from a suite in another form."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from pytest_upskill.skills.suites.reading import read_suites
from support.kit import write_skill

GRADER = "---\ntype: regex\npattern: L1\nflags: i\n---\n"
EVALS = {"evals": [{"id": 1, "prompt": "Where?", "assertions": ["It says L1."]}]}


@pytest.fixture
def skill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A skill with plugin evals, one of them broken."""
    folder = write_skill(tmp_path / "port")
    (folder / "skill_meta.json").unlink()
    for path, text in {
        "late/prompt.md": "---\nmodel: opus\n---\nWhere does she moor?",
        "late/graders/a.md": GRADER,
        "late/make.sh": "true",
        "late/case.yaml": "context: {scaffold_script: make.sh}",
        "soon/case.yaml": "[",
    }.items():
        (folder / "evals" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "evals" / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    return folder


def cases_in(file: Path) -> list[dict[str, Any]]:
    data: dict[str, list[dict[str, Any]]] = json.loads(file.read_text())
    return data["cases"]


@pytest.mark.parametrize("suite", ["port", "port/evals"])
def test_what_is_written_says_the_same(
    skill: Path, suite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = read_suites(skill).cases
    assert main(["cases", "--from", suite]) == 0
    assert cases_in(skill / "skill_meta.json") == [
        {
            "id": "late",
            "input": "Where does she moor?",
            "expected": {"regex": "L1"},
            "scaffold": "evals/late/make.sh",
        }
    ]
    after = read_suites(skill).cases
    assert before
    assert after
    (old,), (new,) = before.cases, after.cases
    assert (old.id, old.input, old.expected, old.setup, old.exact) == (
        *(new.id, new.input, new.expected, new.setup, new.exact),
    )
    printed = capsys.readouterr().out
    assert "with 1 case." in printed
    assert "left out: model" in printed
    assert "soon/case.yaml:1: invalid YAML" in printed


def test_it_overwrites_only_if_told(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = skill / "skill_meta.json"
    file.write_text("mine")
    assert main(["cases", "--from", "port/evals"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert main(["cases", "port", "--from", "port/evals", "--overwrite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cases"] == 1
    assert [case["id"] for case in cases_in(file)] == ["late"]
    # It is in our form already
    assert main(["cases", "--from", str(file), "--overwrite"]) == 2


def test_a_file_elsewhere_can_not_name_files_of_the_skill(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cases", "--from", "port", "--output", "all.json"]) == 2
    assert "name files of port" in capsys.readouterr().err
    (skill / "evals/late/case.yaml").unlink()
    assert main(["cases", "--from", "port", "--output", "all.json"]) == 0
    assert [case["id"] for case in cases_in(Path("all.json"))] == ["late"]


def test_evals_json_and_triggers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = write_skill(tmp_path / "port")
    (skill / "skill_meta.json").unlink()
    (skill / "evals").mkdir()
    queries = [{"query": "Open the gate", "should_trigger": True}]
    (skill / "evals/evals.json").write_text(json.dumps(EVALS | {"triggers": queries}))
    monkeypatch.chdir(tmp_path)
    assert main(["cases", "--from", "port"]) == 0
    data = json.loads((skill / "skill_meta.json").read_text())
    assert [case["input"] for case in data["cases"]] == ["Where?"]
    # And none without a value
    assert {"id", "input", "expected"} == data["cases"][0].keys()
    assert data["triggers"] == queries


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "SKILL"),
        (["--from", "none"], "no such file"),
        (["--from", "empty"], "no cases"),
        (["--from", "port/evals/soon"], "invalid YAML"),
    ],
)
def test_mistakes(
    skill: Path, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (skill.parent / "empty").mkdir()
    assert main(["cases", *arguments]) == 2
    assert problem in capsys.readouterr().err
