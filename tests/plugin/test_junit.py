"""--junitxml: what JUnit files say about skills."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from junitparser import xunit2

from pytest_upskill.results.history import runs
from support.kit import case, write_script, write_skill
from support.words import INCOMPLETE

CASES = [
    case("Open?", "gate up", id="right"),
    case("Shut?", "gate down", id="wrong"),
    case("Lock?", "gate up", id="lost"),
    case("Paint?", "gate down", id="expected", xfail="not yet"),
]

ANSWERS = """
def answer(question):
    if "Lock" in question.messages[-1][1]:
        raise RuntimeError("no network")
    return "Type gate up." if "gate up" in question.system else {unknown!a}
"""

# The order of what a <testcase> holds in the schema of JUnit 10.
ORDER = ["properties", "skipped", "error", "failure", "system-out", "system-err"]


def read(file: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The cases by their names and the properties of the suite,
    as another program reads them.
    """
    suite: Any
    (suite,) = xunit2.JUnitXml.fromfile(str(file))
    cases = {test.name.partition("[")[0]: test for test in suite}
    return cases, properties(suite)


def assert_ordered(file: Path) -> None:
    """Elements are in the order of the schema, and no property is there twice."""
    root = ElementTree.parse(file).getroot()
    (suite,) = root
    tests = list(suite.iter("testcase"))
    assert [child.tag for child in suite] == ["properties", *["testcase"] * len(tests)]
    for test in tests:
        tags = [child.tag for child in test]
        assert tags == sorted(tags, key=ORDER.index)
        names = [found.attrib["name"] for found in test.iter("property")]
        assert len(names) == len(set(names))
    for found in root.iter("property"):
        assert set(found.attrib) == {"name", "value"}


def properties(element: Any) -> dict[str, str]:
    return {found.name: found.value for found in element.properties()}


def run(pytester: pytest.Pytester, *args: str) -> Path:
    write_skill(pytester.path / "skills/gate", CASES)
    nasty = "\x00 \x1b[31m \ud800 \uffff ]]> <b>&"
    pytester.makepyfile(fake=ANSWERS.format(unknown=nasty))
    pytester.makeini("[pytest]\nskill_prices = scripted:fake.py:answer 1000000 1000000")
    model = ["--model", "scripted:fake.py:answer"]
    pytester.runpytest_inprocess(
        "--skill", "skills", *model, "--junitxml", "j.xml", *args
    )
    return pytester.path / "j.xml"


def test_a_junit_parser_reads_results_and_numbers(
    pytester: pytest.Pytester, workers: str
) -> None:
    file = run(pytester, f"-n{workers}", "--skill-min-lift", "0.9")
    assert_ordered(file)
    cases, suite = read(file)
    kinds = {
        name: [type(found).__name__ for found in test.result]
        for name, test in cases.items()
    }
    assert kinds == {
        "right": [],
        "wrong": ["Failure"],
        "lost": ["Error"],
        "expected": ["Skipped"],
    }
    right = properties(cases["right"])
    assert right["upskill"] == "gate::right[scripted:fake.py:answer]"
    tokens = [float(right[f"upskill_{arm}_tokens"]) for arm in ("baseline", "skill")]
    assert (
        right.items()
        >= {
            "upskill_skill": "gate",
            "upskill_model": "scripted:fake.py:answer",
            "upskill_baseline_rate": "0",
            "upskill_skill_rate": "1",
            "upskill_lift": "1",
            "upskill_baseline_tokens": f"{tokens[0]:g}",
            "upskill_skill_tokens": f"{tokens[1]:g}",
            "upskill_baseline_cost": f"{tokens[0]:g}",
            "upskill_skill_cost": f"{tokens[1]:g}",
            "upskill_signal": "only with",
            "upskill_signal_shown": "false",
        }.items()
    )
    assert properties(cases["wrong"])["upskill_skill_rate"] == "0"
    lost = properties(cases["lost"])
    assert lost["upskill_model"] == "scripted:fake.py:answer"
    assert "upskill_lift" not in lost
    assert suite["upskill:gate:scripted:fake.py:answer:verdict"] == INCOMPLETE
    assert suite["upskill:gate:scripted:fake.py:answer:errored"] == "2"
    assert suite["upskill:gate:scripted:fake.py:answer:score"] == "pass"
    assert "upskill:gate:scripted:fake.py:answer:lift" not in suite
    assert suite["upskill_gate"] == "not passed"
    assert "can't pass" in suite["upskill_gate_reason_1"]


def test_properties_say_where_records_are_and_have_no_answers(
    pytester: pytest.Pytester,
) -> None:
    file = run(pytester, "--skill-json", "r.json", "--skill-html", "r.html")
    cases, suite = read(file)
    (kept,) = runs(pytester.path / ".upskill/runs")
    assert suite.items() >= {"upskill_json": "r.json", "upskill_page": "r.html"}.items()
    assert suite["upskill_run"] == kept.id
    for test in cases.values():
        assert properties(test)["upskill_page"].startswith("r.html#")
        assert max(map(len, properties(test).values())) < 100


def test_a_failure_that_was_accepted_is_skipped_and_a_regression_a_failure(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate", CASES[:2])
    args = ["--skill", "skills", "--model", write_script(pytester.path / "a.json")]
    args += ["--skill-runs", "5"]
    pytester.runpytest_inprocess(*args, "--skill-accept")
    write_script(pytester.path / "a.json", knows="Push it.")
    pytester.runpytest_inprocess(*args, "--junitxml", "j.xml")
    cases, suite = read(pytester.path / "j.xml")
    assert [type(found).__name__ for found in cases["wrong"].result] == ["Skipped"]
    assert [type(found).__name__ for found in cases["right"].result] == ["Failure"]
    assert "regression" in cases["right"].result[0].message
    assert suite["upskill_gate"] == "not passed"
    assert "right: 0 of 5 passed (accepted: 5 of 5" in suite["upskill_gate_reason_1"]


def test_tests_in_python_and_other_tests_are_included(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makepyfile(
        test_both="""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_asks(ask, record_property):
            record_property("mine", "kept")
            assert "gate up" in ask("How?")

        def test_plain(): pass
        """
    )
    model = write_script(pytester.path / "a.json")
    family = ["-o", "junit_family=xunit1"]  # else pytest warns of record_property
    pytester.runpytest_inprocess("--model", model, "--junitxml", "j.xml", *family)
    cases, _ = read(pytester.path / "j.xml")
    asks = properties(cases["test_asks"])
    assert asks["mine"] == "kept"
    assert asks["upskill_lift"] == "1"
    assert properties(cases["test_plain"]) == {}
