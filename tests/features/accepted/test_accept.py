"""--skill-accept: what it writes, and what it leaves alone."""

import json
from pathlib import Path

import pytest

from support.accepted_project import MODEL, AcceptedProject, accepted_names
from support.kit import case, write_script, write_skill
from support.runs import run_skills


@pytest.fixture
def project(pytester: pytest.Pytester) -> AcceptedProject:
    return AcceptedProject(pytester)


def test_accept_writes_the_results_and_passes(
    project: AcceptedProject, workers: str
) -> None:
    project.write("b", "a")
    run = project.run({"a": 5, "b": 1}, "--skill-accept", "-n", workers, runs=5)
    assert (run.outcomes, run.status) == ({"passed": 1, "xfailed": 1}, 0)
    first, second = json.loads(project.results_file.read_text())[MODEL].values()
    assert (first["case"], second["case"]) == ("a", "b")
    assert first["was"] == first["baseline"] | {"passes": 5} == {"passes": 5, "runs": 5}
    assert (second["was"]["passes"], second["baseline"]["passes"]) == (1, 0)
    assert first["model_id"]
    assert len(first["skill_digest"]) == 12
    again = project.run({"a": 5, "b": 1}, "-n", workers, runs=5)
    assert (again.outcomes, again.status) == ({"passed": 1, "xfailed": 1}, 0)
    assert [test["expected"]["was"]["passes"] for test in again.report["tests"]] == [
        1,
        5,
    ]


def test_nothing_is_written_without_accept(project: AcceptedProject) -> None:
    project.write("a")
    project.run({"a": 1})
    project.run({"a": 1}, "--skill-accept", "--collect-only")
    assert not project.results_file.exists()


def test_better_results_show_how_to_accept_them(project: AcceptedProject) -> None:
    project.write("a", "b")
    project.accept({"a": 1, "b": 0})
    run = project.run({"a": 1, "b": 1})
    assert (run.outcomes, run.status) == ({"passed": 2}, 0)
    assert "better than accepted: b: 1 of 1" in " ".join(run.screen.split())
    assert run.ending[-1].startswith("next: pytest --skill skills")
    project.run({"a": 1, "b": 1}, "--skill-accept")
    assert project.accepted() == {"a": (1, 1), "b": (1, 1)}


def test_a_subset_accepts_only_its_own_cases(project: AcceptedProject) -> None:
    project.write("apple", "pear", "plum")
    project.accept({"apple": 1, "pear": 1, "plum": 0})
    project.run(
        dict.fromkeys(("apple", "pear", "plum"), 0),
        "--skill-accept=lower",
        "-k",
        "pear",
    )
    assert project.accepted() == {"apple": (1, 1), "pear": (0, 1), "plum": (0, 1)}


def test_a_subset_keeps_the_twin_of_a_case_that_asks_the_same(
    project: AcceptedProject,
) -> None:
    project.write("a", "b")
    project.edit(b={"input": "a is it?"})
    project.run({"a": 1}, "--skill-accept")
    project.run({"a": 1}, "--skill-accept", "-k", "a[")
    run = project.run({"a": 1})
    assert run.status == 0
    assert [bool(test["expected"]) for test in run.report["tests"]] == [True, True]


def test_other_models_are_kept_and_deleted_cases_are_dropped(
    project: AcceptedProject,
) -> None:
    project.write("a", "b")
    other = write_script(project.pytester.path / "other.json", knows="no")
    project.run({"a": 1, "b": 1}, "--skill-accept", "--model", other)
    project.write("b")
    project.run({"b": 1}, "--skill-accept=lower")
    assert set(project.accepted()) == {"b"}
    assert set(project.accepted(other)) == {"a", "b"}


def test_unanswered_cases_are_not_accepted(pytester: pytest.Pytester) -> None:
    write_skill(
        pytester.path / "skills/gate", [case(n, "yes", id=n) for n in ("good", "bad")]
    )
    (pytester.path / "a.json").write_text('[{"question": "good", "answer": "yes"}]')
    run = run_skills(pytester, "scripted:a.json", "--skill-accept")
    assert (run.outcomes, run.status) == ({"passed": 1, "errors": 1}, 1)
    names = accepted_names(pytester.path / "skills/gate", "scripted:a.json")
    assert names == ["good"]


def test_a_broken_file_of_results_is_one_message(
    project: AcceptedProject, workers: str
) -> None:
    project.write("a")
    project.results_file.write_text('{\n "m": {\n  "x": {"date": 3}}}')
    run = project.run({"a": 1}, "-n", workers)
    assert run.status != 0
    assert "skills/gate/skill_results.json:3: m.x.was: missing" in run.screen


def test_a_folder_that_cannot_be_written_is_reported(
    project: AcceptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("a")

    def refuse(self: Path, _: Path) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "replace", refuse)
    run = project.run({"a": 1}, "--skill-accept")
    assert run.status == 1
    [problem] = [line for line in run.ending if line.startswith("✘ --skill-accept ")]
    assert "can't be written: permission denied" in problem
    assert sorted(file.name for file in project.folder.iterdir()) == [
        "SKILL.md",
        "skill_meta.json",
    ]


# Tests in Python.

TEST = """
    import pytest

    @pytest.mark.skill("skills/gate")
    def test_a(ask):
        assert ask("a is it?") == "yes"
"""
IN_PYTHON = """
    import pytest

    @pytest.mark.skill("skills/gate")
    @pytest.mark.parametrize("name", ["p", "q"])
    def test_it(ask, name):
        assert ask(name + " is it?") == "yes"
"""


def test_tests_in_python_are_accepted_too(
    project: AcceptedProject, workers: str
) -> None:
    project.write("a")
    project.pytester.makepyfile(test_gate=TEST)
    alone = ("test_gate.py", "-n", workers)
    project.run({"a": 5}, *alone, "--skill-accept", skill="", runs=5)
    assert list(project.accepted()) == ["test_gate::test_a"]
    project.run({"a": 5}, "--skill-accept", runs=5).result.assert_outcomes(passed=1)
    assert list(project.accepted()) == ["a", "test_gate::test_a"]
    run = project.run({"a": 0}, *alone, skill="", runs=5)
    assert (run.outcomes, run.status) == ({"failed": 1}, 1)
    assert "FAILED test_gate.py::test_a" in run.screen
    assert "regression: 0 of 5 passed (accepted: 5 of 5" in run.screen
    project.run({"a": 0}, *alone, "--skill-accept=lower", skill="", runs=5)
    run = project.run({"a": 0}, *alone, skill="", runs=5)
    assert (run.outcomes, run.status) == ({"xfailed": 1}, 0)


def test_tests_in_python_that_fell_with_others_fail_the_run(
    project: AcceptedProject, workers: str
) -> None:
    project.write("a", "b")
    project.pytester.makepyfile(test_gate=IN_PYTHON)
    names = ["a", "b", "p", "q"]
    common = ("test_gate.py", "-n", workers)
    project.run(dict.fromkeys(names, 2), "--skill-accept", *common, runs=3)
    fallen = {**dict.fromkeys(names, 0), "b": 2}
    run = project.run(fallen, *common, runs=3)
    assert (run.outcomes, run.status) == ({"passed": 1, "xfailed": 3}, 1)
    (reason,) = run.gate["reasons"]
    assert "regression of the skill as a whole" in reason
    chance = project.run({**dict.fromkeys(names, 2), "p": 1}, *common, runs=3)
    assert (chance.outcomes, chance.status) == ({"passed": 3, "xfailed": 1}, 0)
