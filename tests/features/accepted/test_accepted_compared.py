"""Runs after --skill-accept: regressions, chance, and cases that are known to fail."""

from xml.etree import ElementTree

import pytest

from support.accepted_project import AcceptedProject, regressions

NAMES = [f"c{number}" for number in range(12)]


@pytest.fixture
def project(pytester: pytest.Pytester) -> AcceptedProject:
    return AcceptedProject(pytester)


def junit(project: AcceptedProject) -> dict[str, str]:
    """What JUnit has of each test."""
    outcomes = {}
    for test in ElementTree.parse(project.pytester.path / "junit.xml").iter("testcase"):
        kinds = [child.tag for child in test if child.tag != "properties"]
        outcomes[str(test.get("name")).partition("[")[0]] = ",".join(kinds) or "passed"
    return outcomes


def test_failures_that_are_accepted_or_could_be_chance_xfail(
    project: AcceptedProject,
) -> None:
    project.write("a", "b", "c")
    project.accept({"a": 5, "b": 1, "c": 5}, runs=5)
    run = project.run({"a": 5, "b": 0, "c": 2}, "-rx", runs=5)
    assert (run.outcomes, run.status) == ({"passed": 1, "xfailed": 2}, 0)
    assert "(1 of 5)" in run.screen  # of b
    assert "2 of 5 passed (accepted: 5 of 5, 2026-01-02); could be chance" in run.screen
    assert "below accepted; could be chance: c" in " ".join(run.screen.split())
    assert run.gate == {"passed": True, "reasons": []}
    shown = project.run({"a": 5, "b": 0, "c": 5}, "--runxfail", runs=5)
    assert shown.outcomes == {"passed": 2, "failed": 1}


def test_one_broken_case_of_twelve_fails_its_test(
    project: AcceptedProject, workers: str
) -> None:
    project.write(*NAMES)
    well = dict.fromkeys(NAMES, 5)
    project.accept(well, runs=5)
    run = project.run({**well, "c7": 0}, "--junitxml=junit.xml", "-n", workers, runs=5)
    assert (run.outcomes, run.status) == ({"passed": 11, "failed": 1}, 1)
    assert junit(project) == {**dict.fromkeys(NAMES, "passed"), "c7": "failure"}
    again = project.run({**well, "c7": 0}, "--lf", "-n", workers, runs=5)
    assert again.outcomes["failed"] == 1
    assert project.run(well, "--lf", "-n", workers, runs=5).status == 0


def test_a_collapse_is_one_line_of_the_gate(
    project: AcceptedProject, workers: str
) -> None:
    """None of these cases is a regression alone: 4 of 5 became 0 of 5,
    and one did not fall.
    """
    names = NAMES[:9]
    project.write(*names)
    project.accept(dict.fromkeys(names, 4), runs=5)
    fallen = {**dict.fromkeys(names, 0), "c4": 5}
    run = project.run(fallen, "--junitxml=junit.xml", "-n", workers, runs=5)
    assert (run.outcomes, run.status) == ({"passed": 1, "xfailed": 8}, 1)
    assert junit(project) == {**dict.fromkeys(names, "skipped"), "c4": "passed"}
    assert regressions(run) == []
    (reason,) = run.gate["reasons"]
    assert f"gate failed: {reason}" in " ".join(run.ending)
    assert "regression of the skill as a whole: 5 of 45 runs passed" in reason


def test_a_skill_that_got_worse_overall_is_red_though_its_cases_still_pass(
    project: AcceptedProject,
) -> None:
    project.write(*NAMES)
    project.accept(dict.fromkeys(NAMES, 5), runs=5)
    worse = {**dict.fromkeys(NAMES, 4), "c1": 5}
    run = project.run(worse, runs=5)
    assert (run.outcomes, run.status) == ({"passed": 12}, 1)
    assert len(run.gate["reasons"]) == 1
    few = project.run(worse, "-k", "c2 or c3", runs=5)
    assert (few.outcomes, few.status) == ({"passed": 2, "deselected": 10}, 0)


def test_without_the_plugin_nothing_is_expected(project: AcceptedProject) -> None:
    project.write("a", "b")
    project.accept({"a": 0, "b": 1})
    run = project.run({"a": 0, "b": 0}, "-p", "no:upskill-accepted")
    assert (run.outcomes, run.status) == ({"failed": 2}, 1)
    assert (run.gate["reasons"], regressions(run)) == ([], [])


def test_a_missing_answer_is_left_out_of_the_decision(project: AcceptedProject) -> None:
    names = ["a", "b", "c", "d"]
    project.write(*names)
    project.accept(dict.fromkeys(names, 3), runs=3)
    run = project.run(dict.fromkeys(names[:3], 0), runs=3)  # the model knows no d
    assert run.outcomes == {"failed": 3, "errors": 1}
