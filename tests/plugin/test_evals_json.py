"""evals/evals.json: found without an option."""

import json
from pathlib import Path

import pytest

from support.kit import case, write_script, write_skill


@pytest.fixture
def skill(pytester: pytest.Pytester) -> Path:
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "skill_meta.json").unlink()
    (folder / "evals").mkdir()
    # In the form of skill_meta.json, with a check that needs no judge.
    (folder / "evals/evals.json").write_text(json.dumps([case("Open?", "gate up", id="open")]))
    return folder


@pytest.mark.usefixtures("skill")
@pytest.mark.parametrize("paths", [["--skill", "skills"], ["--skill", "skills/gate", "skills"]])
def test_evals_are_collected_without_skill_meta(
    pytester: pytest.Pytester, paths: list[str], workers: str
) -> None:
    model = write_script(pytester.path / "a.json")
    result = pytester.runpytest_inprocess(*paths, "--model", model, "-rA", "-n", workers)
    result.assert_outcomes(passed=1)
    node = f"skills/gate/evals/evals.json::open[{model}]"
    assert f"PASSED {node}" in result.outlines
    named = pytester.runpytest_inprocess(*paths[:2], node, "--model", model, "-n", workers)
    named.assert_outcomes(passed=1)


def test_skill_meta_takes_precedence_over_evals(pytester: pytest.Pytester, skill: Path) -> None:
    write_skill(skill, [case("Open?", "gate up", id="of-meta")])
    model = write_script(pytester.path / "a.json")
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model, "-rA")
    result.assert_outcomes(passed=1)
    assert f"PASSED skills/gate/skill_meta.json::of-meta[{model}]" in result.outlines


def test_skill_tests_accepts_evals(pytester: pytest.Pytester, skill: Path) -> None:
    write_skill(skill)
    model = write_script(pytester.path / "a.json")
    args = ["--skill", "skills", "--model", model, "-rA"]
    result = pytester.runpytest_inprocess(*args, "--skill-tests", "skills/gate/evals/evals.json")
    result.assert_outcomes(passed=1)
    assert f"PASSED skills/gate/evals/evals.json::open[{model}]" in result.outlines


def test_code_in_the_evals_folder_is_not_run(pytester: pytest.Pytester, skill: Path) -> None:
    (skill / "evals/conftest.py").write_text("raise SystemExit('run')")
    (skill / "evals/test_own.py").write_text("raise SystemExit('run')")
    model = write_script(pytester.path / "a.json")
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model)
    result.assert_outcomes(passed=1)


def test_evals_of_a_skill_outside_the_rootdir_are_found(
    pytester: pytest.Pytester, skill: Path, tmp_path: Path
) -> None:
    moved = skill.rename(tmp_path / "gate")
    (moved / "evals/conftest.py").write_text("raise SystemExit('run')")
    model = write_script(pytester.path / "a.json")
    result = pytester.runpytest_inprocess("--skill", str(moved), "--model", model)
    result.assert_outcomes(passed=1)


def test_evals_are_not_part_of_the_skills_digest(pytester: pytest.Pytester, skill: Path) -> None:
    digests = []
    model = write_script(pytester.path / "a.json")
    for text in ("Open?", "Open it?"):
        (skill / "evals/evals.json").write_text(json.dumps([case(text, "gate up")]))
        args = ["--skill", "skills", "--model", model, "--skill-json", "r.json"]
        pytester.runpytest_inprocess(*args).assert_outcomes(passed=1)
        digests.append(json.loads((pytester.path / "r.json").read_text())["skills"][0]["digest"])
    assert digests[0] == digests[1]
