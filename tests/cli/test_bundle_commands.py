"""Commands on a plugin: those that know bundles, and those that say that they don't."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from support.plugins import write_plugin

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return write_plugin(tmp_path / "garden")


def codes(capsys: Output, *paths: str) -> list[tuple[str, str]]:
    main(["lint", "--json", *paths])
    return [
        (finding["file"], finding["code"])
        for finding in json.loads(capsys.readouterr().out)
    ]


def test_lint_looks_at_the_manifest_and_at_cases_of_the_plugin(
    root: Path, capsys: Output
) -> None:
    few = [("garden/skill_meta.json", "few-cases")]
    for paths in (
        ["garden"],
        ["garden/.claude-plugin/plugin.json"],
        ["garden/skill_meta.json"],
    ):
        assert codes(capsys, *paths) == few
    assert codes(capsys) == few
    write_plugin(root, skills=["./gone"])
    assert codes(capsys, "garden")[0] == (
        "garden/.claude-plugin/plugin.json",
        "plugin-skills",
    )
    (root / ".claude-plugin/plugin.json").write_text('{\n "name": 3}')
    assert codes(capsys, "garden")[0] == (
        "garden/.claude-plugin/plugin.json",
        "plugin-invalid",
    )
    (root / "skill_meta.json").unlink()
    assert ("garden/skills/gate/SKILL.md", "no-cases") in codes(capsys, "garden")


def test_list_has_the_plugin_and_its_skills(capsys: Output) -> None:
    assert main(["list", "garden", "--json"]) == 0
    skills: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["skills"]
    assert [
        (skill["name"], skill["members"], len(skill["cases"])) for skill in skills
    ] == [
        ("garden", ["boat", "gate"], 2),
        ("boat", [], 0),
        ("gate", [], 0),
    ]
    assert main(["list", "garden"]) == 0
    assert "2 skills tested as one, 2 cases" in capsys.readouterr().out


def test_init_keeps_cases_of_the_plugin(root: Path) -> None:
    assert main(["init", "garden"]) == 0
    assert not (root / "skills/gate/skill_meta.json").exists()
    (root / "skill_meta.json").unlink()
    assert main(["init", "garden"]) == 0
    assert (root / "skills/gate/skill_meta.json").exists()


@pytest.mark.parametrize("command", ["describe", "refine", "cases", "try", "plan"])
def test_others_ask_for_one_of_its_skills(
    command: str, root: Path, capsys: Output
) -> None:
    (root / "skill_meta.json").unlink()
    model = [] if command in ("try", "plan") else ["--model", "m"]
    assert main([command, "garden", *model]) == 2
    assert "Name one" in capsys.readouterr().err
