"""--skill-min-lift and the other gates decide the exit status."""

import json
from fnmatch import fnmatch
from typing import Any

import pytest

from pytest_upskill.results.from_json import read_run
from support.kit import case, gates, write_script, write_skill


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    cases = [case(f"Question {number}?", "gate up", id=f"q{number}") for number in range(8)]
    write_skill(pytester.path / "skills/gate", cases)
    return write_script(pytester.path / "answers.json")


def gate(pytester: pytest.Pytester) -> Any:
    return json.loads((pytester.path / "r.json").read_text())["gate"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--skill-min-lift", "1"], None),
        (["--skill-min-lift", "1", "--skill-confident"], "lowest likely lift is *"),
        (["--skill-min-pass-rate", "0.9"], None),
        (["--skill-max-token-growth", "0.1"], "token growth is * (maximum +10%)"),
    ],
)
def test_a_gate_makes_a_green_run_red(
    pytester: pytest.Pytester, model: str, workers: str, options: list[str], reason: str | None
) -> None:
    args = ["--skill", "skills", "--model", model, "-n", workers, "--skill-json", "r.json"]
    result = pytester.runpytest_inprocess(*args, *options)
    result.assert_outcomes(passed=8)
    if reason is None:
        assert (result.ret, gate(pytester)) == (0, {"passed": True, "reasons": []})
    else:
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        [told] = gates(result)
        assert fnmatch(told, f"gate on scripted:answers.json: {reason}")
        assert not gate(pytester)["passed"]
        assert len(gate(pytester)["reasons"]) == 1


def test_without_gates_nothing_is_decided(pytester: pytest.Pytester, model: str) -> None:
    args = ["--skill", "skills", "--model", model, "--skill-json", "r.json"]
    assert pytester.runpytest_inprocess(*args).ret == 0
    assert gate(pytester) == {"passed": None, "reasons": []}


GATES = ["--skill-min-pass-rate", "0.9", "--skill-min-lift", "0.2"]


def write_defaults(pytester: pytest.Pytester, **defaults: Any) -> None:
    file = pytester.path / "skills/gate/skill_meta.json"
    file.write_text(json.dumps({"defaults": defaults, **json.loads(file.read_text())}))


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize(
    ("defaults", "why"),
    [
        ({"skip": "later"}, "all cases are skipped"),
        ({"models": ["haiku"]}, "no case is for scripted:answers.json"),
    ],
)
def test_a_gate_without_evidence_fails(
    pytester: pytest.Pytester, model: str, workers: str, defaults: dict[str, Any], why: str
) -> None:
    write_defaults(pytester, **defaults)
    args = ["--skill", "skills", "--model", model, "-n", workers, "-W", "default"]
    result = pytester.runpytest_inprocess(*args, *GATES, "--skill-markdown", "r.md")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert gates(result) == [f"gate: can't pass: {why}"]
    assert f"**Failed:**\n\n- gate: can't pass: {why}" in (pytester.path / "r.md").read_text()


def test_skills_without_a_verdict_are_named_and_fail_only_gates(
    pytester: pytest.Pytester, model: str
) -> None:
    write_skill(pytester.path / "skills/door", [case("q?", "gate up", skip="later")])
    (write_skill(pytester.path / "skills/wall") / "skill_meta.json").unlink()
    args = ["--skill", "skills", "--model", model]
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["No verdict on wall: no cases.", "No verdict on door: all cases are skipped."]
    )
    result = pytester.runpytest_inprocess(*args, *GATES)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert gates(result) == [
        "wall: can't pass: no cases",
        "door: can't pass: all cases are skipped",
    ]
    # Somebody who selects some cases knows that others are not tested.
    assert pytester.runpytest_inprocess(*args, *GATES, "-k", "q1 or q2").ret == 0


def test_a_model_without_any_case_fails_a_gate(pytester: pytest.Pytester, model: str) -> None:
    write_defaults(pytester, models=[model])
    (pytester.path / "other.json").write_text('[{"answer": "gate up"}]')
    args = ["--skill", "skills", "--model", model, "--model", "scripted:other.json", *GATES]
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    why = "can't pass: no case is for this model"
    assert gates(result) == [f"scripted:other.json: {why}"]


