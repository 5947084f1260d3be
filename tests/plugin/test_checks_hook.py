"""pytest_upskill_checks: checks of a conftest.py."""

import json
import re
from typing import Any

import pytest

from pytest_upskill.errors import InputError
from pytest_upskill.plugin.hooks import registered_checks
from support.hook_runs import PAGE, example, records, run, run_case

CONFTEST = """
    def short(context):
        length = len(context.answer.text)
        return length <= context.value, f"{length} of {context.value} characters"

    def kind(context):
        assert context.value in context.answer.text, "not kind"
        return True

    def yes(context):
        return "gate" in context.answer.text

    def broken(context):
        raise KeyError("oops\\n\\x1b[31m")

    def silent(context):
        pass

    def validated(context):
        return context.value == {"least": 1, "output_file": "a.py"}, repr(context.value)

    def of_case(context):
        said = f"{context.answer.text} {context.case.input}"
        return context.case.id == context.value, said

    def pytest_upskill_checks(config):
        return {"short": short, "kind": kind, "yes": yes, "broken": broken,
                "silent": silent, "validated": validated, "of_case": of_case}
"""


def test_the_example_of_a_check(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makeconftest(example("def pytest_upskill_checks"))
    (written,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.S | re.M)
    (case,) = json.loads(written)
    assert run(pytester, "-n", workers, case=case).parseoutcomes()["passed"] == 1
    baseline, skill = records(pytester)
    assert skill["checks"][1]["reason"] == "3 words (limit 5)"
    assert [grade["passed"] for grade in baseline["checks"]] == [False, True]


def test_registered_checks_are_used_by_their_names(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    expected = {"short": 20, "any_of": [{"kind": "please"}, {"kind": "Type"}], "yes": 0}
    run_case(pytester, expected).assert_outcomes(passed=1)
    baseline, skill = records(pytester)
    assert [(grade["check"], grade["passed"]) for grade in skill["checks"]] == [
        ("short", True),
        ("any_of", True),
        ("yes", True),
    ]
    assert skill["checks"][0]["reason"] == "13 of 20 characters"
    message = "none of 2 choices passed: (1) not kind; (2) not kind"
    assert [grade["reason"] for grade in baseline["checks"]][1:] == [
        message,
        "the check returned False",
    ]
    assert (baseline["score"], skill["score"]) == (pytest.approx(1 / 3), 1)


def test_a_check_knows_the_case(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    run_case(pytester, {"of_case": "open"}, id="open").assert_outcomes(passed=1)
    assert records(pytester)[1]["checks"][0]["reason"] == "Type gate up. q"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", r"check broken raised KeyError('oops\n\x1b[31m')"),
        ("silent", "check silent returned None. Return True, False, or (bool, reason)"),
    ],
)
def test_a_check_that_raises_is_an_error_not_a_failure(
    pytester: pytest.Pytester, name: str, message: str
) -> None:
    pytester.makeconftest(CONFTEST)
    result = run_case(pytester, {"contains": "gate", name: 1})
    result.assert_outcomes(errors=1)
    assert message in result.stdout.str()
    assert [(r["outcome"], r["error"]) for r in records(pytester)] == [
        ("errored", message)
    ] * 2


def test_an_unknown_check_gets_a_suggestion(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    result = run_case(pytester, {"shrot": 1})
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ['*expected.shrot: unknown check (did you mean "short"?)']
    )


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("{'contains': print}", "'contains' is taken"),
        ("{'any_of': print}", "'any_of' is taken"),
        ("{'python': print}", "'python' is taken"),
        ("{'x': 1}", "returned {'x': 1}"),
        ("{1: print}", "returned {1: "),
        ("[1]", "returned "),
    ],
)
def test_a_wrong_registration_is_an_error(
    pytester: pytest.Pytester, returned: str, message: str
) -> None:
    pytester.makeconftest(f"def pytest_upskill_checks(config): return {returned}")
    config = pytester.parseconfig()
    with pytest.raises(InputError, match=f"^pytest_upskill_checks: {message}"):
        registered_checks(config.hook, config)


def test_two_checks_of_one_name_are_an_error_of_the_run(
    pytester: pytest.Pytester,
) -> None:
    hook = "def pytest_upskill_checks(config): return {'x': print}"
    pytester.makeconftest(hook)
    pytester.makepyfile(other=hook)
    pytester.syspathinsert()
    result = run_case(pytester, {"x": 1}, "-p", "other")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*pytest_upskill_checks: 'x' is taken"])


@pytest.mark.parametrize("expected", [None, {"contains": "gate"}])
def test_a_validator_is_a_registered_check(
    pytester: pytest.Pytester, expected: Any
) -> None:
    pytester.makeconftest(CONFTEST)
    more: dict[str, Any] = {
        "validator": "validated",
        "validator_config": {"least": 1, "x": None},
    }
    run_case(pytester, expected, **more, output_file="a.py").assert_outcomes(passed=1)
    names = [grade["check"] for grade in records(pytester)[1]["checks"]]
    assert names == [*(["contains"] if expected else []), "validated"]


def test_the_value_in_expected_overrides_the_validators(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(CONFTEST)
    run_case(pytester, {"short": 13}, validator="short").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("conftest", "known"),
    [
        (CONFTEST, "short, kind, yes, broken, silent, validated, of_case"),
        ("", "none (register them in a conftest.py)"),
    ],
)
def test_an_unknown_validator_lists_the_known_ones(
    pytester: pytest.Pytester, conftest: str, known: str
) -> None:
    pytester.makeconftest(conftest)
    result = run_case(pytester, {"contains": "gate"}, validator="contains")
    result.assert_outcomes(failed=1)
    message = f"*cases[[]0].validator: unknown check 'contains'; registered: {known}"
    result.stdout.fnmatch_lines([message])
