"""--skill-min-lift and the other gates decide the exit status."""

import json
from typing import Any

import pytest

from support.kit import case, write_script, write_skill


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    cases = [case(f"Question {number}?", "gate up", id=f"q{number}") for number in range(8)]
    write_skill(pytester.path / "skills/gate", cases)
    return write_script(pytester.path / "answers.json")


def gate(pytester: pytest.Pytester) -> Any:
    return json.loads((pytester.path / "r.json").read_text())["gate"]


@pytest.mark.parametrize("workers", ["0", "2"])
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
        result.stdout.fnmatch_lines(
            ["*= 8 passed in *", f"upskill: gate: gate on scripted:answers.json: {reason}"]
        )
        assert "upskill: gate:" in result.outlines[-1]
        assert not gate(pytester)["passed"]
        assert len(gate(pytester)["reasons"]) == 1


def test_without_gates_nothing_is_decided(pytester: pytest.Pytester, model: str) -> None:
    args = ["--skill", "skills", "--model", model, "--skill-json", "r.json"]
    assert pytester.runpytest_inprocess(*args).ret == 0
    assert gate(pytester) == {"passed": None, "reasons": []}


def test_a_run_that_stopped_early_fails_its_gates(pytester: pytest.Pytester, model: str) -> None:
    cases = [case("q?", "nowhere", id="bad"), case("Question?", "gate up", id="good")]
    write_skill(pytester.path / "skills/gate", cases)
    args = ["--skill", "skills", "--model", model, "-x", "--skill-min-pass-rate", "0.1"]
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "gates not evaluated: 1 case not run" in result.outlines[-1]


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