def test_a_model_whose_cases_all_passed_is_not_said_to_have_none_by_lf(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate", [case("How?", "gate up", id="one")])
    good = write_script(pytester.path / "good.json")
    bad = write_script(pytester.path / "bad.json", knows="No idea.")
    args = ["--skill", "skills", "--model", good, "--model", bad]
    assert pytester.runpytest_inprocess(*args).ret == pytest.ExitCode.TESTS_FAILED
    result = pytester.runpytest_inprocess(*args, "--lf")
    assert result.parseoutcomes()["failed"] == 1
    assert "passed" not in result.parseoutcomes()
    result.stdout.no_fnmatch_line("*No verdict*")


def test_a_gate_of_the_command_line_needs_evidence_one_of_the_ini_file_only_of_skills(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makepyfile(test_other="def test_other(): pass")
    args = ["--skill", "skills", "--model", model, "test_other.py", "-k", "test_other"]
    result = pytester.runpytest_inprocess(*args, *GATES)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert gates(result) == ["can't pass: nothing was tested"]
    ini = ["[pytest]", "skill_min_lift = 0.2", "skill_paths = skills", f"skill_models = {model}"]
    pytester.makeini("\n".join(ini))
    assert pytester.runpytest_inprocess("-k", "test_other").ret == 0
    assert pytester.runpytest_inprocess("test_other.py").ret == 0
    write_defaults(pytester, skip="later")
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.TESTS_FAILED


def test_a_gate_without_any_skill_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest_inprocess("--skill-min-lift", "0.2", "-q")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --skill-min-lift: no skill is tested. Add --skill PATH."])


def test_a_test_that_fails_before_it_asks_fails_the_report(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makeconftest(
        """
        def pytest_runtest_setup(item):
            assert not item.name.startswith("q3["), "no room"
        """
    )
    args = ["--skill", "skills", "--model", model, "--skill-json", "r.json"]
    pytester.runpytest_inprocess(*args).assert_outcomes(passed=7, errors=1)
    [why] = read_run(pytester.path / "r.json").problems
    assert why.startswith("not tested: AssertionError: no room")


def test_a_run_that_stopped_early_fails_its_gates(pytester: pytest.Pytester, model: str) -> None:
    cases = [case("q?", "nowhere", id="bad"), case("Question?", "gate up", id="good")]
    write_skill(pytester.path / "skills/gate", cases)
    args = ["--skill", "skills", "--model", model, "-x", "--skill-min-pass-rate", "0.1"]
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "can't pass: 1 case not run" in gates(result)[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--skill-min-pass-rate", "2"], "'2' is not a number above 0 and up to 1"),
        (["--skill-min-lift", "x"], "'x' is not a number"),
        (["--skill-min-lift", "nan"], "'nan' is not a number"),
        (["--skill-case-threshold", "0"], "'0' is not a number above 0 and up to 1"),
    ],
)
def test_a_wrong_number_is_a_usage_error(
    pytester: pytest.Pytester, model: str, options: list[str], message: str
) -> None:
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()


@pytest.mark.parametrize(("threshold", "outcome"), [("0.3", "passed"), ("0.34", "failed")])
def test_the_threshold_of_a_case(pytester: pytest.Pytester, threshold: str, outcome: str) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makepyfile(a="def reply(q):\n    return 'gate up' if q.run == 1 else 'no'")
    args = ["--skill", "skills", "--model", "scripted:a.py:reply", "--skill-runs", "3"]
    result = pytester.runpytest_inprocess(*args, "--skill-case-threshold", threshold)
    result.assert_outcomes(**{outcome: 1})


@pytest.mark.parametrize("gate", ["--skill-min-lift", "--skill-max-token-growth"])
def test_a_gate_that_needs_a_baseline_is_refused_before_the_first_call(
    pytester: pytest.Pytester, model: str, gate: str
) -> None:
    args = ["--skill", "skills", "--model", model, "--skill-no-baseline", gate, "0.5"]
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {gate}: can't be combined with --skill-no-baseline"])
