"""Checks in Python: from a hook, and from a file beside the skill."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.kit import write_script, write_skill

CONFTEST = """
    def short(answer, most):
        return len(answer.text) <= most, f"{len(answer.text)} of {most} characters"

    def kind(answer, value):
        assert value in answer.text, "not kind"
        return True

    def yes(answer, value):
        return "gate" in answer.text

    def broken(answer, value):
        raise KeyError("oops\\n\\x1b[31m")

    def silent(answer, value):
        pass

    def validated(answer, value):
        return value == {"least": 1, "output_file": "a.py"}, repr(value)

    def of_case(context):
        return context.case.id == context.value, f"{context.answer.text} {context.case.input}"

    def pytest_upskill_checks(config):
        return {"short": short, "kind": kind, "yes": yes, "broken": broken, "silent": silent,
                "validated": validated, "of_case": of_case}
"""
workers = pytest.mark.parametrize("workers", ["0", "2"])


def run(
    pytester: pytest.Pytester, expected: Any, *args: str, workers: str = "0", **more: Any
) -> pytest.RunResult:
    write_skill(pytester.path / "skills/gate", [{"input": "q", "expected": expected, **more}])
    model = write_script(pytester.path / "answers.json")
    args = ("--skill", "skills", "--model", model, "-n", workers, "--skill-json", "r.json", *args)
    result = pytester.runpytest_inprocess(*args)
    shown = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in shown
    assert "INTERNALERROR" not in shown
    return result


def records(pytester: pytest.Pytester) -> Any:
    return json.loads((pytester.path / "r.json").read_text())["records"]


@workers
def test_registered_checks_are_used_by_their_names(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makeconftest(CONFTEST)
    expected = {"short": 20, "any_of": [{"kind": "please"}, {"kind": "Type"}], "yes": 0}
    run(pytester, expected, workers=workers).assert_outcomes(passed=1)
    baseline, skill = records(pytester)
    assert [(grade["check"], grade["passed"]) for grade in skill["checks"]] == [
        ("short", True),
        ("any_of", True),
        ("yes", True),
    ]
    assert skill["checks"][0]["reason"] == "13 of 20 characters"
    told = "none of 2 choices passed: (1) not kind; (2) not kind"
    assert [grade["reason"] for grade in baseline["checks"]][1:] == [
        told,
        "the check returned False",
    ]
    assert (baseline["score"], skill["score"]) == (pytest.approx(1 / 3), 1)


def test_a_check_with_one_parameter_gets_a_context(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    run(pytester, {"of_case": "open"}, id="open").assert_outcomes(passed=1)
    assert records(pytester)[1]["checks"][0]["reason"] == "Type gate up. q"


@workers
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("broken", r"check broken raised KeyError('oops\n\x1b[31m')"),
        ("silent", "check silent returned None. Return True, False, or (bool, reason)"),
    ],
)
def test_a_check_that_breaks_is_an_error_and_no_failure(
    pytester: pytest.Pytester, name: str, told: str, workers: str
) -> None:
    pytester.makeconftest(CONFTEST)
    result = run(pytester, {"contains": "gate", name: 1}, workers=workers)
    result.assert_outcomes(errors=1)
    assert told in result.stdout.str()
    assert [(r["outcome"], r["error"]) for r in records(pytester)] == [("errored", told)] * 2


def test_an_unknown_name_is_told_with_a_guess(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    result = run(pytester, {"shrot": 1})
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(['*expected.shrot: unknown check (did you mean "short"?)'])


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("{'contains': print}", "'contains' is a built-in check"),
        ("{'any_of': print}", "'any_of' is a built-in check"),
        ("{'python': print}", "'python' is a built-in check"),
        ("{'x': 1}", "'x' is not the name of a function"),
        ("{1: print}", "1 is not the name of a function"),
        ("[print]", "must return a dict"),
    ],
)
def test_a_wrong_registration_is_told(pytester: pytest.Pytester, returned: str, told: str) -> None:
    pytester.makeconftest(f"def pytest_upskill_checks(config): return {returned}")
    result = run(pytester, {"contains": "gate"})
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([f"*pytest_upskill_checks: {told}"])


def test_two_checks_of_one_name_are_refused(pytester: pytest.Pytester) -> None:
    hook = "def pytest_upskill_checks(config): return {'x': print}"
    pytester.makeconftest(hook)
    pytester.makepyfile(other=hook)
    pytester.syspathinsert()
    result = run(pytester, {"x": 1}, "-p", "other")
    result.stdout.fnmatch_lines(["*pytest_upskill_checks: 'x' is registered twice"])


@pytest.mark.parametrize("expected", [None, {"contains": "gate"}, [{"contains": "gate"}]])
def test_a_validator_is_a_registered_check(pytester: pytest.Pytester, expected: Any) -> None:
    pytester.makeconftest(CONFTEST)
    more: dict[str, Any] = {"validator": "validated", "validator_config": {"least": 1, "x": None}}
    run(pytester, expected, **more, output_file="a.py").assert_outcomes(passed=1)
    names = [grade["check"] for grade in records(pytester)[1]["checks"]]
    assert names == [*(["contains"] if expected else []), "validated"]


def test_what_expected_says_of_a_validator_counts(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    run(pytester, {"short": 13}, validator="short").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("conftest", "known"),
    [
        (CONFTEST, "short, kind, yes, broken, silent, validated, of_case"),
        ("", "none (register them in a conftest.py)"),
    ],
)
def test_an_unknown_validator_is_told_with_those_that_are_known(
    pytester: pytest.Pytester, conftest: str, known: str
) -> None:
    pytester.makeconftest(conftest)
    result = run(pytester, {"contains": "gate"}, validator="contains")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    told = f"*cases[[]0].validator: unknown check 'contains'; registered: {known}"
    result.stdout.fnmatch_lines([told])


OWN = """
import dataclasses
from pathlib import Path

