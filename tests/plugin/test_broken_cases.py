"""A case that can't be run is one failed test; the other cases of its file run."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support.kit import case, run_skills, write_script, write_skill

GOOD = case("How do I open the gate?", "gate up", id="open-gate")
TYPO = {"id": "shut", "input": "How do I shut it?", "expected": {"contians": "gate down"}}
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
    result = run_skills(pytester, model, "-n", workers, "-rA", "--skill-json", "r.json")
    result.assert_outcomes(passed=1, failed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert f"PASSED {FILE}::open-gate[{model}]" in result.outlines
    problems = [
        'cases[1].expected.contians: unknown check (did you mean "contains"?)',
        "cases[2].input: must not be empty",
        "cases[3].id: duplicate id 'open-gate': also the id of cases[0]",
    ]
    for name, line, problem in zip(NAMES, (16, 20, 32), problems, strict=True):
        assert f"{FILE}:{line}: {problem}" in result.outlines
        assert any(f"FAILED {name} - {problem[:20]}" in shown for shown in result.outlines)
    # What could not run is not forgotten.
    result.stdout.fnmatch_lines([f"*gate on {model}: ran only 1 of 4 cases."])
    report = json.loads((pytester.path / "r.json").read_text())
    assert [record["case"] for record in report["records"]] == ["open-gate"] * 2
    assert report["tests"][0]["of"] == 4


def test_broken_cases_stand_in_the_order_of_the_file(pytester: pytest.Pytester, model: str) -> None:
    result = run_skills(pytester, model, "--collect-only", "-q")
    listed = [line for line in result.outlines if "::" in line]
    assert listed == [f"{FILE}::open-gate[{model}]", *NAMES]


def test_broken_cases_can_be_chosen_like_others(
    pytester: pytest.Pytester, model: str, workers: str
) -> None:
    for chosen, passed, failed in (
        (["-k", "shut"], 0, 1),
        ([NAMES[1]], 0, 1),
        (["-m", "skill"], 1, 3),
        (["--lf"], 0, 3),
    ):
        outcomes = run_skills(pytester, model, "-n", workers, *chosen).parseoutcomes()
        assert (outcomes.get("passed", 0), outcomes["failed"]) == (passed, failed)


def test_a_mended_case_runs(pytester: pytest.Pytester, model: str) -> None:
    run_skills(pytester, model)
    mended = {**TYPO, "expected": {"contains": "gate up"}}
    (pytester.path / FILE).write_text(json.dumps({"cases": [GOOD, mended]}))
    run_skills(pytester, model).assert_outcomes(passed=2)


def test_junit_has_the_message_and_the_line(pytester: pytest.Pytester, model: str) -> None:
    run_skills(pytester, model, "--junitxml", "j.xml")
    tests = {test.get("name"): test for test in ElementTree.parse("j.xml").iter("testcase")}
    (failure,) = tests["shut"]
    assert failure.tag == "failure"
    assert (failure.text or "").startswith(f"{FILE}:16: cases[1].expected.contians: unknown check")


def test_a_run_with_only_broken_cases_needs_no_answer(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", [TYPO])
    model = write_script(pytester.path / "a.json")
    result = run_skills(pytester, model, "--skill-min-lift", "0.1", "--skill-html", "r.html")
    result.assert_outcomes(failed=1)


def test_accepting_keeps_the_result_of_a_case_that_broke(
    pytester: pytest.Pytester, model: str
) -> None:
    good = {**TYPO, "expected": {"contains": "gate up"}}
    (pytester.path / FILE).write_text(json.dumps({"cases": [GOOD, good]}))
    run_skills(pytester, model, "--skill-accept").assert_outcomes(passed=2)
    (pytester.path / FILE).write_text(json.dumps({"cases": [GOOD, TYPO]}))
    run_skills(pytester, model, "--skill-accept").assert_outcomes(passed=1, failed=1)
    accepted = json.loads((pytester.path / "skills/gate/skill_results.json").read_text())
    assert set(accepted["models"][model]["cases"]) == {"open-gate", "shut"}


def test_without_a_judge_only_cases_with_a_rubric_fail(
    pytester: pytest.Pytester, model: str
) -> None:
    judged = {"id": "kind", "input": "Hello?", "expected": {"judge": "Is kind"}}
    (pytester.path / FILE).write_text(json.dumps({"cases": [GOOD, judged]}))
    result = run_skills(pytester, model)
    result.assert_outcomes(passed=1, failed=1)
    message = f"{FILE}:1: cases[[]1]: this needs a judge; add --skill-judge MODEL"
    result.stdout.fnmatch_lines([message])


def test_without_a_judge_a_file_of_rubrics_is_one_error(
    pytester: pytest.Pytester, model: str
) -> None:
    judged = [{"input": f"Hello {n}?", "expected": {"judge": "Is kind"}} for n in range(20)]
    (pytester.path / FILE).write_text(json.dumps({"cases": judged}))
    result = run_skills(pytester, model)
    result.assert_outcomes(errors=1)
    shown, _, summary = result.stdout.str().partition("short test summary")
    assert shown.count("this needs a judge") == 1
    # In pytest's short summary, and in the last lines.
    assert summary.count("this needs a judge") == 2


def test_unknown_keys_are_one_warning(pytester: pytest.Pytester, model: str, workers: str) -> None:
    cases: list[dict[str, Any]] = [
        {**GOOD, "verifiers": [{"type": "command"}], "zebra": 1},
        {**case("Q?", "gate up"), "zebra": 2},
    ]
    (pytester.path / FILE).write_text(json.dumps({"cases": cases, "origin": "x"}, indent=1))
    result = run_skills(pytester, model, "-n", workers, "-W", "default")
    assert result.parseoutcomes()["passed"] == 2
    shown = result.stdout.str()
    keys = "origin, verifiers (command), zebra"
    assert shown.count(f"SkillWarning: unknown keys are ignored: {keys}") == 1
    assert f"{Path(FILE)}:11" in shown


def test_an_automatic_id_that_changed_keeps_its_accepted_result(
    pytester: pytest.Pytester, model: str
) -> None:
    alike = [f"Tell me about the gate in the north, how it {verb}" for verb in ("shuts", "opens")]
    wrong = case(alike[0], "gate down")
    (pytester.path / FILE).write_text(json.dumps([wrong]))
    run_skills(pytester, model, "--skill-accept").assert_outcomes(xfailed=1)
    (pytester.path / FILE).write_text(json.dumps([wrong, case(alike[1], "gate up")]))
    again = run_skills(pytester, model, "-rA")
    again.assert_outcomes(xfailed=1, passed=1)
    again.stdout.fnmatch_lines([f"PASSED {FILE}::opens-*", f"XFAIL {FILE}::shuts-*"])
    run_skills(pytester, model, "--skill-accept").assert_outcomes(xfailed=1, passed=1)
    accepted = json.loads((pytester.path / "skills/gate/skill_results.json").read_text())
    ids = [name[:-7] for name in accepted["models"][model]["cases"]]
    assert ids == ["opens", "shuts"]
