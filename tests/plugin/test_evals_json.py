"""evals/evals.json: found without an option."""

import json
from pathlib import Path

import pytest

from support.kit import case, write_script, write_skill
from support.runs import run_skills


@pytest.fixture
def skill(pytester: pytest.Pytester) -> Path:
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "skill_meta.json").unlink()
    (folder / "evals").mkdir()
    # In the form of skill_meta.json, with a check that needs no judge.
    (folder / "evals/evals.json").write_text(
        json.dumps([case("Open?", "gate up", id="open")])
    )
    for name in ("conftest.py", "test_own.py"):  # code that is never run
        (folder / "evals" / name).write_text("raise SystemExit('run')")
    return folder


@pytest.mark.usefixtures("skill")
def test_evals_are_collected_without_skill_meta(pytester: pytest.Pytester) -> None:
    model = write_script(pytester.path / "a.json")
    node = f"skills/gate/evals/evals.json::open[{model}]"
    for args in ([], ["skills"], [node]):
        run = run_skills(pytester, model, "-rA", *args)
        assert run.outcomes == {"passed": 1}
        assert f"PASSED {node}" in run.result.outlines


def test_skill_meta_takes_precedence_unless_evals_are_named(
    pytester: pytest.Pytester, skill: Path
) -> None:
    write_skill(skill, [case("Open?", "gate up", id="of-meta")])
    model = write_script(pytester.path / "a.json")
    named = ["--skill-tests", "skills/gate/evals/evals.json"]
    for args, expected in (([], "of-meta"), (named, "open")):
        run = run_skills(pytester, model, *args)
        assert run.outcomes == {"passed": 1}
        assert {record["case"] for record in run.records} == {expected}


def test_evals_of_a_skill_outside_the_rootdir_are_found(
    pytester: pytest.Pytester, skill: Path, tmp_path: Path
) -> None:
    moved = skill.rename(tmp_path / "gate")
    run = run_skills(pytester, write_script(pytester.path / "a.json"), skill=str(moved))
    assert run.outcomes == {"passed": 1}
