"""Runs on several skills as one: plugins, and folders of skills."""

import json

import pytest

from support.kit import commit_all, write_skill
from support.plugins import BOAT, GATE, write_plugin
from support.runs import SkillRun, run_skills


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    """Knows an answer only if the text of the skill is there."""
    rules = [
        {"system": GATE, "question": "gate", "answer": "Type gate up."},
        {"system": BOAT, "question": "boat", "answer": "With a bowline."},
        {"answer": "No idea."},
    ]
    (pytester.path / "answers.json").write_text(json.dumps(rules), encoding="utf-8")
    return "scripted:answers.json"


def nodes(run: SkillRun) -> list[str]:
    return [test["nodeid"] for test in run.report["tests"]]


def test_a_plugin_is_one_thing_under_test(
    pytester: pytest.Pytester, model: str
) -> None:
    write_plugin(pytester.path / "garden")
    run = run_skills(pytester, model, skill="garden")
    assert run.outcomes == {"passed": 2}
    assert (run.summary["skill"], run.summary["lift"]) == ("garden", 1)
    [info] = run.report["skills"]
    assert (info["name"], info["path"], info["members"]) == (
        "garden",
        "garden",
        ["boat", "gate"],
    )
    run.result.stdout.fnmatch_lines(
        [
            "upskill: garden: 2 skills tested as one (boat, gate)",
            "upskill: garden: only claude has its commands and hooks, not chat",
        ]
    )
    again = run_skills(pytester, model, "garden/skill_meta.json::tie-boat", skill="")
    assert again.outcomes == {"passed": 1}
    assert again.summary["skill"] == "garden"


def test_skills_with_cases_of_their_own_are_also_tested_alone(
    pytester: pytest.Pytester, model: str
) -> None:
    root = write_plugin(pytester.path / "garden")
    write_skill(root / "skills/gate")
    run = run_skills(pytester, model, skill="garden")
    assert run.outcomes == {"passed": 3}
    assert {row["skill"] for row in run.report["summary"]} == {"garden", "gate"}


def test_a_folder_is_a_bundle_if_the_ini_file_says_so(
    pytester: pytest.Pytester, model: str
) -> None:
    write_plugin(pytester.path / "team")
    (pytester.path / "team/.claude-plugin/plugin.json").unlink()
    run = run_skills(pytester, model, skill="team")
    assert run.status == 4
    pytester.makeini("[pytest]\nskill_bundle = true\n")
    run = run_skills(pytester, model, skill="team")
    assert run.outcomes == {"passed": 2}
    assert run.summary["skill"] == "team"
    again = run_skills(pytester, model, "team/skill_meta.json::tie-boat", skill="")
    assert again.outcomes == {"passed": 1}
    (pytester.path / "team/skill_meta.json").rename(pytester.path / "cases.json")
    tests = ("--skill-tests", "cases.json")
    assert run_skills(pytester, model, *tests, skill="team").outcomes == {"passed": 2}
    picked = run_skills(pytester, model, *tests, "team::tie-boat", skill="")
    assert picked.outcomes == {"passed": 1}


def test_queries_are_about_any_of_its_skills(pytester: pytest.Pytester) -> None:
    root = write_plugin(pytester.path / "garden", cases=())
    queries = [{"query": "Open it.", "should_trigger": True}]
    (root / "evals").mkdir()
    (root / "evals/triggers.json").write_text(json.dumps(queries), encoding="utf-8")
    rules = [{"calls": [{"tool": "skill", "arguments": {"name": "boat"}}]}]
    (pytester.path / "answers.json").write_text(json.dumps(rules), encoding="utf-8")
    run = run_skills(pytester, "scripted:answers.json", skill="garden")
    assert run.outcomes == {"passed": 1}
    assert run.records[0]["activity"]["opened"] == ["boat"]


def test_results_are_accepted_beside_the_plugin(
    pytester: pytest.Pytester, model: str
) -> None:
    root = write_plugin(pytester.path / "garden")
    assert run_skills(pytester, model, "--skill-accept", skill="garden").status == 0
    assert (root / "skill_results.json").exists()
    (root / "skills/boat/SKILL.md").write_text(
        "---\nname: boat\ndescription: d\n---\nNothing.\n"
    )
    run = run_skills(pytester, model, skill="garden")
    assert run.outcomes == {"passed": 1, "failed": 1}


def test_it_is_compared_with_itself_at_a_ref(
    pytester: pytest.Pytester, model: str
) -> None:
    root = write_plugin(pytester.path / "garden")
    (root / "skills/boat/SKILL.md").write_text(
        "---\nname: boat\ndescription: d\n---\nNothing.\n"
    )
    commit_all(pytester.path)
    write_plugin(root)
    run = run_skills(pytester, model, "--skill-against", "main", skill="garden")
    rates = {name: arm["rate"] for name, arm in run.summary["arms"].items()}
    assert (rates["previous"], rates["skill"]) == (0.5, 1)


def test_a_broken_manifest_is_one_message(
    pytester: pytest.Pytester, model: str
) -> None:
    root = write_plugin(pytester.path / "garden")
    (root / ".claude-plugin/plugin.json").write_text('{\n "name": "garden",\n}')
    run = run_skills(pytester, model, skill="garden")
    assert run.status == 4
    run.result.stderr.fnmatch_lines(
        ["ERROR: *garden/.claude-plugin/plugin.json:3:1: invalid JSON*"]
    )


def test_a_plugin_without_skills_needs_an_agent_that_takes_it(
    pytester: pytest.Pytester, model: str
) -> None:
    root = write_plugin(pytester.path / "garden")
    for name in ("gate", "boat"):
        (root / f"skills/{name}/SKILL.md").unlink()
    run = run_skills(pytester, model, skill="garden")
    assert run.outcomes == {"errors": 1}
    assert "--skill-agent claude" in run.screen


def test_code_of_a_plugin_elsewhere_is_not_run(
    pytester: pytest.Pytester, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_plugin(pytester.path / "elsewhere/garden")
    (root / "conftest.py").write_text("raise SystemExit('run')")
    (root / "test_it.py").write_text("raise SystemExit('run')")
    here = pytester.mkdir("here")
    (here / "answers.json").write_bytes((pytester.path / "answers.json").read_bytes())
    monkeypatch.chdir(here)
    run = run_skills(pytester, model, skill="../elsewhere/garden")
    assert run.outcomes == {"passed": 2}
