"""Accepted cases that a run does not compare: gone, changed, skipped, marked xfail."""

import pytest

from pytest_upskill.features.accepted.results import read_results
from support.accepted_project import AcceptedProject, unmatched
from support.kit import case, write_script, write_skill
from support.runs import run_skills


@pytest.fixture
def project(pytester: pytest.Pytester) -> AcceptedProject:
    return AcceptedProject(pytester)


def add_hook(project: AcceptedProject, hook: str) -> None:
    (project.pytester.path / "conftest.py").write_text(f"import pytest\n{hook}\n")


def add_mark(project: AcceptedProject, mark: str) -> None:
    add_hook(project, f"def pytest_itemcollected(item):\n    item.add_marker({mark})")


def test_new_gone_and_changed_cases_have_no_accepted_result(
    project: AcceptedProject, workers: str
) -> None:
    project.write("a", "b")
    project.accept({"a": 1, "b": 1})
    project.write("a", "c")
    project.edit(a={"expected": {"contains": ["yes", "please"]}})
    run = project.run({"a": 1, "c": 1}, "-n", workers)
    assert (run.outcomes, run.status) == ({"passed": 1, "failed": 1}, 1)
    assert unmatched(run) == {"a": "changed", "b": "gone"}
    assert len(run.gate["reasons"]) == 2


@pytest.mark.parametrize(
    "narrow", [["-k", "b"], ["--deselect", "skills/gate/skill_meta.json::a"]]
)
def test_a_case_that_was_deselected_is_not_gone(
    project: AcceptedProject, narrow: list[str]
) -> None:
    project.write("a", "b", "c")
    project.accept(dict.fromkeys("abc", 1))
    project.write("a", "b")
    run = project.run(dict.fromkeys("abc", 1), *narrow)
    assert (run.gate["reasons"], run.status) == ([], 0)


def test_an_accepted_case_that_passes_trivially_now_fails_the_run(
    project: AcceptedProject,
) -> None:
    project.write("a", "b")
    project.accept({"a": 1, "b": 1})
    project.edit(a={"expected": {"not_contains": ["maybe"]}})
    run = project.run({"a": 0, "b": 1})
    assert (run.outcomes, run.status) == ({"passed": 2}, 1)
    assert unmatched(run) == {"a": "changed"}
    project.run({"a": 0, "b": 1}, "--skill-accept")
    assert project.run({"a": 0, "b": 1}).status == 0


def test_accepted_cases_that_are_all_skipped_fail_the_run(
    project: AcceptedProject, workers: str
) -> None:
    project.write("a", "b", "c")
    passes = dict.fromkeys("abc", 1)
    project.accept(passes)
    project.edit(a={"skip": "later"}, b={"models": ["other"]}, c={"skip": "never"})
    run = project.run(passes, "-n", workers)
    assert run.status == 1
    assert unmatched(run) == {"a": "skipped", "b": "gone", "c": "skipped"}
    refused = project.run(passes, "--skill-accept", "-n", workers)
    assert (refused.status, list(project.accepted())) == (1, ["a", "b", "c"])
    assert (
        "would be dropped: a, b, c. To accept that as well: --skill-accept=lower"
        in " ".join(" ".join(refused.ending).split())
    )
    accepting = project.run(passes, "--skill-accept=lower", "-n", workers)
    assert accepting.status == 0
    assert "dropped: a, b, c" in " ".join(accepting.screen.split())
    assert not read_results(project.folder)
    assert project.run(passes).status == 0


@pytest.mark.parametrize("how", ["skip", "xfail"])
def test_accepted_cases_that_a_hook_skips_fail_the_run(
    project: AcceptedProject, workers: str, how: str
) -> None:
    project.write("a", "b")
    project.accept({"a": 1, "b": 1})
    skips = f"if item.name[0] == 'a': pytest.{how}('not now')"
    add_hook(project, f"def pytest_runtest_call(item):\n    {skips}")
    run = project.run({"a": 1, "b": 1}, "-n", workers)
    assert run.status == 1
    assert unmatched(run) == {"a": "skipped"}
    project.run({"a": 1, "b": 1}, "--skill-accept=lower", "-n", workers)
    assert list(project.accepted()) == ["b"]


def test_accepted_cases_under_a_skipif_of_text_fail_the_run(
    project: AcceptedProject,
) -> None:
    project.write("a")
    project.accept({"a": 1})
    add_mark(project, "pytest.mark.skipif('1 == 1', reason='not now')")
    run = project.run({"a": 1})
    assert (run.outcomes, run.status) == ({"skipped": 1}, 1)
    assert unmatched(run) == {"a": "skipped"}


def test_an_accepted_case_that_is_marked_xfail_now_fails_the_run(
    project: AcceptedProject,
) -> None:
    project.write("a", "b")
    project.accept({"a": 1, "b": 0})
    project.write("a", "b", xfail="known")
    run = project.run({"a": 0, "b": 0})
    assert (run.outcomes, run.status) == ({"xfailed": 2}, 1)
    assert unmatched(run) == {"a": "skipped", "b": "skipped"}
    project.run({"a": 0, "b": 0}, "--skill-accept=lower")
    assert project.run({"a": 0, "b": 0}).status == 0


def test_an_xfail_that_does_not_hold_changes_nothing(project: AcceptedProject) -> None:
    project.write("a")
    project.accept({"a": 5}, runs=5)
    add_mark(project, "pytest.mark.xfail(False, reason='elsewhere')")
    run = project.run({"a": 0}, runs=5)
    assert (run.outcomes, unmatched(run)) == ({"failed": 1}, {})
    assert len(run.gate["reasons"]) == 1


def test_a_skill_whose_file_of_cases_is_gone_fails_the_run(
    project: AcceptedProject,
) -> None:
    project.write("a")
    project.accept({"a": 1})
    project.cases_file.unlink()
    write_skill(
        project.pytester.path / "skills/other", [case("a is it?", "yes", id="a")]
    )
    run = project.run({"a": 1})
    assert run.status == 1
    assert unmatched(run) == {"a": "gone"}
    other = write_script(
        project.pytester.path / "other.json", knows="yes", does_not="yes"
    )
    # Nothing accepted on this model
    assert run_skills(project.pytester, other).status == 0


TEST = """
    import pytest

    {mark}
    @pytest.mark.skill("skills/gate")
    def test_a(ask):
        assert ask("a is it?") {holds}
"""


def test_an_edited_or_skipped_test_in_python_fails_the_run(
    project: AcceptedProject,
) -> None:
    project.write("a")

    def run(passes: int, holds: str, *args: str, mark: str = "") -> dict[str, str]:
        project.pytester.makepyfile(test_gate=TEST.format(mark=mark, holds=holds))
        run = project.run({"a": passes}, "test_gate.py", *args, skill="")
        assert run.status == bool(unmatched(run))
        return unmatched(run)

    name = "test_gate::test_a"
    assert run(1, '== "yes"', "--skill-accept") == {}
    assert run(0, "is not None") == {name: "changed"}
    assert run(0, "is not None", mark="@pytest.mark.skip") == {name: "skipped"}
