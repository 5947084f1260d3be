"""The same error of many tests: told once with a count,
and an error of each test all the same.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.kit import case, write_skill
from support.loopback import Fault, LoopbackServer, Reply

CASES = [case(f"question {n}", "yes", id=f"c{n}") for n in range(10)]


@pytest.fixture
def refused() -> Iterator[list[str]]:
    """Arguments for a model on a server that does not know the key."""
    with LoopbackServer(
        lambda _: Fault("status", 401, message="invalid key.")
    ) as server:
        yield ["--model", "m", "--skill-base-url", f"{server.url}/v1"]


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    result = pytester.runpytest_inprocess("--skill", "skills", *args)
    assert "INTERNALERROR" not in result.stdout.str()
    return result


def test_a_bad_key_is_told_once_with_a_count(
    pytester: pytest.Pytester,
    refused: list[str],
    workers: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """But every test keeps its error elsewhere."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    write_skill(pytester.path / "skills/gate", CASES)
    files = ["--junitxml", "junit.xml", "--skill-json", "r.json"]
    result = run(pytester, *refused, "-n", workers, *files)
    result.assert_outcomes(errors=10)
    errors, short = result.stdout.str().split("short test summary info")
    [title] = [line for line in errors.splitlines() if "ERROR at setup of" in line]
    assert "and 9 more tests" in title
    told = [
        line
        for line in errors.partition("= skills =")[0].splitlines()
        if "invalid key" in line
    ]
    assert sorted(line.startswith("::error") for line in told) == [False, True]
    lines = [line for line in short.splitlines() if line.startswith("ERROR ")]
    assert len(lines) == 1
    assert " - 10 tests: m: 401" in lines[0]

    texts = [error.text or "" for error in ElementTree.parse("junit.xml").iter("error")]
    assert len(texts) == 10
    assert all("invalid key" in text for text in texts)
    records = json.loads(Path("r.json").read_text())["records"]
    assert sum("invalid key" in record["error"] for record in records) == 20
    assert len(json.loads(Path(".pytest_cache/v/cache/lastfailed").read_text())) == 10


def test_an_exhausted_budget_is_one_cause_whatever_was_spent(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    pytester.makeini("[pytest]\nskill_prices = m 1 5")
    with LoopbackServer(
        lambda _: Reply("yes", input_tokens=60, output_tokens=20)
    ) as server:
        args = ["--model", "m", "--skill-base-url", f"{server.url}/v1"]
        result = run(pytester, *args, "--skill-max-cost", "0.002")
    errors = result.parseoutcomes()["errors"]
    assert errors > 1
    shown = result.stdout.str()
    assert shown.count("ERROR at setup of") == 1
    assert f"and {errors - 1} more tests" in shown
    assert shown.count("\nERROR skills") == 1


def test_other_errors_and_failures_are_shown_as_ever(
    pytester: pytest.Pytester, refused: list[str]
) -> None:
    write_skill(pytester.path / "skills/gate", CASES[:2])
    write_skill(pytester.path / "skills/door", [case("question 0", "yes", id="only")])
    pytester.makepyfile("""
        import pytest

        @pytest.fixture
        def broken():
            raise OSError("no disk")

        def test_a(broken): pass
        def test_b(broken): pass
        def test_c(): assert False
        """)
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
            knows = "gate up" in question.system
            raise ModelError("too long" if knows else "no skill here")
        """
    )
    result = run(pytester, "--model", "scripted:model.py:answer")
    result.assert_outcomes(errors=3)
    section = result.stdout.str().split("= ERRORS =")[1].split("= skills =")[0]
    assert section.count("no skill here") == 1
    assert section.count("too long") == 1


@pytest.mark.parametrize("style", ["line", "no"])
def test_any_style_of_tracebacks(
    pytester: pytest.Pytester, refused: list[str], style: str
) -> None:
    write_skill(pytester.path / "skills/gate", CASES[:3])
    result = run(pytester, *refused, f"--tb={style}")
    result.assert_outcomes(errors=3)
    assert result.stdout.str().count("ERROR at setup of") == (style != "no")
