"""The same error of many tests: told once with a count, and an error of each test all the same."""

import json
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from support.kit import case, write_skill
from support.loopback import Fault, LoopbackServer, Reply

CASES = [case(f"question {n}", "yes", id=f"c{n}") for n in range(10)]


@pytest.fixture
def refused() -> Iterator[list[str]]:
    """Arguments for a model on a server that does not know the key."""
    with LoopbackServer(lambda _: Fault("status", 401, message="invalid key.")) as server:
        yield ["--model", "m", "--skill-base-url", f"{server.url}/v1"]


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    result = pytester.runpytest_inprocess("--skill", "skills", *args)
    assert "INTERNALERROR" not in result.stdout.str()
    return result


def test_a_dead_server_is_told_once(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    result = run(pytester, "--model", "m", "--skill-base-url", "http://127.0.0.1:9/v1")
    result.assert_outcomes(errors=10)
    result.stdout.fnmatch_lines(
        [
            "*_ ERROR at setup of c0[[]m] and 9 more tests _*",
            "m: can't connect to http://127.0.0.1:9/v1*Is the server running*",
            "*= skills =*",
            "20 answers are missing in 10 tests: m: can't connect to http://127.0.0.1:9/v1",
        ]
    )
    assert result.stdout.str().count("ERROR at setup of") == 1


@pytest.mark.parametrize("options", [["-n0"], ["-n2"], ["-n0", "-v"], ["-n2", "-q"]], ids=" ".join)
def test_a_bad_key_is_told_once_with_a_count(
    pytester: pytest.Pytester, refused: list[str], options: list[str]
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    result = run(pytester, *refused, *options)
    result.assert_outcomes(errors=10)
    result.stdout.fnmatch_lines(
        ["*_ ERROR at setup of c?[[]m] and 9 more tests _*", "m: 401 from *", "*short test summ*"]
    )
    shown = result.stdout.str()
    errors, short = shown.split("short test summary info")
    assert errors.count("ERROR at setup of") == 1
    assert errors.partition("= skills =")[0].count("invalid key") == 1
    lines = [line for line in short.splitlines() if line.startswith("ERROR ")]
    assert len(lines) == 10
    assert sum(" - 10 tests: m: 401" in line for line in lines) == 1
    assert sum(" - same as c" in line for line in lines) == 9


def test_the_summary_says_why_answers_are_missing(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    with LoopbackServer(lambda _: Fault("status", 401, message="invalid key.")) as server:
        args = ["--model", "m", "--model", "n", "--skill-base-url", f"{server.url}/v1"]
        result = run(pytester, *args, "--skill-markdown", "comment.md", "--skill-json", "r.json")
    result.assert_outcomes(errors=20)
    told = f"m, n: 401 from {server.url}/v1: invalid key. Check GENERIC_API_KEY"
    summary = " ".join(result.stdout.str().split("= skills =")[1].split())
    assert f"40 answers are missing in 20 tests: {told}." in summary
    assert ".." not in told
    comment = (pytester.path / "comment.md").read_text()
    assert comment.count("invalid key") == 1
    assert "40 answers are missing in 20 tests" in comment
    records = json.loads((pytester.path / "r.json").read_text())["records"]
    assert sum("invalid key" in record["error"] for record in records) == 40


def test_an_exhausted_budget_is_one_cause_whatever_was_spent(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    pytester.makeini("[pytest]\nskill_prices = m 1 5")
    with LoopbackServer(lambda _: Reply("yes", input_tokens=60, output_tokens=20)) as server:
        args = ["--model", "m", "--skill-base-url", f"{server.url}/v1", "-n", workers]
        result = run(pytester, *args, "--skill-max-cost", "0.0115")
    errors = result.parseoutcomes()["errors"]
    assert errors > 1
    shown = result.stdout.str()
    assert shown.count("ERROR at setup of") == 1
    assert f"and {errors - 1} more tests" in shown
    assert shown.count(" - same as c") == errors - 1


def test_every_test_keeps_its_error_elsewhere(
    pytester: pytest.Pytester, refused: list[str]
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    result = run(pytester, *refused, "--junitxml", "junit.xml")
    tree = ElementTree.parse(pytester.path / "junit.xml")
    errors = [error.text or "" for error in tree.iter("error")]
    assert len(errors) == 10
    assert all("invalid key" in text for text in errors)
    failed = pytester.path / ".pytest_cache/v/cache/lastfailed"
    assert len(json.loads(failed.read_text())) == 10
    result = run(pytester, *refused, "--lf", "--collect-only", "-q")
    assert "10 tests collected" in result.stdout.str()


def test_other_errors_and_failures_are_shown_as_ever(
    pytester: pytest.Pytester, refused: list[str]
) -> None:
    write_skill(pytester.path / "skills/gate", CASES[:2])
    write_skill(pytester.path / "skills/door", [case("question 0", "yes", id="only")])
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def broken():
            raise OSError("no disk")

        def test_a(broken): pass
        def test_b(broken): pass
        def test_c(): assert False
        """
    )
    args = [*refused, "skills", "test_other_errors_and_failures_are_shown_as_ever.py"]
    result = run(pytester, *args)
    shown = result.stdout.str()
    assert shown.count("E       OSError: no disk") == 2
    assert shown.count("ERROR at setup of test_") == 2
    assert "ERROR at setup of only[m] and 2 more tests" in shown
    assert result.parseoutcomes()["errors"] == 5
    assert "short test summary info" in shown
    assert shown.count(" - OSError") == 2


def test_two_causes_in_one_test_are_told_once_each(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES[:3])
    pytester.makepyfile(
        model="""
        from pytest_upskill import ModelError

        def answer(question):
            raise ModelError("no skill here" if "gate up" not in question.system else "too long")
        """
    )
    result = run(pytester, "--model", "scripted:model.py:answer")
    result.assert_outcomes(errors=3)
    section = result.stdout.str().split("= ERRORS =")[1].split("= skills =")[0]
    assert section.count("no skill here") == 1
    assert section.count("too long") == 1


@pytest.mark.parametrize("style", ["short", "line", "no", "native"])
def test_any_style_of_tracebacks(pytester: pytest.Pytester, refused: list[str], style: str) -> None:
    write_skill(pytester.path / "skills/gate", CASES[:3])
    result = run(pytester, *refused, f"--tb={style}")
    result.assert_outcomes(errors=3)
    assert result.stdout.str().count("ERROR at setup of") == (style != "no")


def test_in_ci_there_is_one_annotation(
    pytester: pytest.Pytester, refused: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    write_skill(pytester.path / "skills/gate", CASES)
    result = run(pytester, *refused)
    lines = [line for line in result.outlines if line.startswith("::error")]
    assert len(lines) == 1
    assert "(and 9 more tests): m: 401" in lines[0]
