"""--skill-min-lift and the other gates decide the exit status."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.results.run_file import read_run
from support.kit import case, write_script, write_skill
from support.runs import SkillRun, run_skills
from support.usage import usage_error


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    cases = [
        case(f"Question {number}?", "gate up", id=f"q{number}") for number in range(4)
    ]
    write_skill(pytester.path / "skills/gate", cases)
    return write_script(pytester.path / "answers.json")


def test_gates_that_pass(pytester: pytest.Pytester, model: str) -> None:
    run = run_skills(
        pytester, model, "--skill-min-lift", "1", "--skill-min-pass-rate", "0.9"
    )
    assert (run.status, run.gate) == (0, {"passed": True, "reasons": []})


def test_a_gate_makes_a_green_run_red(
    pytester: pytest.Pytester, model: str, workers: str
) -> None:
    gates = [
        "--skill-min-lift",
        "1",
        "--skill-confident",
        "--skill-max-token-growth",
        "0.1",
    ]
    run = run_skills(pytester, model, *gates, "-n", workers)
    assert run.outcomes == {"passed": 4}
    assert run.status == pytest.ExitCode.TESTS_FAILED
    assert not run.gate["passed"]
    reasons = run.gate["reasons"]
    assert len(reasons) == 2  # the lift, and the growth
    assert all(reason.startswith(f"gate on {model}: ") for reason in reasons)
    failed = [line for line in run.ending if line.startswith("✘")]
    assert failed == [f"✘ gate failed: {reason}" for reason in reasons]


GATES = ["--skill-min-pass-rate", "0.9", "--skill-min-lift", "0.2"]


def write_defaults(pytester: pytest.Pytester, **defaults: Any) -> None:
    file = pytester.path / "skills/gate/skill_meta.json"
    file.write_text(json.dumps({"defaults": defaults, **json.loads(file.read_text())}))


def assert_fails(run: SkillRun, *reasons: str) -> None:
    assert run.status == pytest.ExitCode.TESTS_FAILED
    assert run.gate == {"passed": False, "reasons": list(reasons)}


@pytest.mark.parametrize(
    ("defaults", "why"),
    [
        ({"skip": "later"}, "all cases are skipped: later"),
        ({"models": ["haiku"]}, "no case is for scripted:answers.json"),
    ],
)
def test_a_gate_without_evidence_fails(
    pytester: pytest.Pytester, model: str, defaults: dict[str, Any], why: str
) -> None:
    write_defaults(pytester, **defaults)
    run = run_skills(
        pytester, model, *GATES, "--skill-markdown", "r.md", "-W", "default"
    )
    assert_fails(run, f"gate: can't pass: {why}")
    assert f"gate: can't pass: {why}" in (pytester.path / "r.md").read_text()


def test_skills_without_a_verdict_fail_only_gates(
    pytester: pytest.Pytester, model: str
) -> None:
    write_skill(pytester.path / "skills/door", [case("q?", "gate up", skip="later")])
    (write_skill(pytester.path / "skills/wall") / "skill_meta.json").unlink()
    run = run_skills(pytester, model)
    assert run.status == 0
    assert "No verdict on wall: no cases." in run.screen
    skipped = "door: can't pass: all cases are skipped: later"
    assert_fails(
        run_skills(pytester, model, *GATES), "wall: can't pass: no cases", skipped
    )
    # Somebody who selects some cases knows that others are not tested.
    assert run_skills(pytester, model, *GATES, "-k", "q1 or q2").status == 0


def test_a_model_without_any_case_fails_a_gate(
    pytester: pytest.Pytester, model: str
) -> None:
    write_defaults(pytester, models=[model])
    (pytester.path / "other.json").write_text('[{"answer": "gate up"}]')
    run = run_skills(pytester, model, "--model", "scripted:other.json", *GATES)
    assert_fails(run, "scripted:other.json: can't pass: no case is for this model")


def write_queries(skill: Path) -> None:
    (skill / "evals").mkdir()
    queries = [{"query": text, "should_trigger": False} for text in ("Sing!", "Dance!")]
    (skill / "evals/triggers.json").write_text(json.dumps(queries))


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        pytest.param(
            {"skip": "later"}, "all cases are skipped: later", marks=pytest.mark.nightly
        ),
        ({"models": ["another"]}, "no case is for {model}"),
        (None, "only queries were asked, no case"),
    ],
)
def test_queries_are_no_evidence_for_a_lift(
    pytester: pytest.Pytester, model: str, keys: dict[str, Any] | None, why: str
) -> None:
    cases = [] if keys is None else [case("q?", "gate up", **keys)]
    door = write_skill(pytester.path / "skills/door", cases)
    write_queries(door)
    if not cases:
        (door / "skill_meta.json").unlink()
    run = run_skills(pytester, model, *GATES)
    assert_fails(run, f"door: can't pass: {why.format(model=model)}")
    assert run_skills(pytester, model, *GATES, "-k", "q1 or Sing").status == 0


def test_queries_are_no_evidence_for_a_lift_on_a_model(
    pytester: pytest.Pytester, model: str
) -> None:
    write_defaults(pytester, models=[model])
    write_queries(pytester.path / "skills/gate")
    (pytester.path / "other.json").write_text('[{"answer": "gate up"}]')
    run = run_skills(pytester, model, "--model", "scripted:other.json", *GATES)
    assert_fails(run, "scripted:other.json: can't pass: no case is for this model")


def test_a_model_whose_cases_all_passed_is_not_said_to_have_none_by_lf(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate", [case("How?", "gate up", id="one")])
    good = write_script(pytester.path / "good.json")
    bad = write_script(pytester.path / "bad.json", knows="No idea.")
    assert (
        run_skills(pytester, good, "--model", bad).status
        == pytest.ExitCode.TESTS_FAILED
    )
    run = run_skills(pytester, good, "--model", bad, "--lf")
    assert run.outcomes["failed"] == 1
    assert "passed" not in run.outcomes
    assert "No verdict" not in run.screen


def test_a_gate_of_the_command_line_needs_evidence_one_of_the_ini_file_only_of_skills(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makepyfile(test_other="def test_other(): pass")
    run = run_skills(pytester, model, *GATES, "test_other.py", "-k", "test_other")
    assert_fails(run, "can't pass: nothing was tested")
    ini = [
        "[pytest]",
        "skill_min_lift = 0.2",
        "skill_paths = skills",
        f"skill_models = {model}",
    ]
    pytester.makeini("\n".join(ini))
    assert pytester.runpytest_inprocess("-k", "test_other").ret == 0
    assert pytester.runpytest_inprocess("test_other.py").ret == 0
    write_defaults(pytester, skip="later")
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.TESTS_FAILED


def test_a_gate_without_any_skill_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest_inprocess("--skill-min-lift", "0.2", "-q")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --skill-min-lift: no skill is tested. *"])


def test_a_test_that_fails_before_it_asks_fails_the_report(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makeconftest("""
        def pytest_runtest_setup(item):
            assert not item.name.startswith("q3["), "no room"
        """)
    result = pytester.runpytest_inprocess(
        "--skill", "skills", "--model", model, "--skill-json", "r.json"
    )
    result.assert_outcomes(passed=3, errors=1)
    count, why = read_run(pytester.path / "r.json").problems
    assert count == "1 error"
    assert why.startswith("not tested: AssertionError: no room")


def test_a_run_that_stopped_early_fails_its_gates(
    pytester: pytest.Pytester, model: str
) -> None:
    cases = [case("q?", "nowhere", id="bad"), case("Question?", "gate up", id="good")]
    write_skill(pytester.path / "skills/gate", cases)
    run = run_skills(pytester, model, "-x", "--skill-min-pass-rate", "0.1")
    assert run.status == pytest.ExitCode.TESTS_FAILED
    assert "can't pass: 1 case not run" in run.gate["reasons"][-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--skill-min-pass-rate", "2"], "'2' is not a number above 0 and up to 1"),
        (["--skill-min-lift", "x"], "'x' is not a lift"),
        (["--skill-min-lift", "nan"], "'nan' is not a lift"),
        (
            ["-o", "skill_case_threshold=0"],
            "-o: skill_case_threshold: '0.0' is not a number above 0 and up to 1",
        ),
        (["--skill-min-lift", "0.5", "--skill-no-baseline"], "can't be combined with"),
        (
            ["--skill-max-token-growth", "0.5", "--skill-no-baseline"],
            "can't be combined with",
        ),
    ],
)
def test_gates_that_make_no_sense_are_usage_errors(
    pytester: pytest.Pytester, model: str, options: list[str], message: str
) -> None:
    error = usage_error(pytester, "--skill", "skills", "--model", model, *options)
    assert options[0] in error
    assert message in error


@pytest.mark.parametrize(
    ("threshold", "outcome"), [("0.3", "passed"), ("0.34", "failed")]
)
def test_the_threshold_of_a_case(
    pytester: pytest.Pytester, threshold: str, outcome: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makepyfile(a="def reply(q):\n    return 'gate up' if q.run == 1 else 'no'")
    args = ["--skill-runs", "3", "-o", f"skill_case_threshold={threshold}"]
    assert run_skills(pytester, "scripted:a.py:reply", *args).outcomes == {outcome: 1}