@dataclasses.dataclass
class Limit:
    most: int = 20

def short(answer):
    return len(answer.text) <= Limit().most, "short"

def wrong(answer):
    assert "door" in answer.text, "no door"

number = 3
Path(__file__).with_name("run").touch()
"""


def write_own(pytester: pytest.Pytester, text: str = OWN) -> Path:
    folder = pytester.path / "skills/gate"
    folder.mkdir(parents=True)
    (folder / "checks.py").write_text(text)
    return folder


@workers
def test_a_function_beside_the_skill_is_run_if_that_is_allowed(
    pytester: pytest.Pytester, workers: str
) -> None:
    folder = write_own(pytester)
    expected = {"python": "checks.py:short"}
    result = run(pytester, expected, "--skill-allow-code", workers=workers)
    result.assert_outcomes(passed=1)
    assert records(pytester)[1]["checks"][0]["reason"] == "checks.py:short: short"
    assert (folder / "run").exists()
    assert not (folder / "__pycache__").exists()


def test_it_may_fail_with_an_assertion(pytester: pytest.Pytester) -> None:
    write_own(pytester)
    result = run(pytester, {"python": "checks.py:wrong"}, "--skill-allow-code")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*FAIL python: checks.py:wrong: no door"])


def test_it_is_not_even_loaded_if_that_is_not_allowed(pytester: pytest.Pytester) -> None:
    folder = write_own(pytester)
    result = run(pytester, {"any_of": [{"python": "checks.py:short"}]})
    assert result.ret == pytest.ExitCode.INTERRUPTED
    told = "*[[]0].python: runs code from the skill's folder; allow it with --skill-allow-code"
    result.stdout.fnmatch_lines([told])
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("checks.py", 'must have the form "checks.py:function"'),
        ("checks.txt:short", 'must have the form "checks.py:function"'),
        ("checks.py:a.b", 'must have the form "checks.py:function"'),
        ("checks.py:long", "\"checks.py\" has no function 'long'"),
        ("checks.py:number", "\"checks.py\" has no function 'number'"),
        ("none.py:f", '"none.py" can\'t be read: No such file or directory'),
        ("../../conftest.py:f", '"../../conftest.py" is outside the skill\'s folder'),
        ("broken.py:f", "\"broken.py\" can't be loaded: SyntaxError: '(' was never closed"),
        ("exits.py:f", '"exits.py" can\'t be loaded: SystemExit: 3'),
        ("imports.py:f", "can't be loaded: ModuleNotFoundError: No module named 'nothing_such'"),
    ],
)
def test_a_function_that_is_not_there_is_told(
    pytester: pytest.Pytester, written: str, told: str
) -> None:
    folder = write_own(pytester)
    pytester.makeconftest("")
    (folder / "broken.py").write_text("(")
    (folder / "exits.py").write_text("raise SystemExit(3)")
    (folder / "imports.py").write_text("import nothing_such")
    result = run(pytester, {"python": written}, "--skill-allow-code")
    assert told in result.stdout.str()
    assert result.ret == pytest.ExitCode.INTERRUPTED
