"""Annotations that a run writes into the log of its job."""

import pytest

from support.kit import case, write_script, write_skill
from support.runs import run_skills

CASES = [case("Open?", "gate up", id="open"), case("Shut?", "gate up", id="shut")]
MODEL = "scripted:a.json"


@pytest.fixture(autouse=True)
def _skill(pytester: pytest.Pytester) -> None:
    folder = write_skill(pytester.path / "skills/gate", CASES)
    text = (folder / "skill_meta.json").read_text()
    (folder / "skill_meta.json").write_text(
        text.replace('{"input": "Shut', '\n\n{"input": "Shut')
    )
    write_script(pytester.path / "a.json")


def test_regressions_failures_and_broken_cases_are_annotations_at_their_lines(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    five = ("--skill-runs", "5")
    run_skills(pytester, MODEL, *five, "--skill-accept", "-k", "open")
    write_script(pytester.path / "a.json", knows="Push it.")
    assert "::error" not in run_skills(pytester, MODEL, *five).screen
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path.parent))
    file = pytester.path / "skills/gate/skill_meta.json"
    broken = '{"id": "odd", "input": "?", "expected": {"contians": ["x"]}}'
    file.write_text(f"{file.read_text().removesuffix(']}')},\n\n\n{broken}]}}")
    run = run_skills(pytester, MODEL, *five, "-n", workers, "--skill-min-lift", "1")
    assert run.status == 1
    heads = {
        line.split("::")[1] for line in run.screen.splitlines() if line.startswith("::")
    }
    where = f"error file={pytester.path.name}/skills/gate/skill_meta.json,line="
    assert heads == {
        f"{where}1,title=skill regression",
        f"{where}3,title=skill failed",
        f"{where}6,title=skill failed",
        "error title=skills",
    }


def test_the_room_is_switched_off_by_its_name(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    failing = (MODEL, "--skill-min-lift", "1", "--skill-confident")
    assert "::error title=skills::" in run_skills(pytester, *failing).screen
    off = run_skills(pytester, *failing, "-p", "no:upskill-annotations")
    assert off.status == 1
    assert "::error" not in off.screen
