"""Eval files that nobody reads are named, with the reason."""

import json
from pathlib import Path

import pytest

from pytest_upskill.skills.suites.reading import read_suites
from support.hook_runs import run
from support.kit import write_skill
from support.usage import usage_error

EVAL = {"id": "a", "prompt": "Open?", "expected_output": "Says gate up."}


@pytest.fixture
def skill(pytester: pytest.Pytester) -> Path:
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "evals").mkdir()
    return folder


def unread(skill: Path) -> dict[str, str]:
    entries = read_suites(skill).unread
    return {entry.file.relative_to(skill).as_posix(): entry.reason for entry in entries}


def test_a_file_of_an_unknown_form_is_named(skill: Path) -> None:
    for name in ("evals/suite.yaml", "evals/cases.jsonl", "eval.yml", "eval_set.json"):
        (skill / name).write_text("{}")
    reasons = dict.fromkeys(
        ["evals/cases.jsonl", "evals/suite.yaml", "eval_set.json", "eval.yml"]
    )
    assert unread(skill) == dict.fromkeys(reasons, "no known form")


def test_a_file_beside_the_one_that_has_the_cases_is_named(skill: Path) -> None:
    (skill / "evals/evals.json").write_text(json.dumps([EVAL]))
    (skill / "evals/more.json").write_text(json.dumps([EVAL]))
    names = ("evals/evals.json", "evals/more.json")
    assert unread(skill) == dict.fromkeys(names, "skill_meta.json has the cases")


def test_a_broken_file_is_named_with_its_mistake(skill: Path) -> None:
    (skill / "evals/more.json").write_text("[1,")
    assert unread(skill) == {"evals/more.json": "invalid JSON: expecting value"}


def test_routes_are_for_another_command(skill: Path) -> None:
    routes = [{"query": "Open up", "expected_skill": "gate"}]
    (skill / "evals/routes.json").write_text(json.dumps(routes))
    assert unread(skill) == {"evals/routes.json": "for pytest-upskill route"}


def test_queries_have_to_be_in_evals(skill: Path) -> None:
    queries = [{"query": "Open up", "should_trigger": True}]
    (skill / "eval_queries.json").write_text(json.dumps(queries))
    assert unread(skill) == {"eval_queries.json": "queries are read in evals/"}


def test_what_is_read_or_is_no_suite_is_not_named(skill: Path) -> None:
    case = {
        "input": "Sum up",
        "expected": {"files": {"a.json": {"equals_file": "evals/a.json"}}},
    }
    (skill / "skill_meta.json").write_text(json.dumps([case]))
    query = {"query": "Open up", "should_trigger": True}
    for name in ("triggers", "eval_queries", "activation"):
        (skill / f"evals/{name}.json").write_text(
            json.dumps([{**query, "query": name}])
        )
    for name in ("a.json", "results.json", "config.yml", "answers.jsonl"):
        (skill / "evals" / name).write_text("{}")
    assert unread(skill) == {}
    assert len(read_suites(skill).all_triggers) == 3


def test_files_of_evals_by_other_names_are_one_suite(skill: Path) -> None:
    (skill / "skill_meta.json").unlink()
    for name in ("basic.json", "more.json", "results.json"):
        (skill / "evals" / name).write_text(json.dumps([EVAL]))
    suites = read_suites(skill)
    assert suites.cases
    assert [case.id for case in suites.cases.cases] == ["a", "a-2"]
    assert suites.path == skill / "evals"
    assert unread(skill) == {"evals/results.json": "looks like results"}


def test_the_header_names_a_few_of_them(pytester: pytest.Pytester, skill: Path) -> None:
    for number in range(5):
        (skill / f"evals/{number}.yaml").write_text("{}")
    args = ("--collect-only", "--model", "scripted:x.py")
    shown = " ".join(run(pytester, *args).stdout.str().split())
    assert "upskill: not read: skills/gate/evals/0.yaml (no known form)," in shown
    assert "2.yaml (no known form) and 2 more" in shown
    assert "4.yaml (no known form)" in " ".join(
        run(pytester, *args, "-v").stdout.str().split()
    )


def test_a_skill_without_cases_has_them_in_its_error(
    pytester: pytest.Pytester, skill: Path
) -> None:
    (skill / "skill_meta.json").unlink()
    (skill / "evals/suite.yaml").write_text("{}")
    shown = run(pytester).stderr.str()
    assert "Not read: skills/gate/evals/suite.yaml (no known form)" in shown


def test_a_plugin_without_cases_has_them_in_its_error(
    pytester: pytest.Pytester,
) -> None:
    plugin = pytester.path / "harbour"
    write_skill(plugin / "skills/gate")
    (plugin / "skills/gate/skill_meta.json").unlink()
    for name in (".claude-plugin/plugin.json", "evals/promptfooconfig.yaml"):
        (plugin / name).parent.mkdir()
        (plugin / name).write_text('{"name": "harbour"}')
    shown = usage_error(pytester, "--skill", "harbour")
    assert "Not read: harbour/evals/promptfooconfig.yaml (no known form)" in shown


def test_a_run_that_names_its_cases_names_no_others(
    pytester: pytest.Pytester, skill: Path
) -> None:
    (skill / "evals/suite.yaml").write_text("{}")
    other = skill / "evals/other.json"
    other.write_text(json.dumps([EVAL]))
    assert read_suites(skill, other).unread == ()
    assert (
        "not read"
        not in run(pytester, "--collect-only", "--skill-tests", str(other)).stdout.str()
    )


def test_the_routes_of_a_catalogue_are_for_another_command(
    pytester: pytest.Pytester, skill: Path
) -> None:
    (skill.parent / "evals").mkdir()
    (skill.parent / "evals/routes.json").write_text("[]")
    shown = run(pytester, "--collect-only", "--model", "scripted:x.py").stdout.str()
    assert "not read: skills/evals/routes.json (for pytest-upskill route)" in shown
