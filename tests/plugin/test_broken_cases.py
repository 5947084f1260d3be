"""A case that can't be run is one failed test; the other cases of its file run."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support.accepted_project import accepted_names
from support.kit import case, write_script, write_skill
from support.runs import run_skills

GOOD = case("How do I open the gate?", "gate up", id="open-gate")
TYPO = {
    "id": "shut",
    "input": "How do I shut it?",
    "expected": {"contians": "gate down"},
}
NO_ID = {"input": "", "expected": {"contains": "x"}}
CASES = [GOOD, TYPO, NO_ID, {**GOOD, "input": "And again?"}]
FILE = "skills/gate/skill_meta.json"
NAMES = [f"{FILE}::{name}" for name in ("shut", "case-3", "case-4")]


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "skill_meta.json").write_text(json.dumps({"cases": CASES}, indent=1))
    return write_script(pytester.path / "a.json")


def test_each_broken_case_fails_and_the_others_run(
    pytester: pytest.Pytester, model: str, workers: str
) -> None:
    run = run_skills(pytester, model, "-n", workers, "-rA", "--junitxml", "j.xml")
    assert (run.outcomes["passed"], run.outcomes["failed"], run.status) == (1, 3, 1)
    lines = run.screen.splitlines()
    assert f"PASSED {FILE}::open-gate[{model}]" in lines
    problems = [
        'cases[1].expected.contians: unknown check (did you mean "contains"?)',
        "cases[2].input: must not be empty",
        "cases[3].id: duplicate id 'open-gate': also the id of cases[0]",
    ]
    for name, line, problem in zip(NAMES, (16, 20, 32), problems, strict=True):
        assert f"{FILE}:{line}: {problem}" in " ".join(run.screen.split())
        assert any(f"FAILED {name} - {problem[:20]}" in shown for shown in lines)
    assert [record["case"] for record in run.records] == ["open-gate"] * 2
    assert run.report["tests"][0]["of"] == 4  # what could not run is not forgotten
    tests = {
        test.get("name"): test for test in ElementTree.parse("j.xml").iter("testcase")
    }
    (failure,) = tests["shut"]
    assert failure.tag == "failure"
    assert (failure.text or "").startswith(f"{FILE}:16: {problems[0]}")


def test_broken_cases_stand_in_the_order_of_the_file(
    pytester: pytest.Pytester, model: str
) -> None:
    run = run_skills(pytester, model, "--collect-only", "-q")
    listed = [line for line in run.screen.splitlines() if "::" in line]
    assert listed == [f"{FILE}::open-gate[{model}]", *NAMES]


def test_broken_cases_can_be_chosen_like_others(
    pytester: pytest.Pytester, model: str
) -> None:
    for chosen, passed, failed in (
        (["-k", "shut"], 0, 1),
        ([NAMES[1]], 0, 1),
        (["-m", "skill"], 1, 3),
        (["--lf"], 0, 3),
    ):
        outcomes = run_skills(pytester, model, *chosen).outcomes
        assert (outcomes.get("passed", 0), outcomes["failed"]) == (passed, failed)
    mended = {**TYPO, "expected": {"contains": "gate up"}}
    (pytester.path / FILE).write_text(json.dumps({"cases": [GOOD, mended]}))
    assert run_skills(pytester, model).outcomes == {"passed": 2}


def test_a_run_with_only_broken_cases_needs_no_answer(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate", [TYPO])
    model = write_script(pytester.path / "a.json")
    run = run_skills(
        pytester, model, "--skill-min-lift", "0.1", "--skill-html", "r.html"
    )
    assert run.outcomes == {"failed": 1}
    assert "no skill was tested" not in run.screen


def test_accepting_keeps_the_result_of_a_case_that_broke(
    pytester: pytest.Pytester, model: str
) -> None:
    good = {**TYPO, "expected": {"contains": "gate up"}}
    (pytester.path / FILE).write_text(json.dumps({"cases": [GOOD, good]}))
    assert run_skills(pytester, model, "--skill-accept").outcomes == {"passed": 2}
    (pytester.path / FILE).write_text(json.dumps({"cases": [GOOD, TYPO]}))
    accepting = run_skills(pytester, model, "--skill-accept")
    assert accepting.outcomes == {"passed": 1, "failed": 1}
    names = accepted_names(pytester.path / "skills/gate", model)
    assert names == ["open-gate", "shut"]


def test_without_a_judge_only_cases_with_a_rubric_fail(
    pytester: pytest.Pytester, model: str
) -> None:
    judged = {"id": "kind", "input": "Hello?", "expected": {"judge": "Is kind"}}
    (pytester.path / FILE).write_text(json.dumps({"cases": [GOOD, judged]}))
    run = run_skills(pytester, model)
    assert run.outcomes == {"passed": 1, "failed": 1}
    assert (
        f"{FILE}:1: cases[1]: this needs a judge; add --skill-judge MODEL"
        in " ".join(run.screen.split())
    )


def test_without_a_judge_a_file_of_rubrics_is_one_error(
    pytester: pytest.Pytester, model: str
) -> None:
    judged = [
        {"input": f"Hello {n}?", "expected": {"judge": "Is kind"}} for n in range(20)
    ]
    (pytester.path / FILE).write_text(json.dumps({"cases": judged}))
    run = run_skills(pytester, model)
    assert run.outcomes == {"errors": 1}
    shown, _, summary = run.screen.partition("short test summary")
    assert shown.count("this needs a judge") == 1
    # In pytest's short summary, and in the last lines.
    assert summary.count("this needs a judge") == 2


def test_unknown_keys_are_one_warning(
    pytester: pytest.Pytester, model: str, workers: str
) -> None:
    cases: list[dict[str, Any]] = [
        {**GOOD, "verifiers": [{"type": "command"}], "zebra": 1},
        {**case("Q?", "gate up"), "zebra": 2},
    ]
    (pytester.path / FILE).write_text(
        json.dumps({"cases": cases, "origin": "x"}, indent=1)
    )
    run = run_skills(pytester, model, "-n", workers, "-W", "default")
    assert run.outcomes["passed"] == 2
    keys = "origin, verifiers (command), zebra"
    assert run.screen.count(f"SkillWarning: unknown keys are ignored: {keys}") == 1
    assert f"{Path(FILE)}:11" in run.screen


def test_an_automatic_id_that_changed_keeps_its_accepted_result(
    pytester: pytest.Pytester, model: str
) -> None:
    alike = [
        f"Tell me about the gate in the north, how it {verb}"
        for verb in ("shuts", "opens")
    ]
    wrong = case(alike[0], "gate down")
    (pytester.path / FILE).write_text(json.dumps([wrong]))
    assert run_skills(pytester, model, "--skill-accept").outcomes == {"xfailed": 1}
    (pytester.path / FILE).write_text(json.dumps([wrong, case(alike[1], "gate up")]))
    again = run_skills(pytester, model)
    assert again.outcomes == {"xfailed": 1, "passed": 1}
    ids = [test["case"][:-7] for test in again.report["tests"]]
    assert ids == ["shuts", "opens"]
    run_skills(pytester, model, "--skill-accept")
    names = accepted_names(pytester.path / "skills/gate", model)
    assert [name[:-7] for name in names] == ["opens", "shuts"]
